// The kernels in double precision, for checking gradients. One symbol leaves this file: the table
// (tools/check_kernel_symbols.sh).
#include "kernels/simd/double.h"

#include "kernels/table.inl"

namespace linnet {
extern const KernelTable<double> double_table;
constinit const KernelTable<double> double_table = make_table("double");
}  // namespace linnet
