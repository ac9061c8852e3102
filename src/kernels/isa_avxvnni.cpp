// The products with block types in AVX2 with AVX-VNNI: what this tier adds to the one below it. One symbol
// leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/avx2.h"

#include "kernels/blocks/panels.inl"
#include "kernels/blocks/rows.inl"

namespace linnet {
extern const AddedKernels avxvnni_kernels;
constinit const AddedKernels avxvnni_kernels = {
    .name = "avxvnni",
    .block = {.panels = block_panels, .rows = block_rows, .rows_longest = block_rows_longest}};
}  // namespace linnet
