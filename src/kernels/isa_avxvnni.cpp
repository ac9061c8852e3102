// The products with block types in AVX2 with AVX-VNNI: what this tier adds to the one below it. One symbol
// leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/avx2.h"

#include "kernels/blocks/dot_panels.inl"
#include "kernels/blocks/rows.inl"

namespace linnet {
namespace {

struct ByteDots : ByteWordDots {
    static LINNET_INLINE Integers add(Integers sum, Integers codes, Integers a) {
        __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(codes), "x"(a));  // as in AVX-512
        return sum;
    }
};

}  // namespace

static_assert(sizeof(DotPanels) <= gemm_workspace_bytes);
extern const AddedKernels avxvnni_kernels;
constinit const AddedKernels avxvnni_kernels = {.name = "avxvnni",
                                                .block = {.panels = dot_panels<ByteDots>,
                                                          .panel_numbers = PanelNumbers::dots,
                                                          .rows = block_rows,
                                                          .rows_longest = block_rows_longest}};
}  // namespace linnet
