// Products in bf16 by AVX-512's dot products of pairs: what this tier adds to the one below it. One symbol
// leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/avx512.h"

#include "kernels/bf16/dot_attention.inl"

namespace linnet {
namespace {

struct PairDots {
    static LINNET_INLINE Vec add(Vec sum, Vec a, Vec b) {
        return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
    }
};

}  // namespace

extern const AddedKernels avx512bf16_kernels;
constinit const AddedKernels avx512bf16_kernels = {
    .name = "avx512bf16",
    .narrow = {.rounded = bf16_product<DotProduct<PairDots>>,
               .rounded_longest = DotProduct<PairDots>::depth,
               .attention = bf16_attention<DotUnits<PairDots>>,
               .attention_backward = bf16_attention_backward<DotUnits<PairDots>>,
               .workspace = sizeof(BF16Panels),
               .cut = {.tile_m = dot_rows, .tile_n = tile_block, .packing_a = 16, .packing_b = 16},
               .speed = 1.5}};
}  // namespace linnet
