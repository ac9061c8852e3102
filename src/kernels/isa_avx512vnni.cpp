// The products with block types, f16 and bf16 in AVX-512 with VNNI: what this tier adds to the one below it.
// One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/avx512.h"
#include "kernels/simd/lanes_512.h"

#include "kernels/blocks/dot_panels.inl"
#include "kernels/blocks/half_panels.inl"
#include "kernels/blocks/rows.inl"

namespace linnet {
namespace {

struct ByteDots : ByteWordDots {
    static LINNET_INLINE Integers add(Integers sum, Integers codes, Integers a) {
        // Not the intrinsic: gcc 12 copies the sum around it and keeps half of a register tile on the stack.
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(codes), "v"(a));
        return sum;
    }
};
struct PairDots : WordDots {
    static LINNET_INLINE Integers add(Integers sum, Integers w, Integers a) {
        __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(w), "v"(a));
        return sum;
    }
};

}  // namespace

static_assert(sizeof(DotPanels) <= gemm_workspace_bytes);
extern const AddedKernels avx512vnni_kernels;
constinit const AddedKernels avx512vnni_kernels = {.name = "avx512vnni",
                                                   .block = {.panels = dot_panels<ByteDots>,
                                                             .panel_numbers = PanelNumbers::dots,
                                                             .halves = half_panels<PairDots>,
                                                             .half_numbers = PanelNumbers::integers,
                                                             .rows = block_rows,
                                                             .rows_longest = block_rows_longest}};
}  // namespace linnet
