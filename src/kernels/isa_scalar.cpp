// The kernels one element at a time. One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/scalar.h"

#include "kernels/blocks/panels.inl"
#include "kernels/blocks/rows.inl"
#include "kernels/table.inl"

namespace linnet {
extern const KernelTable<float> scalar_kernels;
constinit const KernelTable<float> scalar_kernels = with_block(
    make_table("scalar"), {.panels = block_panels, .rows = block_rows, .rows_longest = block_rows_longest});
}  // namespace linnet
