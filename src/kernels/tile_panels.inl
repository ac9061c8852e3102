// C = start + A · Wᵀ for many rows of A on matrix units: the product of reading. W is of a block type, f16 or
// bf16.
//
// 32 rows of W are unpacked into cache as bf16 and multiplied with all rows of A, which were rounded to bf16
// before. The instruction takes pairs of k, interleaved in its second operand only; that is A, so that W is
// stored as it is unpacked, and tiles of C come out transposed. Weights of a block type lose less by bf16
// than they have lost by their type, and activations less than llama.cpp's bytes. f16 and bf16 lose nothing:
// what bf16 leaves of a number is a second bf16, and the sum is high · high + high · low + low · high (Henry,
// Tang & Heinecke 2019); low · low is below f32's rounding.
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

// K is cut twice. Of A, 512 rows and 1024 numbers stand in L2 as bf16 (512 and their low parts); of W, 32
// rows and 256 numbers (and their low parts) in a third of L1: with twice as many, what comes of A evicts
// them, and products take an eighth longer. Sums that are not finished wait as tiles, one after another:
// added to C in place, whose rows are pages apart, they took as long as the products.
constexpr int64_t a_rows = 512, a_depth = 1024, w_depth = 256;
constexpr int64_t c_columns = 1024;  // for which A is packed once
// From tile to tile of 32 rows of W. Not a power of two: a row's tiles would share two sets of L1.
constexpr int64_t w_step = (tile_block + 1) * tile_depth;

struct TilePanels {
    alignas(64) float a[a_rows * a_depth / 2];  // words: pairs of bf16
    alignas(64) uint16_t w[w_step * 2 * w_depth / tile_depth];
    alignas(64) float wide[w_depth];
    alignas(64) float sums[a_rows * c_columns];  // blocks [32 of W][32 of A]
};

/// n numbers of a row of W as bf16 in tiles, the last one filled up with zeros, and in `low` what that leaves
/// of them.
inline void numbers_to_tiles(const float* x, int64_t n, uint16_t* high, uint16_t* low) {
    for (int64_t p = 0; p < n; p += tile_depth, high += w_step, low += w_step) {
        for (int64_t i = 0; i < tile_depth; i += W) {
            const int64_t some = n - p - i;
            Vec v = some >= W ? load(x + p + i) : load_n(x + p + i, most(0, some));
            Vec rounded = StoredBF16::put(high + i, v);
            StoredBF16::put(low + i, v - rounded);
        }
    }
}

/// n weights of a block type likewise, without low parts. Neither a code times a scale nor what is left
/// after the offset is rounded before it becomes bf16.
template <class Block>
inline void blocks_to_tiles(const char* from, int64_t n, uint16_t* to) {
    for (; n > 0; n -= run_length, from += run_bytes<Block>, to += run_length / tile_depth * w_step) {
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
            alignas(32) Whole q[32];
            put_vector(q, Block::template codes<g>(run));
            for (int64_t i = 0; i < 32; i += W) {
                const int half = Block::group == 16 && i >= 16;
                Vec w = widen_bytes(q + i), by = set1(scale[half][g]);
                if constexpr (adds_offset<Block>)
                    w = fma(w, by, set1(offset[half][g]));
                else
                    w = w * by;
                StoredBF16::put(to + g * w_step + i, w);
            }
        });
    }
}

/// A piece of K: [begin, begin + depth), in `steps` tiles.
struct Piece {
    int64_t begin, depth, steps;
    bool split;  // into high and low parts
};
inline Piece piece_of(int64_t begin, int64_t end, bool split) {
    return {begin, end - begin, ceil_divide(end - begin, tile_depth), split};
}

/// 16 rows of A (those from `count` on are 0): [steps][16 pairs][16 rows], then the low parts likewise.
template <bool split>
void pack_tile_rows(const Real* x, int64_t row, int64_t count, const Piece& piece, float* to) {
    for (int64_t t = 0; t < piece.steps; t++, x += tile_depth, to += tile_words) {
        const int64_t some = least(tile_depth, piece.depth - t * tile_depth);
        for (int64_t pair = 0; pair < tile_depth / 2; pair += W) {
            for (int64_t r = 0; r < tile_side; r += W) {
                Vec high[W], low[W];
                for (int64_t i = 0; i < W; i++) {
                    high[i] = low[i] = zero();
                    if (r + i >= count) continue;
                    const Real* from = x + (r + i) * row;
                    Real filled[tile_depth];
                    if (some < tile_depth) {
                        for (int64_t k = 0; k < tile_depth; k++) filled[k] = k < some ? from[k] : 0;
                        from = filled;
                    }
                    high[i] = bf16_words<split>(from + 2 * pair, low[i]);
                }
                transpose(high);
                for (int64_t i = 0; i < W; i++) store(to + (pair + i) * tile_side + r, high[i]);
                if constexpr (split) {
                    transpose(low);
                    float* behind = to + piece.steps * tile_words;
                    for (int64_t i = 0; i < W; i++) store(behind + (pair + i) * tile_side + r, low[i]);
                }
            }
        }
    }
}

/// Rows [j, j + count) of W, count <= 32: [steps][32 rows][32], then the low parts likewise.
inline void unpack_tile_rows(const Gemm<Real>& g, int64_t j, int64_t count, const Piece& piece,
                             TilePanels& p) {
    auto row = [&](int64_t r) { return p.w + r * tile_depth; };
    bool blocks = AllBlockTypes::with(g.b.type, [&](auto block) {
        using Block = decltype(block);
        for (int64_t r = 0; r < count; r++)
            blocks_to_tiles<Block>(block_at<Block>(g.b, j + r, piece.begin), piece.depth, row(r));
    });
    for (int64_t r = 0; r < count && !blocks; r++) {
        load_stored(piece.depth, g.b.type, stored_at(g.b, j + r, piece.begin), p.wide);
        numbers_to_tiles(p.wide, piece.depth, row(r), row(r) + piece.steps * w_step);
    }
    for (int64_t r = count; r < tile_block; r++)
        for (int64_t t = 0; t < (piece.split ? 2 : 1) * piece.steps; t++)
            __builtin_memset(row(r) + t * w_step, 0, tile_depth * sizeof(uint16_t));
}

/// Registers 0–3 += those of W (4, 5) times those of A (6, 7): 2 × 2 tiles, or 2 × 1.
template <class Tiles, bool two>
inline void multiply_tiles() {
    Tiles::template multiply<0, 4, 6>();
    if constexpr (two) Tiles::template multiply<1, 4, 7>();
    Tiles::template multiply<2, 5, 6>();
    if constexpr (two) Tiles::template multiply<3, 5, 7>();
}
template <class Tiles>
inline void load_w(const uint16_t* w) {
    Tiles::template load<4>(w, tile_bytes);
    Tiles::template load<5>(w + tile_side * tile_depth, tile_bytes);
}
template <class Tiles, bool two>
inline void load_a(const float* first, const float* second) {
    Tiles::template load<6>(first, tile_bytes);
    if constexpr (two) Tiles::template load<7>(second, tile_bytes);
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
/// first, and whose low parts a_low after the high ones.
template <class Tiles, bool two>
void tile_sums(const Piece& piece, const uint16_t* w, const float* a, int64_t panel, int64_t a_low, bool add,
               float* sums) {
    if (add) {
        load_sums<Tiles, two>(sums);
    } else {
        Tiles::template clear<0>();
        Tiles::template clear<1>();
        Tiles::template clear<2>();
        Tiles::template clear<3>();
    }
    const int64_t w_low = piece.steps * w_step;
    for (int64_t t = 0; t < piece.steps; t++, w += w_step, a += tile_words) {
        load_w<Tiles>(w);
        if (piece.split) {
            load_a<Tiles, two>(a + a_low, a + panel + a_low);
            multiply_tiles<Tiles, two>();
        }
        load_a<Tiles, two>(a, a + panel);
        multiply_tiles<Tiles, two>();
        if (piece.split) {
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

/// Prefetches part `part` of `parts` of the next rows of W, while these are multiplied.
inline void prefetch_rows(const Gemm<Real>& g, int64_t j, const Piece& piece, int64_t part, int64_t parts) {
    const int64_t end = least(tile_block, g.n_end - j) * (part + 1) / parts;
    const int64_t bytes = bytes_of(g.b.type, piece.depth);
    for (int64_t r = tile_block * part / parts; r < end; r++) {
        const char* from = stored_at(g.b, j + r, piece.begin);
        for (int64_t line = 0; line < bytes; line += 64) __builtin_prefetch(from + line, 0, 2);
    }
}

/// 32 rows of W from j on times the rows [i0, i1) of A, packed for `deep`; C is finished with the last piece
/// of K.
template <class Tiles>
void tile_column(const Gemm<Real>& g, int64_t i0, int64_t i1, int64_t j, const Piece& deep, float* sums,
                 TilePanels& p) {
    const int64_t columns = least(tile_block, g.n_end - j), rows_of_blocks = ceil_divide(i1 - i0, tile_block);
    const int64_t a_low = deep.steps * tile_words, panel = (deep.split ? 2 : 1) * a_low;
    for (int64_t k = 0; k < deep.depth; k += w_depth) {
        const Piece piece = piece_of(deep.begin + k, deep.begin + least(k + w_depth, deep.depth), deep.split);
        unpack_tile_rows(g, j, columns, piece, p);
        const bool last = piece.begin + piece.depth == g.k;
        for (int64_t block = 0; block < rows_of_blocks; block++) {
            const int64_t i = i0 + block * tile_block, rows = least(tile_block, i1 - i);
            prefetch_rows(g, j + tile_block, piece, block, rows_of_blocks);
            const float* a = p.a + 2 * block * panel + k / tile_depth * tile_words;
            float* here = sums + block * tile_block * tile_block;
            if (rows > tile_side)
                tile_sums<Tiles, true>(piece, p.w, a, panel, a_low, piece.begin > 0, here);
            else
                tile_sums<Tiles, false>(piece, p.w, a, panel, a_low, piece.begin > 0, here);
            if (last) add_sums(here, rows, columns, tile_target(g, i, j, W));
        }
    }
}

/// Rows [i0, i1) of A, at most 512, and columns [j0, j1) of C, at most 1024.
template <class Tiles>
void tile_rectangle(const Gemm<Real>& g, int64_t i0, int64_t i1, int64_t j0, int64_t j1, bool split,
                    TilePanels& p) {
    const int64_t longest = split ? a_depth / 2 : a_depth;
    for (int64_t k = 0; k < g.k; k += longest) {
        const Piece piece = piece_of(k, least(k + longest, g.k), split);
        const int64_t panel = (split ? 2 : 1) * piece.steps * tile_words;
        for (int64_t i = i0; i < i1; i += tile_side) {
            const Real* x = static_cast<const Real*>(g.a.data) + i * g.a.row + k;
            float* to = p.a + (i - i0) / tile_side * panel;
            (split ? pack_tile_rows<true> : pack_tile_rows<false>)(x, g.a.row, least(tile_side, i1 - i),
                                                                   piece, to);
        }
        for (int64_t j = j0; j < j1; j += tile_block)
            tile_column<Tiles>(g, i0, i1, j, piece, p.sums + (j - j0) * a_rows, p);
    }
}

template <class Tiles>
void tile_panels(const Gemm<Real>& g, void* workspace) {
    auto& panels = *static_cast<TilePanels*>(workspace);
    const bool split = g.b.type == DType::f16 || g.b.type == DType::bf16;
    Tiles::begin();
    for (int64_t i = g.m_begin; i < g.m_end; i += a_rows)
        for (int64_t j = g.n_begin; j < g.n_end; j += c_columns)
            tile_rectangle<Tiles>(g, i, least(i + a_rows, g.m_end), j, least(j + c_columns, g.n_end), split,
                                  panels);
    Tiles::end();
}

}  // namespace
}  // namespace linnet
