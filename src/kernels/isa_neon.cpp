// The kernels in NEON. One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/neon.h"

#include "kernels/block_table.inl"

namespace linnet {
extern const KernelTable<float> neon_kernels;
constinit const KernelTable<float> neon_kernels = with_block_rows(make_table("neon"));
}  // namespace linnet
