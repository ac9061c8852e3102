// The kernels in AVX2. One symbol leaves this file: the table (tools/check_kernel_symbols.sh).
#include "kernels/simd/avx2.h"

#include "kernels/blocks/dot_panels.inl"
#include "kernels/blocks/panels.inl"
#include "kernels/blocks/rows.inl"
#include "kernels/table.inl"

namespace linnet {
namespace {

/// Products of bytes in pairs, whose sums stay in 16 bits: so types with codes of 4 bits are read 1.3 times
/// as fast as by 16-bit integers.
struct PairDots {
    /// Two products of a word's four come to each half of it.
    template <class Block>
    static constexpr int words = fits_16<Block>(2 * 8) ? 8 : 4;
    /// Where groups have 16 weights, scales cost what the sums save.
    template <class Block>
    static constexpr bool takes = Block::group == 32 && !Block::is_signed && fits_16<Block>(2 * 4);

    static LINNET_INLINE Integers begin(Integers) { return no_integers(); }
    static LINNET_INLINE Integers add(Integers some, Integers codes, Integers a) {
        Integers products;  // not the intrinsics: gcc 12 copies the sum around them
        __asm__("vpmaddubsw %3, %2, %1\n\tvpaddw %1, %0, %0"
                : "+x"(some), "=&x"(products)
                : "x"(codes), "x"(a));
        return some;
    }
    static LINNET_INLINE Integers end(Integers some, Integers sum) {
        return add_pairs(sum, some, _mm256_set1_epi16(1));
    }
};

void panels(const Gemm<Real>& g, void* workspace) {
    AllBlockTypes::with(g.b.type, [&](auto block) {
        using Block = decltype(block);
        if constexpr (PairDots::takes<Block>)
            dots_product<PairDots>(BytesOf<Block>{}, g, workspace);
        else
            block_product<Block>(g, workspace);
    });
}
template <class... Types>
consteval std::uint64_t types_by_pairs(BlockTypes<Types...>) {
    return (... | (std::uint64_t{PairDots::takes<Types>} << static_cast<int>(Types::type)));
}

}  // namespace

static_assert(sizeof(DotPanels) <= gemm_workspace_bytes);
extern const KernelTable<float> avx2_kernels;
constinit const KernelTable<float> avx2_kernels =
    with_block(make_table("avx2"), {.panels = panels,
                                    .dots_too = types_by_pairs(AllBlockTypes{}),
                                    .rows = block_rows,
                                    .rows_longest = block_rows_longest});
}  // namespace linnet
