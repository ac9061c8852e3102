// The kernels one element at a time. One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd_scalar.h"

#include "kernels/table.inl"

namespace linnet {
extern const KernelTable<float> scalar_kernels;
constinit const KernelTable<float> scalar_kernels = make_table("scalar");
}  // namespace linnet
