// The products with block types in AVX-512 with VNNI: what this tier adds to the one below it. One symbol
// leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/avx512.h"

#include "kernels/blocks/panels.inl"
#include "kernels/blocks/rows.inl"

namespace linnet {
extern const AddedKernels avx512vnni_kernels;
constinit const AddedKernels avx512vnni_kernels = {
    .name = "avx512vnni",
    .block = {.panels = block_panels, .rows = block_rows, .rows_longest = block_rows_longest}};
}  // namespace linnet
