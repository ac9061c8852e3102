// C = start + A · B in bf16 where vectors have dot products of pairs (AVX512-BF16): the products of training.
// A register tile as in gemm.inl, over words of two bf16. `Dots` has the instruction, or in tests what it is
// said to do.
#pragma once
#include "kernels/bf16/packing.inl"

namespace linnet {
namespace {

constexpr int dot_rows = 14;

/// R rows of A times P panels of 16 columns of B, added to their start.
template <class Dots, int R, int P>
void dot_tile(int64_t steps, const float* a, const float* b, int64_t columns, const TileTarget& t) {
    constexpr int each = tile_side / W, vectors = P * each;
    const int64_t panel = steps * tile_words;
    Vec acc[R][vectors];
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        if (!t.bf16) __builtin_prefetch(t.c + i * t.c_row, 1);
        if (!t.bf16 && P == 2) __builtin_prefetch(t.c + i * t.c_row + tile_side, 1);
        LINNET_UNROLL
        for (int v = 0; v < vectors; v++) acc[i][v] = zero();
    }
    for (int64_t p = 0; p < steps * tile_depth / 2; p++, a += tile_side, b += tile_side) {
        Vec column[vectors];
        LINNET_UNROLL
        for (int v = 0; v < vectors; v++) column[v] = load(b + v / each * panel + v % each * W);
        LINNET_UNROLL
        for (int i = 0; i < R; i++) {
            Vec x = set1(a[i]);
            LINNET_UNROLL
            for (int v = 0; v < vectors; v++) acc[i][v] = Dots::add(acc[i][v], x, column[v]);
        }
    }
    LINNET_UNROLL
    for (int v = 0; v < vectors; v++) {
        const int64_t lanes = most(0, least(W, columns - v * W));
        if (lanes == 0) break;
        Vec bias = bias_at(t, v * W, lanes);
        LINNET_UNROLL
        for (int i = 0; i < R; i++) put_product(t, i, v * W, lanes, bias, acc[i][v]);
    }
}

template <class Dots>
constexpr auto dot_tiles = tile_table<2, dot_rows>([]<int R, int P>() { return dot_tile<Dots, R, P>; });

template <class Dots>
struct DotProduct {
    explicit DotProduct(BF16Panels&) {}
    static constexpr bool split = false, pairs_first = true;
    static constexpr int64_t side = dot_rows, rows = dot_rows, depth = 1024, longest = depth;
    static constexpr bool b_near = false;  // as the tiles have it was not timed

    static void block(const Gemm<Real>& g, const BF16Block& at) {
        const int64_t columns = least(tile_block, at.j_end - at.j);
        dot_tiles<Dots>.at[columns > tile_side ? 2 : 1][least(rows, at.i_end - at.i)](
            at.steps, at.a, at.b, columns, tile_target(g, at.i, at.j, W, at.first));
    }
};

}  // namespace
}  // namespace linnet
