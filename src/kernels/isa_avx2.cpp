// The kernels in AVX2. One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/avx2.h"

#include "kernels/blocks/panels.inl"
#include "kernels/blocks/rows.inl"
#include "kernels/table.inl"

namespace linnet {
extern const KernelTable<float> avx2_kernels;
constinit const KernelTable<float> avx2_kernels = with_block(
    make_table("avx2"), {.panels = block_panels, .rows = block_rows, .rows_longest = block_rows_longest});
}  // namespace linnet
