// The kernels in NEON. One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/neon.h"

#include "kernels/blocks/rows.inl"
#include "kernels/table.inl"

namespace linnet {
extern const KernelTable<float> neon_kernels;
constinit const KernelTable<float> neon_kernels =
    with_block(make_table("neon"), {.rows = block_rows, .rows_longest = block_rows_longest});
}  // namespace linnet
