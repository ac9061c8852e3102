// The kernels in AVX2. One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd_avx2.h"

#include "kernels/table.inl"

namespace linnet {
extern const KernelTable<float> avx2_kernels;
constinit const KernelTable<float> avx2_kernels = make_table("avx2");
}  // namespace linnet
