// The kernels in NEON. One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd_neon.h"

#include "kernels/table.inl"

namespace linnet {
extern const KernelTable<float> neon_kernels;
constinit const KernelTable<float> neon_kernels = make_table("neon");
}  // namespace linnet
