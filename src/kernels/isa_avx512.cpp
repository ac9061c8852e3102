// The kernels in AVX-512. One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd_avx512.h"

#include "kernels/peak_avx512.inl"
#include "kernels/table.inl"

namespace linnet {
extern const KernelTable<float> avx512_kernels;
constinit const KernelTable<float> avx512_kernels =
    with_dot_probes(make_table("avx512"), bf16_probe, int8_probe);
}  // namespace linnet
