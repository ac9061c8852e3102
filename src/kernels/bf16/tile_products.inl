// C = start + A · B in bf16 on matrix units: the products of training, and attention's. Split: each number as
// two of bf16, high + low, and each product as high · high + low · high + high · low (Henry, Tang & Heinecke
// 2019).
//
// The instruction takes rows of A with K contiguous, [16 rows][32], and of B pairs along K interleaved,
// [16 pairs][16 columns][2].
#pragma once
#include "kernels/bf16/packing.inl"

namespace linnet {
namespace {

constexpr int64_t tile_bytes = 64;  // of a row
constexpr int64_t cache_line = 64;

/// `count` things to do in `steps` steps, evenly: step(), to be called `steps` times, calls act(i) for those
/// whose turn it is.
struct Spread {
    int64_t count, steps, done = 0, due = 0;
    template <class Act>
    LINNET_INLINE void step(const Act& act) {
        for (due += count; due >= steps; due -= steps) act(done++);
    }
};

/// Row r of a block of C from its sums. Where C is bf16, whole rows are stored at once: each store holds up
/// the loads of tiles behind it.
LINNET_INLINE void put_row(const TileTarget& t, int64_t r, int64_t columns, const float* sums) {
    if (t.bf16 && !t.add && columns == tile_block) {
        Real row[tile_block];
        for (int64_t c = 0; c < tile_block; c += W) {
            const Vec sum = load(sums + c);
            store(row + c, t.bias ? sum + load(t.bias + c) : sum);
        }
        return put_bf16_row(t.bf16 + r * t.c_row, row);
    }
    for (int64_t c = 0; c < columns; c += W) {
        const int64_t lanes = least(W, columns - c);
        put_product(t, r, c, lanes, bias_at(t, c, lanes), load(sums + c));
    }
}

/// Register t; once: it is not to stay in L1.
template <class Tiles, int t, bool once>
LINNET_INLINE void load_tile(const float* from) {
    if constexpr (once)
        Tiles::template load_once<t>(from, tile_bytes);
    else
        Tiles::template load<t>(from, tile_bytes);
}

/// Two panels of A (or one) and two of B (or one), their words, and how many tiles of each are multiplied.
struct TileOperands {
    const float *a, *b;
    int64_t a_panel, b_panel, steps;
};

/// The registers of sums [32, 32] in their order, `row` apart.
template <bool two_a, bool two_b, class Act>
LINNET_INLINE void each_sum(float* sums, int64_t row, const Act& act) {
    act(std::integral_constant<int, 0>{}, sums);
    if constexpr (two_b) act(std::integral_constant<int, 1>{}, sums + tile_side);
    if constexpr (two_a) act(std::integral_constant<int, 2>{}, sums + tile_side * row);
    if constexpr (two_a && two_b) act(std::integral_constant<int, 3>{}, sums + tile_side * row + tile_side);
}

/// sums [32, 32], `row` apart, = A · B, or += where `onto`. One operand stays in L1 for the next block as far
/// as it fits, the other, B where b_near, comes from L2 and is read once. along(): what is to be done in each
/// step while the matrix unit multiplies.
template <class Tiles, bool split, bool b_near, bool onto, bool two_a, bool two_b, class Along>
void product_tiles(const TileOperands& p, float* sums, int64_t row, Along& along) {
    // A panel's low parts stand behind its high ones.
    const int64_t a_low = p.a_panel / 2, b_low = p.b_panel / 2;
    const float *a = p.a, *b = p.b;
    auto load_rows = [&](const float* from) LINNET_LAMBDA_INLINE {
        load_tile<Tiles, 4, !b_near>(from);
        if constexpr (two_a) load_tile<Tiles, 5, !b_near>(from + p.a_panel);
    };
    auto load_columns = [&](const float* from) LINNET_LAMBDA_INLINE {
        load_tile<Tiles, 6, b_near>(from);
        if constexpr (two_b) load_tile<Tiles, 7, b_near>(from + p.b_panel);
    };
    auto multiply = [&]() LINNET_LAMBDA_INLINE {
        Tiles::template multiply<0, 4, 6>();
        if constexpr (two_b) Tiles::template multiply<1, 4, 7>();
        if constexpr (two_a) Tiles::template multiply<2, 5, 6>();
        if constexpr (two_a && two_b) Tiles::template multiply<3, 5, 7>();
    };
    const int64_t bytes = row * static_cast<int64_t>(sizeof(float));
    each_sum<two_a, two_b>(sums, row, [&](auto t, const float* from) LINNET_LAMBDA_INLINE {
        if constexpr (onto)
            Tiles::template load<t>(from, bytes);
        else
            Tiles::template clear<t>();
    });
    for (int64_t t = 0; t < p.steps; t++, a += tile_words, b += tile_words) {
        load_rows(a), load_columns(b);
        multiply();
        along();
        if constexpr (split) {
            load_rows(a + a_low);
            multiply();
            load_rows(a), load_columns(b + b_low);
            multiply();
        }
    }
    each_sum<two_a, two_b>(
        sums, row, [&](auto t, float* to) LINNET_LAMBDA_INLINE { Tiles::template store<t>(to, bytes); });
}

/// The same, of what the two flags say.
template <class Tiles, bool split, bool b_near, bool onto, class Along>
void product_block(bool two_a, bool two_b, const TileOperands& panels, float* sums, int64_t row,
                   Along&& along) {
    using Step = std::remove_reference_t<Along>;
    auto* const tiles = two_a   ? two_b ? product_tiles<Tiles, split, b_near, onto, true, true, Step>
                                        : product_tiles<Tiles, split, b_near, onto, true, false, Step>
                          : two_b ? product_tiles<Tiles, split, b_near, onto, false, true, Step>
                                : product_tiles<Tiles, split, b_near, onto, false, false, Step>;
    tiles(panels, sums, row, along);
}

template <class Tiles, bool in_two>
class TileProduct {
  public:
    static constexpr bool split = in_two, pairs_first = false;
    static constexpr bool b_near = true;
    static constexpr int64_t side = tile_side, rows = tile_block;
    // Pieces of K: 768 numbers of 32 lines are what L1 holds. Only a C of f32 can be made in pieces.
    static constexpr int64_t depth = split ? 384 : 768, longest = split ? bf16_depth / 2 : bf16_depth;

    explicit TileProduct(BF16Panels& work) : sums_(work.sums) { Tiles::begin(); }
    ~TileProduct() { Tiles::end(); }

    void block(const Gemm<Real>& g, const BF16Block& at) const {
        const int64_t count = least(rows, at.i_end - at.i), columns = least(tile_block, at.j_end - at.j);
        const TileTarget target = tile_target(g, at.i, at.j, W, at.first);
        Spread next{at.next_lines, at.steps};
        const int64_t panel = (split ? 2 : 1) * at.steps * tile_words;
        product_block<Tiles, split, b_near, false>(
            count > tile_side, columns > tile_side, {at.a, at.b, panel, panel, at.steps}, sums_, tile_block,
            [&]() LINNET_LAMBDA_INLINE {
                next.step([&](int64_t l) { __builtin_prefetch(at.next + l * cache_line, 0, 2); });
            });
        for (int64_t r = 0; r < count; r++) put_row(target, r, columns, sums_ + r * tile_block);
    }

  private:
    float* sums_;
};

}  // namespace
}  // namespace linnet
