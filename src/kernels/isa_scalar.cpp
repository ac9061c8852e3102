// The kernels one element at a time. One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/scalar.h"

#include "kernels/block_panels.inl"
#include "kernels/block_table.inl"

namespace linnet {
extern const KernelTable<float> scalar_kernels;
constinit const KernelTable<float> scalar_kernels = with_block_panels(with_block_rows(make_table("scalar")));
}  // namespace linnet
