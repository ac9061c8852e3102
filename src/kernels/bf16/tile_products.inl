// C = start + A · B in bf16 on matrix units: the products of training. Split: each number as two of bf16,
// high + low, and each product as high · high + low · high + high · low (Henry, Tang & Heinecke 2019).
//
// The instruction takes rows of A with K contiguous, [16 rows][32], and of B pairs along K interleaved,
// [16 pairs][16 columns][2].
#pragma once
#include "kernels/bf16/packing.inl"

namespace linnet {
namespace {

constexpr int64_t tile_bytes = 64;  // of a row

/// sums [32, 32], `row` apart, = two panels of A (or one) times two of B (or one), `steps` tiles deep; asks
/// for the rows of C meanwhile, where it is given.
template <class Tiles, bool split, bool two_a, bool two_b>
void product_tiles(int64_t steps, const float* a, const float* b, float* sums, int64_t row, const Real* c,
                   int64_t c_row) {
    const int64_t low = steps * tile_words, panel = (split ? 2 : 1) * low;
    auto load_rows = [&](const float* from) LINNET_LAMBDA_INLINE {
        Tiles::template load<4>(from, tile_bytes);
        if constexpr (two_a) Tiles::template load<5>(from + panel, tile_bytes);
    };
    auto load_columns = [&](const float* from) LINNET_LAMBDA_INLINE {
        Tiles::template load<6>(from, tile_bytes);
        if constexpr (two_b) Tiles::template load<7>(from + panel, tile_bytes);
    };
    auto multiply = [&]() LINNET_LAMBDA_INLINE {
        Tiles::template multiply<0, 4, 6>();
        if constexpr (two_b) Tiles::template multiply<1, 4, 7>();
        if constexpr (two_a) Tiles::template multiply<2, 5, 6>();
        if constexpr (two_a && two_b) Tiles::template multiply<3, 5, 7>();
    };
    Tiles::template clear<0>();
    if constexpr (two_b) Tiles::template clear<1>();
    if constexpr (two_a) Tiles::template clear<2>();
    if constexpr (two_a && two_b) Tiles::template clear<3>();
    const int64_t rows = c ? two_a ? tile_block : tile_side : 0, ask = ceil_divide(rows, steps);
    int64_t asked = 0;
    for (int64_t t = 0; t < steps; t++, a += tile_words, b += tile_words) {
        for (int64_t r = 0; r < ask && asked < rows; r++, asked++) {
            __builtin_prefetch(c + asked * c_row, 1);
            if constexpr (two_b) __builtin_prefetch(c + asked * c_row + tile_side, 1);
        }
        load_rows(a), load_columns(b);
        multiply();
        if constexpr (split) {
            load_rows(a + low);
            multiply();
            load_rows(a), load_columns(b + low);
            multiply();
        }
    }
    const int64_t bytes = row * static_cast<int64_t>(sizeof(float));
    Tiles::template store<0>(sums, bytes);
    if constexpr (two_b) Tiles::template store<1>(sums + tile_side, bytes);
    if constexpr (two_a) Tiles::template store<2>(sums + tile_side * row, bytes);
    if constexpr (two_a && two_b) Tiles::template store<3>(sums + tile_side * row + tile_side, bytes);
}

template <class Tiles, bool in_two>
struct TileProduct {
    static constexpr bool split = in_two, pairs_first = false;
    static constexpr int64_t side = tile_side, rows = tile_block, depth = split ? bf16_depth / 2 : bf16_depth;
    static void begin() { Tiles::begin(); }
    static void end() { Tiles::end(); }

    static void block(const Gemm<Real>& g, const BF16Block& at, float* sums) {
        const int64_t count = least(rows, at.i_end - at.i), columns = least(tile_block, at.j_end - at.j);
        const TileTarget target = tile_target(g, at.i, at.j, W, at.first);
        const bool two_a = count > tile_side, two_b = columns > tile_side;
        (two_a   ? two_b ? product_tiles<Tiles, split, true, true> : product_tiles<Tiles, split, true, false>
           : two_b ? product_tiles<Tiles, split, false, true>
                 : product_tiles<Tiles, split, false, false>)(at.steps, at.a, at.b, sums, tile_block,
                                                              target.c, target.c_row);
        for (int64_t c = 0; c < columns; c += W) {
            const int64_t lanes = least(W, columns - c);
            const Vec bias = bias_at(target, c, lanes);
            for (int64_t r = 0; r < count; r++)
                put_sums(target, r, c, lanes, bias, load(sums + r * tile_block + c));
        }
    }
};

}  // namespace
}  // namespace linnet
