// The products with block types in NEON with dot products (Armv8.2 FEAT_DotProd): what this tier adds to the
// one below it. One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/neon.h"

#include "kernels/blocks/rows.inl"

namespace linnet {
extern const AddedKernels dotprod_kernels;
constinit const AddedKernels dotprod_kernels = {
    .name = "dotprod", .block = {.rows = block_rows, .rows_longest = block_rows_longest}};
}  // namespace linnet
