// C = start + A·B by packed panels and a register tile (Goto & van de Geijn 2008; Van Zee & van de Geijn
// 2015).
//
// Operands are copied into panels that the innermost loop reads in order (A only where that pays): A as
// [K][tile_rows], B as [K][tile_vectors · W], converted to Real and padded with zeros. K is cut into equal
// blocks whose length depends on K alone, and within a block every output is one chain of fma from 0 in the
// order of k, whatever tile it falls in; so an output's bits depend on nothing but its row of A, its column
// of B and its start.
#pragma once
#include "kernels/packing.inl"

namespace linnet {
namespace {

/// acc[j] += *a · b[j]; an instruction set may have its own.
template <int NV>
LINNET_INLINE void fma_row(const Real* a, const Vec (&b)[NV], Vec (&acc)[NV]) {
    const Vec all = set1(*a);
    LINNET_UNROLL
    for (int j = 0; j < NV; j++) acc[j] = fma(all, b[j], acc[j]);
}

/// R × NV vectors of sums over `depth`, then added to their start.
template <int R, int NV, bool Packed>
void gemm_tile(int64_t depth, const Real* a, const Real* b, const TileTarget& t) {
    const char* soon = t.soon;
    int64_t a_row = Packed ? 1 : t.a_row, a_col = Packed ? tile_rows : t.a_col;
    Vec acc[R][NV];
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        __builtin_prefetch(t.c + i * t.c_row, 1);
        if (NV * W * sizeof(Real) > 64) __builtin_prefetch(t.c + i * t.c_row + (NV - 1) * W, 1);
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) acc[i][j] = zero();
    }
    LINNET_UNROLL_PAIRS
    for (int64_t p = 0; p < depth; p++) {
        Vec row[NV];
        __builtin_prefetch(soon, 0, 2);  // into L2: a panel is too large for L1
        soon += t.soon_step;
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) row[j] = load(b + j * W);
        LINNET_UNROLL
        for (int i = 0; i < R; i++) fma_row(a + i * a_row, row, acc[i]);
        a += a_col;
        b += tile_columns;
    }
    LINNET_UNROLL
    for (int j = 0; j < NV; j++) {
        int64_t lanes = j == NV - 1 ? t.last : W;
        Vec bias = bias_at(t, j * W, lanes);
        LINNET_UNROLL
        for (int i = 0; i < R; i++) put_sums(t, i, j * W, lanes, bias, acc[i][j]);
    }
}

template <bool Packed>
constexpr auto gemm_tiles = tile_table<tile_vectors, tile_rows>([]<int R, int NV>() {
    return gemm_tile<R, NV, Packed>;
});

/// Where the next panel of B lies in memory, in bytes: it is prefetched while this one is multiplied.
struct Soon {
    const char* begin;
    int64_t line, step, tiles;  // bytes from line to line, from k to k; tiles that share the prefetching

    /// What tile t prefetches: part of the lines where they are contiguous, else one cache line of every k.
    void ask(int64_t t, TileTarget& target) const {
        if (line < step) {  // one k's columns lie together
            target.soon = begin + least(t * 64, (tile_columns - 1) * line);
            target.soon_step = step;
        } else {
            target.soon = begin + t * tile_columns / tiles * line;
            target.soon_step = ceil_divide(tile_columns, tiles) * step;
        }
    }
};

/// The same of a panel that is packed: a block of them is larger than some processors' L2. Tile t of `tiles`
/// prefetches an equal part, at most one cache line for every k.
inline void ask_packed(const Real* panel, int64_t depth, int64_t t, int64_t tiles, TileTarget& target) {
    constexpr int64_t bytes = tile_columns * sizeof(Real);  // of a k
    target.soon = reinterpret_cast<const char*>(panel) + bytes * depth * t / tiles;
    target.soon_step = ceil_divide(bytes, tiles);
}

/// Rows [i0, i1), packed in a, times the columns [j0, j1), packed in b; the first block of rows packs them on
/// the way. k0 is where this block of K begins; at 0 the start is added.
inline void gemm_block(const Gemm<Real>& g, int64_t i0, int64_t i1, int64_t j0, int64_t j1, int64_t k0,
                       int64_t depth, const Real* a, Real* b) {
    bool direct = a == nullptr;
    const auto& tiles = direct ? gemm_tiles<false> : gemm_tiles<true>;
    bool first = k0 == 0, packing = i0 == g.m_begin;
    int64_t size = size_of(g.b.type);
    for (int64_t j = j0; j < j1; j += tile_columns, b += tile_columns * depth) {
        int64_t columns = least(tile_columns, j1 - j), vectors = ceil_divide(columns, W);
        if (packing) pack<tile_columns>(g.b.data, g.b.type, g.b.col, g.b.row, j, j + columns, k0, depth, b);
        const int64_t many = ceil_divide(i1 - i0, tile_rows);
        Soon soon{static_cast<const char*>(g.b.data) + ((j + tile_columns) * g.b.col + k0 * g.b.row) * size,
                  g.b.col * size, g.b.row * size, many};
        const Real* panel = direct ? static_cast<const Real*>(g.a.data) + i0 * g.a.row + k0 * g.a.col : a;
        int64_t next = tile_rows * (direct ? g.a.row : depth);
        for (int64_t i = i0; i < i1; i += tile_rows, panel += next) {
            TileTarget t = tile_target(g, i, j, columns - (vectors - 1) * W, first);
            t.soon = reinterpret_cast<const char*>(b);
            t.a_row = g.a.row, t.a_col = g.a.col;
            if (const int64_t tile = (i - i0) / tile_rows; j + tile_columns < j1)
                packing ? soon.ask(tile, t) : ask_packed(b + tile_columns * depth, depth, tile, many, t);
            tiles.at[vectors][least(tile_rows, i1 - i)](depth, panel, b, t);
        }
    }
}

/// Whether A is better read where it is. For up to 256 columns packing costs more than it saves (a tenth of
/// the product). With its columns contiguous (a weight's gradient) a tile comes back to a line per k for
/// every panel of B, and finds it evicted unless k's are near each other (MEASUREMENTS.md).
inline bool reads_a_in_place(const Gemm<Real>& g) {
    if (g.a.type != (sizeof(Real) == 4 ? DType::f32 : DType::f64)) return false;
    constexpr int64_t near = 512;  // bytes
    const bool few = g.n_end - g.n_begin <= 256;
    return few && (g.a.row != 1 || g.a.col * static_cast<int64_t>(sizeof(Real)) <= near);
}

void gemm(const Gemm<Real>& g, void* workspace) {
    Real* packed_rows = static_cast<Real*>(workspace);
    Real* packed_columns = packed_rows + packed_a;
    int64_t depth = even_piece(g.k, block_k, 1);
    bool direct = reads_a_in_place(g);
    for (int64_t j = g.n_begin; j < g.n_end; j += block_n) {
        int64_t j_end = least(j + block_n, g.n_end);
        for (int64_t p = 0; p == 0 || p < g.k; p += depth) {
            int64_t some = least(depth, g.k - p);
            for (int64_t i = g.m_begin; i < g.m_end; i += block_m) {
                int64_t i_end = least(i + block_m, g.m_end);
                if (!direct) {
                    pack<tile_rows>(g.a.data, g.a.type, g.a.row, g.a.col, i, i_end, p, some, packed_rows);
                }
                gemm_block(g, i, i_end, j, j_end, p, some, direct ? nullptr : packed_rows, packed_columns);
            }
        }
    }
}

}  // namespace
}  // namespace linnet
