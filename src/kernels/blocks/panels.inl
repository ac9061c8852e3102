// C = start + A · Wᵀ for many rows of A and weights of a block type: the product of reading.
//
// Panels of W are unpacked into cache as they are needed and multiplied with all rows. Where a set's
// multiply-add of pairs of 16-bit integers is twice as fast as its fma (AVX2, AVX-512), both operands become
// such integers: 256 of a row share a scale, weights have 11 bits and a sign, activations 12, so that the 256
// products add up exactly in 32 bits. The rounding costs about 2e-4 of the largest weight in 256, a tenth of
// what a byte would.
#pragma once
#include "kernels/blocks/activations.inl"
#include "kernels/packing.inl"
#include "kernels/stored.inl"

namespace linnet {
namespace {

constexpr float weight_most = 2047, activation_most = 4095;
static_assert(256.0 * 2047 * 4095 < 2147483648.0);

constexpr int64_t panel_depth = run_length, panel_pairs = panel_depth / 2;
constexpr int64_t panel_rows_most = (520 + pair_rows - 1) / pair_rows * pair_rows;  // of A, at once in L2

/// Where a member keeps its panels: pairs of integers, each pair as the bits of one float, because the panels
/// are packed by the same code as those of floats.
struct BlockPanels {
    alignas(64) float a[panel_rows_most * panel_pairs + 64];
    alignas(64) float b[tile_columns * panel_pairs + 64];
    alignas(64) float rows[(tile_columns > pair_rows ? tile_columns : pair_rows) * panel_pairs];
    alignas(64) float a_scale[panel_rows_most];
    alignas(64) float b_scale[tile_columns + W];
    alignas(64) float wide[panel_depth];
};
static_assert(sizeof(BlockPanels) <= gemm_workspace_bytes);

/// n numbers, a multiple of 32, as 16-bit integers of at most `most`; returns the scale that makes them so.
inline float whole_16(const float* x, int64_t n, float most, float* to) {
    const WholeScale scale = scale_of(x, n, most);
    for (int64_t i = 0; i < n; i += 8) {
        Ints8 q = __builtin_convertvector(rounded(get_vector<Floats8>(x + i) * all_of(scale.to)), Ints8);
        put_vector(to + i / 2, __builtin_convertvector(q, Shorts8));
    }
    return scale.back;
}

/// Words [count][depth / 2] as a panel [depth / 2][P].
template <int P>
inline void pack_pairs(const float* words, int64_t count, int64_t pairs, float* panel) {
    pack_panel<StoredF32, P>(words, panel_pairs, 1, count, pairs, panel);
}

/// Rows [i0, i1) of A, columns [k0, k0 + depth).
inline void pack_activations(const Gemm<Real>& g, int64_t i0, int64_t i1, int64_t k0, int64_t depth,
                             BlockPanels& p) {
    float* to = p.a;
    for (int64_t i = i0; i < i1; i += pair_rows, to += pair_rows * (depth / 2)) {
        int64_t rows = least(pair_rows, i1 - i);
        for (int64_t r = 0; r < rows; r++) {
            const Real* x = static_cast<const Real*>(g.a.data) + (i + r) * g.a.row + k0;
            p.a_scale[i - i0 + r] = whole_16(x, depth, activation_most, p.rows + r * panel_pairs);
        }
        pack_pairs<pair_rows>(p.rows, rows, depth / 2, to);
    }
}

/// Rows [j, j + count) of W, columns [k0, k0 + depth).
template <class Block>
inline void pack_weights(const Gemm<Real>& g, int64_t j, int64_t count, int64_t k0, int64_t depth,
                         BlockPanels& p) {
    for (int64_t c = 0; c < count; c++) {
        load_run<Block>(block_at<Block>(g.b, j + c, k0), depth, p.wide);
        p.b_scale[c] = whole_16(p.wide, depth, weight_most, p.rows + c * panel_pairs);
    }
    pack_pairs<tile_columns>(p.rows, count, depth / 2, p.b);
}

/// R × NV vectors of exact sums, times their scales, added to their start.
template <int R, int NV>
void block_tile(int64_t pairs, const float* a, const float* b, const float* a_scale, const float* b_scale,
                const TileTarget& t) {
    Integers acc[R][NV];
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) acc[i][j] = no_integers();
    }
    for (int64_t p = 0; p < pairs; p++) {
        Integers column[NV];
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) column[j] = load_integers(b + j * W);
        LINNET_UNROLL
        for (int i = 0; i < R; i++) {
            Integers x = set1_integer(__builtin_bit_cast(int32_t, a[i]));
            LINNET_UNROLL
            for (int j = 0; j < NV; j++) acc[i][j] = add_pairs(acc[i][j], x, column[j]);
        }
        a += pair_rows;
        b += tile_columns;
    }
    LINNET_UNROLL
    for (int j = 0; j < NV; j++) {
        int64_t lanes = j == NV - 1 ? t.last : W;
        Vec bias = bias_at(t, j * W, lanes), scale = load(b_scale + j * W);
        LINNET_UNROLL
        for (int i = 0; i < R; i++)
            put_sums(t, i, j * W, lanes, bias, to_real(acc[i][j]) * (scale * set1(a_scale[i])));
    }
}

constexpr auto block_tiles =
    tile_table<tile_vectors, pair_rows>([]<int R, int NV>() { return block_tile<R, NV>; });

/// Rows [i0, i1), of one block of K.
template <class Block>
void block_panel(const Gemm<Real>& g, int64_t i0, int64_t i1, int64_t k0, BlockPanels& p) {
    const int64_t depth = least(panel_depth, g.k - k0), pairs = depth / 2;
    const bool first = k0 == 0;
    pack_activations(g, i0, i1, k0, depth, p);
    for (int64_t j = g.n_begin; j < g.n_end; j += tile_columns) {
        int64_t columns = least(tile_columns, g.n_end - j), vectors = ceil_divide(columns, W);
        pack_weights<Block>(g, j, columns, k0, depth, p);
        for (int64_t i = i0; i < i1; i += pair_rows) {
            TileTarget t = tile_target(g, i, j, columns - (vectors - 1) * W, first);
            block_tiles.at[vectors][least(pair_rows, i1 - i)](pairs, p.a + (i - i0) * pairs, p.b,
                                                              p.a_scale + (i - i0), p.b_scale, t);
        }
    }
}

template <class Block>
void block_product(const Gemm<Real>& g, void* workspace) {
    auto& panels = *static_cast<BlockPanels*>(workspace);
    const int64_t rows = even_piece(g.m_end - g.m_begin, panel_rows_most, pair_rows);
    for (int64_t i = g.m_begin; i < g.m_end; i += rows)
        for (int64_t k = 0; k < g.k; k += panel_depth)
            block_panel<Block>(g, i, least(i + rows, g.m_end), k, panels);
}

[[maybe_unused]] void block_panels(const Gemm<Real>& g, void* workspace) {
    AllBlockTypes::with(g.b.type, [&](auto block) { block_product<decltype(block)>(g, workspace); });
}

}  // namespace
}  // namespace linnet
