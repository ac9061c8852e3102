// What the products in bf16 share: operands of f32 (and f16, bf16) are rounded while they are packed, as
// words of two neighbours along K, 16 lines × 16 words at a time. Which index an operand has contiguous (x
// and W have K, in dW and dx it is the other) only says whether such a square is transposed.
//
// K is cut at places that depend on K alone; in each piece an output is one chain from 0 in the order of K,
// which is added to C before the next. So its bits do not depend on the part that is asked for.
#pragma once
#include <type_traits>

#include "kernels/packing.inl"

namespace linnet {
namespace {

constexpr int64_t tile_side = 16, tile_depth = 32;  // rows of a tile, and numbers of K in one
constexpr int64_t tile_words = tile_side * tile_depth / 2;
constexpr int64_t tile_block = 2 * tile_side;

// A's block lies in L2 beside a panel of B; B's whole block is packed once, and comes from L3.
constexpr int64_t bf16_depth = 4096;                // of K at a time
constexpr int64_t bf16_a = 128 * bf16_depth / 2;    // words of A's block: 1 MiB
constexpr int64_t bf16_b = 1024 * bf16_depth / 2;   // of B's: 8 MiB
constexpr int64_t near_b = (int64_t{1} << 18) / 4;  // of the panels of B that rows of C go along: 256 KiB

struct BF16Panels {
    alignas(64) float a[bf16_a], b[bf16_b];
    alignas(64) float sums[tile_block * tile_block];
};

/// Words (two bf16 of neighbouring k) of one line, `some` of whose numbers are left: x[0], x[1], …
template <class Stored, bool split>
inline Vec words_along(const typename Stored::Element* x, int64_t some, Vec& low) {
    if constexpr (__is_same(Stored, StoredF32)) {
        if (some >= 2 * W) return bf16_words<split>(x, low);
    }
    if constexpr (__is_same(Stored, StoredBF16)) {
        if (some >= 2 * W) return stored_words(x);
    }
    Real filled[2 * W];
    store(filled, Stored::get_n(x, least(W, most(0, some))));
    store(filled + W, Stored::get_n(x + W, least(W, most(0, some - W))));
    return bf16_words<split>(filled, low);
}

/// W words (two bf16 of neighbouring k) of as many lines, `lanes` of which there are: x[0 …] and the same
/// `step` behind; step 0: zeros.
template <class Stored, bool split>
inline Vec pair_of_words(const typename Stored::Element* x, int64_t step, int64_t lanes, Vec& low) {
    if constexpr (__is_same(Stored, StoredBF16) && !split) {
        return stored_pairs(x, step ? x + step : nullptr, lanes);
    } else {
        const Vec second = step ? Stored::get_n(x + step, lanes) : zero();
        return bf16_pairs<split>(Stored::get_n(x, lanes), second, low);
    }
}

/// One tile: 16 lines (those from `lines` on are 0) × 32 numbers of K (those from `depth` on are 0). A number
/// stands at x[line · i + step · k]; the word of line i and pair p goes to to[16 · i + p] (rows of A), or
/// where `pairs_first` to[16 · p + i] (columns of B); low parts `low_at` words behind.
template <class Stored, bool split, bool pairs_first, bool along_k>
inline void pack_tile(const typename Stored::Element* x, int64_t line, int64_t step, int64_t lines,
                      int64_t depth, float* to, int64_t low_at) {
    for (int64_t i = 0; i < tile_side; i += W) {
        for (int64_t p = 0; p < tile_depth / 2; p += W) {
            Vec high[W], low[W];
            for (int64_t l = 0; l < W; l++) {
                high[l] = low[l] = zero();
                if constexpr (along_k) {
                    if (i + l < lines)
                        high[l] =
                            words_along<Stored, split>(x + (i + l) * line + 2 * p, depth - 2 * p, low[l]);
                } else {
                    const int64_t k = 2 * (p + l), lanes = least(W, lines - i);
                    if (k >= depth || lanes <= 0) continue;
                    high[l] = pair_of_words<Stored, split>(x + k * step + i, k + 1 < depth ? step : 0, lanes,
                                                           low[l]);
                }
            }
            constexpr bool turned = along_k == pairs_first;
            const int64_t first = pairs_first ? p : i, second = pairs_first ? i : p;
            auto put = [&](Vec(&square)[W], float* place) LINNET_LAMBDA_INLINE {
                if constexpr (turned) transpose(square);
                for (int64_t l = 0; l < W; l++) store(place + (first + l) * tile_side + second, square[l]);
            };
            put(high, to);
            if constexpr (split) put(low, to + low_at);
        }
    }
}

/// Lines [begin, end) × K [k0, k0 + depth) of an operand, as panels of `side` lines, tile after tile along K,
/// the high parts of a panel before its low ones.
template <class Stored, bool split, bool pairs_first, int64_t side>
void pack_panels(const Operand& from, int64_t line, int64_t step, int64_t begin, int64_t end, int64_t k0,
                 int64_t depth, float* to) {
    const auto* x = static_cast<const typename Stored::Element*>(from.data);
    const int64_t steps = ceil_divide(depth, tile_depth), low_at = steps * tile_words;
    const int64_t panel = (split ? 2 : 1) * low_at;
    auto tile = [&](int64_t i, int64_t t, auto along_k) LINNET_LAMBDA_INLINE {
        pack_tile<Stored, split, pairs_first, decltype(along_k)::value>(
            x + i * line + (k0 + t * tile_depth) * step, line, step, least(side, end - i),
            least(tile_depth, depth - t * tile_depth), to + (i - begin) / side * panel + t * tile_words,
            low_at);
    };
    if (step == 1) {
        for (int64_t i = begin; i < end; i += side)
            for (int64_t t = 0; t < steps; t++) tile(i, t, std::true_type{});
    } else {  // lines are contiguous: each row of memory is read to its end, the next ones prefetched
        const int64_t bytes = (end - begin) * static_cast<int64_t>(sizeof *x);
        for (int64_t t = 0; t < steps; t++) {
            const int64_t soon = (t + 1) * tile_depth;
            for (int64_t k = soon; k < least(soon + tile_depth, depth); k++) {
                const auto* row = reinterpret_cast<const char*>(x + begin + (k0 + k) * step);
                for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + at);
            }
            for (int64_t i = begin; i < end; i += side) tile(i, t, std::false_type{});
        }
    }
}

template <bool split, bool pairs_first, int64_t side>
void pack_operand(const Operand& from, int64_t line, int64_t step, int64_t begin, int64_t end, int64_t k0,
                  int64_t depth, float* to) {
    with_stored(from.type, [&](auto stored) {
        pack_panels<decltype(stored), split, pairs_first, side>(from, line, step, begin, end, k0, depth, to);
    });
}

/// C [from (i, j) on, at most Kernel::rows × 32] from panels of A and B, for one piece of K.
struct BF16Block {
    int64_t i, i_end, j, j_end, steps;
    const float *a, *b;
    bool first;  // of the pieces
    // To prefetch: the rows of C so many columns to the right, and a part of the panels of B that come after
    // these, the first line and how many.
    int64_t ahead = 0;
    const char* next = nullptr;
    int64_t next_lines = 0;
};

/// tile_block numbers.
template <class Stored = StoredBF16>
LINNET_INLINE void put_bf16_row(uint16_t* to, const Real* row) {
    if constexpr (2 * W == tile_block)
        Stored::put_two(to, load(row), load(row + W));
    else
        for (int64_t c = 0; c < tile_block; c += W) Stored::put_n(to + c, load(row + c), W);
}

/// put_sums, or C in bf16.
LINNET_INLINE void put_product(const TileTarget& t, int64_t i, int64_t j, int64_t lanes, Vec bias, Vec sum) {
    if (!t.bf16) return put_sums(t, i, j, lanes, bias, sum);
    if (t.bias) sum = sum + bias;
    if (t.add) sum = sum + load_n(t.add + i * t.add_row + j, lanes);
    StoredBF16::put_n(t.bf16 + i * t.c_row + j, sum, lanes);
}

/// Rows [i0, i1) × columns [j0, j1) of C for one piece of K, whose panels have been packed.
template <class Kernel>
struct PackedPiece {
    const Kernel& kernel;
    const Gemm<Real>& g;
    int64_t i0, i1, j0, j1, steps, panel;  // panel: words of one
    const BF16Panels& work;
    bool first;

    BF16Block at(int64_t i, int64_t j) const {
        const float *a = work.a + (i - i0) / Kernel::side * panel, *b = work.b + (j - j0) / tile_side * panel;
        return {i, i1, j, j1, steps, a, b, first};
    }

    /// All rows for two panels of B, which lie in L1; the next ones come from L3 to L2 meanwhile.
    void down_columns() const {
        const int64_t blocks = ceil_divide(i1 - i0, Kernel::rows);
        for (int64_t j = j0; j < j1; j += tile_block) {
            const int64_t lines = j + tile_block < j1 ? 2 * panel / 16 : 0;
            for (int64_t i = i0; i < i1; i += Kernel::rows) {
                const int64_t block = (i - i0) / Kernel::rows, from = lines * block / blocks;
                BF16Block part = at(i, j);
                part.next = reinterpret_cast<const char*>(part.b + 2 * panel) + from * 64;
                part.next_lines = lines * (block + 1) / blocks - from;
                kernel.block(g, part);
            }
        }
    }

    /// Every row of C from its begin to its end, as far as B's panels lie in L2: where K is not deep, writing
    /// C takes longest, and the lines that come next can be told. (1024 × 4096 × 128 on one thread of Emerald
    /// Rapids: 4.6 ms instead of 19; 512 × 50257 × 768: 127 instead of 200.)
    void along_rows() const {
        const int64_t group = most(1, near_b / panel / 2) * tile_block;
        for (int64_t from = j0; from < j1; from += group)
            for (int64_t i = i0; i < i1; i += Kernel::rows)
                for (int64_t j = from; j < least(from + group, j1); j += tile_block) {
                    BF16Block part = at(i, j);
                    part.ahead = tile_block;
                    kernel.block(g, part);
                }
    }
};

/// One piece of K, [k0, k0 + depth).
template <class Kernel>
void bf16_piece(const Kernel& kernel, const Gemm<Real>& g, int64_t k0, int64_t depth, BF16Panels& work) {
    constexpr bool split = Kernel::split;
    constexpr int64_t side = Kernel::side, rows = Kernel::rows;
    const int64_t steps = ceil_divide(depth, tile_depth), panel = (split ? 2 : 1) * steps * tile_words;
    const int64_t block_rows = bf16_a / panel * side / rows * rows,
                  block_columns = bf16_b / panel / 2 * tile_block;
    for (int64_t j0 = g.n_begin; j0 < g.n_end; j0 += block_columns) {
        const int64_t j1 = least(j0 + block_columns, g.n_end);
        pack_operand<split, true, tile_side>(g.b, g.b.col, g.b.row, j0, j1, k0, depth, work.b);
        for (int64_t i0 = g.m_begin; i0 < g.m_end; i0 += block_rows) {
            const int64_t i1 = least(i0 + block_rows, g.m_end);
            pack_operand<split, Kernel::pairs_first, side>(g.a, g.a.row, g.a.col, i0, i1, k0, depth, work.a);
            const PackedPiece<Kernel> piece{kernel, g, i0, i1, j0, j1, steps, panel, work, k0 == 0};
            depth <= Kernel::shallow ? piece.along_rows() : piece.down_columns();
        }
    }
}

template <class Kernel>
void bf16_product(const Gemm<Real>& g, void* workspace) {
    const int64_t depth = even_piece(g.k, Kernel::depth, tile_depth);
    BF16Panels& work = *static_cast<BF16Panels*>(workspace);
    const Kernel kernel(work);
    for (int64_t k = 0; k == 0 || k < g.k; k += depth)
        bf16_piece(kernel, g, k, most(0, least(depth, g.k - k)), work);
}

}  // namespace
}  // namespace linnet
