// The kernels in AVX-512. One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/avx512.h"

#include "kernels/blocks/panels.inl"
#include "kernels/blocks/rows.inl"
#include "kernels/peak_avx512.inl"
#include "kernels/table.inl"

namespace linnet {
extern const KernelTable<float> avx512_kernels;
constinit const KernelTable<float> avx512_kernels = with_dot_probes(
    with_block(make_table("avx512"),
               {.panels = block_panels, .rows = block_rows, .rows_longest = block_rows_longest}),
    bf16_probe, int8_probe);
}  // namespace linnet
