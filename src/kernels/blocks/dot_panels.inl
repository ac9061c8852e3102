// C = start + A · Wᵀ for many rows of A and weights of a block type, where a set adds four neighbouring
// products of an unsigned and a signed byte to a word (VNNI), or two of them to half a word (AVX2), for types
// whose codes are so small that sums fit there: the product of reading.
//
// Activations are rounded as for writing (activations.inl), 32 with a scale. Panels of W hold codes as
// unsigned bytes, signed ones plus 128; what that adds to a sum, zero · Σ a, is where the sum starts. Sums of
// 32 products, or of 16 where a group of the type has 16 weights (a part), are exact and get their two
// scales. 16-bit integers (panels.inl) need two instructions for the products of one here, but no scales for
// each group: on Zen 4 they read q8_0 at 0.67 and q4_k at 0.79 of this speed.
//
// `Dots` also says
//     words<Block>                  words of W that may be summed between begin and end
#pragma once
#include "kernels/blocks/activations.inl"
#include "kernels/blocks/dot_tiles.inl"

namespace linnet {
namespace {

/// What `Dots` share that sum four bytes in words.
struct ByteWordDots : WordDots {
    template <class Block>
    static constexpr int words = 8;
};

/// How the weights of a type meet bytes.
template <class Block>
struct Dotted {
    static constexpr int parts = Block::group == 16 ? 2 : 1;  // of 32 weights
    static constexpr int zero = Block::is_signed ? 128 : Block::zero;
    static_assert(!Block::is_signed || Block::zero == 0);
};

/// A row's numbers [k, k + depth) as bytes, and what their parts need, as row r of a tile.
template <class Block>
inline void dots_row(const Real* x, int64_t depth, Whole* bytes, int r, PartOfA* parts) {
    using As = Dotted<Block>;
    for (int64_t k = 0; k < depth; k += 32, parts += As::parts) {
        const WholeScale scale = scale_of(x + k, 32, byte_most);
        const HalfSums sums = bytes_of_group(x + k, scale.to, bytes + k);
        const int32_t of_part[2] = {As::parts == 1 ? sums.first + sums.second : sums.first, sums.second};
        for (int part = 0; part < As::parts; part++) {
            parts[part].start[r] = -As::zero * of_part[part];
            parts[part].d[r] = scale.back;
            parts[part].sum[r] = scale.back * static_cast<float>(of_part[part]);
        }
    }
}
/// 256 weights or fewer, as a line of a panel of W.
template <class Block>
inline void dots_run(const char* from, int64_t count, Byte* codes, float* scales, float* offsets) {
    constexpr int parts = Dotted<Block>::parts;
    char copy[run_bytes<Block>];
    const char* run = whole_run<Block>(from, count, copy);
    const Scales s = Block::scales(run);
    each_group([&]<int g>() LINNET_LAMBDA_INLINE {
        if (32 * g >= count) return;
        Bytes32 c = Block::template codes<g>(run);
        if constexpr (Block::is_signed) c ^= 128;
        put_vector(codes + 32 * g, c);
        for (int part = 0; part < parts; part++) {
            scales[g * parts + part] = s.scale[part][g];
            if constexpr (Block::has_offset) offsets[g * parts + part] = s.offset[part][g];
        }
    });
}
/// The words of a product with weights of a block type.
template <class Block>
struct BytesOf {
    static constexpr int64_t row_words = dots_words;
    static constexpr int64_t rows_ahead = 0;  // with 2, prompts of 512 in q8_0 at 124M were 3 % slower
    static constexpr int words = 8 / Dotted<Block>::parts;
    template <class Dots>
    static constexpr int pieces =
        Dots::template words<Block> < words ? words / Dots::template words<Block> : 1;
    static constexpr bool offsets = Block::has_offset;

    static int64_t depth() { return 4 * dots_words; }
    static int64_t parts(int64_t d) { return d / 32 * Dotted<Block>::parts; }
    static int64_t words_of_part() { return words; }
    static void row(const Real* x, int64_t d, float* lines, int r, PartOfA* parts) {
        dots_row<Block>(x, d, reinterpret_cast<Whole*>(lines), r, parts);
    }
    static void line(const Operand& w, int64_t j, int64_t k, int64_t d, float* lines, float* scales,
                     float* offset) {
        for (int64_t i = 0; i < d; i += run_length) {
            const int64_t part = parts(i);
            dots_run<Block>(at(w, j, k + i), d - i, reinterpret_cast<Byte*>(lines) + i, scales + part,
                            offset + part);
        }
    }
    static const char* at(const Operand& w, int64_t j, int64_t k) { return block_at<Block>(w, j, k); }
    static int64_t bytes(int64_t d) { return d / Block::elements * Block::bytes; }
};

template <class Dots>
void dot_panels(const Gemm<Real>& g, void* workspace) {
    AllBlockTypes::with(g.b.type,
                        [&](auto block) { dots_product<Dots>(BytesOf<decltype(block)>{}, g, workspace); });
}

}  // namespace
}  // namespace linnet
