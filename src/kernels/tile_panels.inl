// C = start + A · Wᵀ for many rows of A on matrix units: the product of reading. W is of a block type, f16 or
// bf16.
//
// 32 rows of W are unpacked into cache as bf16 and multiplied with all rows of A, which were rounded to bf16
// before; the next 32 are unpacked meanwhile. The instruction takes pairs of k, interleaved in its second
// operand only; that is A, so that W is stored as it is unpacked, and tiles of C come out transposed. Weights
// of a block type lose less by bf16 than they have lost by their type, and activations less than llama.cpp's
// bytes. f16 and bf16 lose nothing: what bf16 leaves of a number is a second bf16, and the sum is high · high
// + high · low + low · high (Henry, Tang & Heinecke 2019); low · low is below f32's rounding. A W of bf16 has
// no low part.
//
// An output is one chain of tile products per chunk of K in the order of K, then the chunks in turn: the same
// bits whatever part is asked for. `Tiles` is TileInstructions, or in tests what they are said to do, in
// plain C++.
#pragma once
#include "kernels/bf16/packing.inl"
#include "kernels/bf16/tile_products.inl"
#include "kernels/stored.inl"

namespace linnet {
namespace {

// Of A, 256 rows and 2048 numbers of K (1024 and their low parts) stand in L2 as bf16, beside two panels of
// 32 rows of W; tiles of both are read from there past L1. Over that depth sums stay in registers: with
// pieces of W small enough for L1, loading and storing the sums cost more than L1 saved. Where K is longer
// they wait as tiles, one after another: added to C in place, whose rows are pages apart, they took as long
// as the products.
constexpr int64_t a_rows = 256, a_depth = 2048;
constexpr int64_t c_columns = 2048;           // for which A is packed once, where K is longer
constexpr int64_t tile_row = tile_depth / 2;  // words
// Words from tile to tile of 32 rows of W. Not a power of two: a row's tiles would share two sets of L1.
constexpr int64_t w_step = (tile_block + 1) * tile_row;

struct TilePanels {
    alignas(64) float a[a_rows * a_depth / 2];  // words: pairs of bf16
    alignas(64) float w[2][w_step * a_depth / tile_depth];
    alignas(64) float sums[a_rows * c_columns];  // blocks [32 of W][32 of A]
};

/// n ≤ 256 weights of a block type, of a row of W, as bf16 in tiles. Neither a code times a scale nor what is
/// left after the offset is rounded before it becomes bf16.
template <class Block>
inline void blocks_to_tiles(const char* from, int64_t n, float* to) {
    char copy[run_bytes<Block>];
    const char* run = whole_run<Block>(from, n, copy);
    const Scales s = Block::scales(run);
    alignas(32) float scale[2][8], offset[2][8];
    for (int half = 0; half < (Block::group == 16 ? 2 : 1); half++) {
        put_vector(scale[half], s.scale[half]);
        put_vector(offset[half], code_offset<Block>(s, half));
    }
    each_group([&]<int g>() LINNET_LAMBDA_INLINE {
        if (32 * g >= n) return;
        Vec w[32 / W];
        widen_bytes(Block::template codes<g>(run), w);
        for (int i = 0; i < 32 / W; i++) {
            const int half = Block::group == 16 && i * W >= 16;
            const Vec by = set1(scale[half][g]);
            if constexpr (adds_offset<Block>)
                w[i] = fma(w[i], by, set1(offset[half][g]));
            else
                w[i] = w[i] * by;
        }
        Vec none;
        for (int i = 0; i < 32 / W; i += 2)
            store(to + g * w_step + i / 2 * W, bf16_words<false>(w[i], w[i + 1], none));
    });
}

/// A piece of K: [begin, begin + depth), in `steps` tiles.
struct Piece {
    int64_t begin, depth, steps;
    bool low_a, low_w;  // whether A, and W, have low parts
};
/// Whether A has low parts with a W of this type, and whether W has: bf16 leaves nothing of bf16.
inline bool splits(DType w) {
    return w == DType::f16 || w == DType::bf16;
}
inline bool has_low(DType w) {
    return w == DType::f16;
}
inline Piece piece_of(int64_t begin, int64_t end, DType w) {
    return {.begin = begin,
            .depth = end - begin,
            .steps = ceil_divide(end - begin, tile_depth),
            .low_a = splits(w),
            .low_w = has_low(w)};
}

/// Unpacks n ≤ 256 numbers of row j of W, from number k on, into tiles.
using UnpackRun = void (*)(const Operand& w, int64_t j, int64_t k, int64_t n, float* high, float* low);

/// The last tile is filled up with zeros.
template <class Stored>
void unpack_numbers(const Operand& w, int64_t j, int64_t k, int64_t n, float* high, float* low) {
    const auto* x = reinterpret_cast<const typename Stored::Element*>(stored_at(w, j, k));
    for (int64_t p = 0; p < n; p += tile_depth, high += w_step, low += w_step) {
        for (int64_t i = p; i < p + tile_depth; i += 2 * W) {
            Vec left;
            store(high + (i - p) / 2, words_along<Stored, true>(x + i, n - i, left));
            if (has_low(w.type)) store(low + (i - p) / 2, left);
        }
    }
}
template <class Block>
void unpack_blocks(const Operand& w, int64_t j, int64_t k, int64_t n, float* to, float*) {
    blocks_to_tiles<Block>(block_at<Block>(w, j, k), n, to);
}
inline UnpackRun unpack_run(DType type) {
    UnpackRun unpack = type == DType::f16 ? unpack_numbers<StoredF16> : unpack_numbers<StoredBF16>;
    AllBlockTypes::with(type, [&](auto block) { unpack = unpack_blocks<decltype(block)>; });
    return unpack;
}

/// 32 rows of W from j on (those from `end` on are 0) as a panel: [steps][32 rows][32], then the low parts
/// (of f16) likewise. It is made in parts of one row and 256 numbers, row after row: the processor fetches
/// memory ahead by itself in that order, and better than prefetches, which take the line buffers that loads
/// of tiles need.
class PanelOfW {
  public:
    PanelOfW(const Operand& w, int64_t j, int64_t end, const Piece& piece, float* panel)
        : w_(w), j_(j), rows_(most(0, least(tile_block, end - j))), piece_(piece), panel_(panel) {}

    int64_t parts() const { return rows_ > 0 ? tile_block * runs_ : 0; }
    void make(int64_t part) const {
        const int64_t row = part / runs_, k = part % runs_ * run_length;
        const int64_t n = least(run_length, piece_.depth - k), low = piece_.steps * w_step;
        float* to = panel_ + k / tile_depth * w_step + row * tile_row;
        if (row < rows_) return unpack_(w_, j_ + row, piece_.begin + k, n, to, to + low);
        for (int64_t i = 0; i < n; i += tile_depth, to += w_step) {
            __builtin_memset(to, 0, tile_row * sizeof *to);
            if (piece_.low_w) __builtin_memset(to + low, 0, tile_row * sizeof *to);
        }
    }

  private:
    const Operand& w_;
    int64_t j_, rows_;
    Piece piece_;
    float* panel_;
    int64_t runs_ = ceil_divide(piece_.depth, run_length);
    UnpackRun unpack_ = unpack_run(w_.type);
};

/// Registers 0–3 += those of W (4, 5) times those of A (6, 7): 2 × 2 tiles, or 2 × 1.
template <class Tiles, bool two>
inline void multiply_tiles() {
    Tiles::template multiply<0, 4, 6>();
    if constexpr (two) Tiles::template multiply<1, 4, 7>();
    Tiles::template multiply<2, 5, 6>();
    if constexpr (two) Tiles::template multiply<3, 5, 7>();
}
template <class Tiles>
inline void load_w(const float* w) {
    Tiles::template load_once<4>(w, tile_bytes);
    Tiles::template load_once<5>(w + tile_side * tile_row, tile_bytes);
}
template <class Tiles, bool two>
inline void load_a(const float* first, const float* second) {
    Tiles::template load_once<6>(first, tile_bytes);
    if constexpr (two) Tiles::template load_once<7>(second, tile_bytes);
}

/// Four tiles of sums, [32 of W][32 of A] in all, or the two of the first 16 rows of A.
template <class Tiles, bool two>
inline void load_sums(const float* sums) {
    constexpr int64_t row = tile_block * sizeof(float), lower = tile_side * tile_block;
    Tiles::template load<0>(sums, row);
    Tiles::template load<2>(sums + lower, row);
    if constexpr (two) Tiles::template load<1>(sums + tile_side, row);
    if constexpr (two) Tiles::template load<3>(sums + lower + tile_side, row);
}
template <class Tiles, bool two>
inline void store_sums(float* sums) {
    constexpr int64_t row = tile_block * sizeof(float), lower = tile_side * tile_block;
    Tiles::template store<0>(sums, row);
    Tiles::template store<2>(sums + lower, row);
    if constexpr (two) Tiles::template store<1>(sums + tile_side, row);
    if constexpr (two) Tiles::template store<3>(sums + lower + tile_side, row);
}

/// sums (+)= 32 rows of W times 32 (two) or 16 rows of A, whose second panel stands `panel` words after the
/// first. along(): what is to be done in each step while the matrix unit multiplies.
template <class Tiles, bool two, class Along>
void tile_sums(const Piece& piece, const float* w, const float* a, int64_t panel, float* sums,
               const Along& along) {
    if (piece.begin > 0) {
        load_sums<Tiles, two>(sums);
    } else {
        Tiles::template clear<0>();
        Tiles::template clear<1>();
        Tiles::template clear<2>();
        Tiles::template clear<3>();
    }
    const int64_t w_low = piece.steps * w_step, a_low = piece.steps * tile_words;
    for (int64_t t = 0; t < piece.steps; t++, w += w_step, a += tile_words) {
        load_w<Tiles>(w);
        if (piece.low_a) {
            load_a<Tiles, two>(a + a_low, a + panel + a_low);
            multiply_tiles<Tiles, two>();
        }
        load_a<Tiles, two>(a, a + panel);
        multiply_tiles<Tiles, two>();
        along();
        if (piece.low_w) {
            load_w<Tiles>(w + w_low);
            multiply_tiles<Tiles, two>();
        }
    }
    store_sums<Tiles, two>(sums);
}

/// Adds sums [columns of C][rows of C], transposed, to their start.
inline void add_sums(const float* sums, int64_t rows, int64_t columns, const TileTarget& target) {
    for (int64_t j = 0; j < columns; j += W) {
        const int64_t lanes = least(W, columns - j);
        Vec bias = bias_at(target, j, lanes);
        for (int64_t i = 0; i < rows; i += W) {
            Vec square[W];
            for (int k = 0; k < W; k++) square[k] = load(sums + (j + k) * tile_block + i);
            transpose(square);
            for (int64_t k = 0; k < least(W, rows - i); k++)
                put_sums(target, i + k, j, lanes, bias, square[k]);
        }
    }
}

/// Words from 16 rows of A to the next 16.
inline int64_t panel_of_a(const Piece& piece) {
    return (piece.low_a ? 2 : 1) * piece.steps * tile_words;
}

/// 32 rows of W from j on times the rows [i0, i1) of A; C is finished with the last piece of K. `next`: the
/// panel to be made meanwhile.
template <class Tiles>
void tile_column(const Gemm<Real>& g, int64_t i0, int64_t i1, int64_t j, const Piece& piece, const float* w,
                 const PanelOfW& next, float* sums, const float* a) {
    const int64_t columns = least(tile_block, g.n_end - j), blocks = ceil_divide(i1 - i0, tile_block);
    const int64_t panel = panel_of_a(piece);
    const bool last = piece.begin + piece.depth == g.k, wait = piece.depth < g.k;
    Spread parts{next.parts(), blocks * piece.steps};
    auto along = [&]() LINNET_LAMBDA_INLINE { parts.step([&](int64_t part) { next.make(part); }); };
    for (int64_t i = i0; i < i1; i += tile_block, a += 2 * panel) {
        const int64_t rows = least(tile_block, i1 - i);
        if (rows > tile_side)
            tile_sums<Tiles, true>(piece, w, a, panel, sums, along);
        else
            tile_sums<Tiles, false>(piece, w, a, panel, sums, along);
        if (last) add_sums(sums, rows, columns, tile_target(g, i, j, W));
        if (wait) sums += tile_block * tile_block;
    }
}

/// A piece of K: rows [i0, i1) of A, at most 256, and columns [j0, j1) of C.
template <class Tiles>
void tile_piece(const Gemm<Real>& g, int64_t i0, int64_t i1, int64_t j0, int64_t j1, const Piece& piece,
                TilePanels& p) {
    // Panels of 16 rows: [steps][16 pairs][16 rows], then the low parts likewise.
    (piece.low_a ? pack_panels<StoredReal, true, true, tile_side>
                 : pack_panels<StoredReal, false, true, tile_side>)(g.a, g.a.row, 1, i0, i1, piece.begin,
                                                                    piece.depth, p.a);
    const PanelOfW first(g.b, j0, j1, piece, p.w[0]);
    for (int64_t part = 0; part < first.parts(); part++) first.make(part);
    int at = 0;
    for (int64_t j = j0; j < j1; j += tile_block, at ^= 1) {
        const PanelOfW next(g.b, j + tile_block, j1, piece, p.w[at ^ 1]);
        float* sums = p.sums + (piece.depth < g.k ? (j - j0) * a_rows : 0);
        tile_column<Tiles>(g, i0, i1, j, piece, p.w[at], next, sums, p.a);
    }
}

template <class Tiles>
void tile_panels(const Gemm<Real>& g, void* workspace) {
    auto& panels = *static_cast<TilePanels*>(workspace);
    const int64_t depth = splits(g.b.type) ? a_depth / 2 : a_depth;
    const int64_t rows = even_piece(g.m_end - g.m_begin, a_rows, tile_block);
    const int64_t columns = g.k > depth ? c_columns : g.n_end - g.n_begin;
    Tiles::begin();
    for (int64_t i = g.m_begin; i < g.m_end; i += rows)
        for (int64_t j = g.n_begin; j < g.n_end; j += columns)
            for (int64_t k = 0; k < g.k; k += depth)
                tile_piece<Tiles>(g, i, least(i + rows, g.m_end), j, least(j + columns, g.n_end),
                                  piece_of(k, least(k + depth, g.k), g.b.type), panels);
    Tiles::end();
}

}  // namespace
}  // namespace linnet
