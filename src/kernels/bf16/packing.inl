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

// One operand's block lies in L2; the other's is packed once and comes from L3.
constexpr int64_t bf16_depth = 4096;                 // of K at a time, at most
constexpr int64_t bf16_near = int64_t{1} << 18;      // words of the block in L2: 1 MiB
constexpr int64_t bf16_far = 1024 * bf16_depth / 2;  // of the other: 8 MiB

struct BF16Panels {
    alignas(64) float near[bf16_near], far[bf16_far];
    alignas(64) float sums[tile_block * tile_block];
};

/// Words (two bf16 of neighbouring k) of one line, `some` of whose numbers are left: x[0], x[1], …
template <class Stored, bool split>
inline Vec words_along(const typename Stored::Element* x, int64_t some, Vec& low) {
    if constexpr (__is_same(Stored, StoredF32)) {
        if (some >= 2 * W) return bf16_words<split>(load(x), load(x + W), low);
    }
    if constexpr (__is_same(Stored, StoredBF16)) {
        low = zero();
        if (some >= 2 * W) return stored_words(x);
    }
    return bf16_words<split>(Stored::get_n(x, least(W, most(0, some))),
                             Stored::get_n(x + W, least(W, most(0, some - W))), low);
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

/// One tile: 16 lines (those from `lines` on are 0; whole: none) × 32 numbers of K (those from `depth` on are
/// 0). A number stands at x[line · i + step · k]; the word of line i and pair p goes to to[16 · i + p] (rows
/// of A), or where `pairs_first` to[16 · p + i] (columns of B); low parts `low_at` words behind.
template <class Stored, bool split, bool pairs_first, bool along_k, bool whole>
inline void pack_tile(const typename Stored::Element* x, int64_t line, int64_t step, int64_t lines,
                      int64_t depth, float* to, int64_t low_at) {
    for (int64_t i = 0; i < tile_side; i += W) {
        for (int64_t p = 0; p < tile_depth / 2; p += W) {
            Vec high[W], low[W];
            LINNET_UNROLL
            for (int64_t l = 0; l < W; l++) {
                if constexpr (!whole) high[l] = low[l] = zero();
                if constexpr (along_k) {
                    if (whole || i + l < lines)
                        high[l] = words_along<Stored, split>(x + (i + l) * line + 2 * p,
                                                             whole ? 2 * W : depth - 2 * p, low[l]);
                } else {
                    const int64_t k = 2 * (p + l), lanes = whole ? W : least(W, lines - i);
                    if (!whole && (k >= depth || lanes <= 0)) continue;
                    high[l] = pair_of_words<Stored, split>(x + k * step + i,
                                                           whole || k + 1 < depth ? step : 0, lanes, low[l]);
                }
            }
            constexpr bool turned = along_k == pairs_first;
            const int64_t first = pairs_first ? p : i, second = pairs_first ? i : p;
            auto put = [&](Vec(&square)[W], float* place) LINNET_LAMBDA_INLINE {
                if constexpr (turned) transpose(square);
                LINNET_UNROLL
                for (int64_t l = 0; l < W; l++) store(place + (first + l) * tile_side + second, square[l]);
            };
            put(high, to);
            if constexpr (split) put(low, to + low_at);
        }
    }
}

/// Words of a panel of tile_side lines × `depth` numbers of K; one tile at least: a K of 0 is a tile of
/// zeros.
template <bool split>
inline int64_t panel_words(int64_t depth) {
    return (split ? 2 : 1) * most(1, ceil_divide(depth, tile_depth)) * tile_words;
}

/// Lines [begin, end) × K [k0, k0 + depth) of an operand, as panels of `side` lines, tile after tile along K,
/// the high parts of a panel before its low ones.
template <class Stored, bool split, bool pairs_first, int64_t side>
void pack_panels(const Operand& from, int64_t line, int64_t step, int64_t begin, int64_t end, int64_t k0,
                 int64_t depth, float* to) {
    const auto* x = static_cast<const typename Stored::Element*>(from.data);
    const int64_t steps = most(1, ceil_divide(depth, tile_depth)), low_at = steps * tile_words;
    const int64_t panel = panel_words<split>(depth);
    auto tile = [&](int64_t i, int64_t t, auto along_k) LINNET_LAMBDA_INLINE {
        const int64_t lines = least(side, end - i), numbers = least(tile_depth, depth - t * tile_depth);
        constexpr bool along = decltype(along_k)::value;
        (lines == tile_side && numbers == tile_depth
             ? pack_tile<Stored, split, pairs_first, along, true>
             : pack_tile<Stored, split, pairs_first, along, false>)(x + i * line +
                                                                        (k0 + t * tile_depth) * step,
                                                                    line, step, lines, numbers,
                                                                    to + (i - begin) / side * panel +
                                                                        t * tile_words,
                                                                    low_at);
    };
    if (step == 1) {
        for (int64_t i = begin; i < end; i += side)
            for (int64_t t = 0; t < steps; t++) tile(i, t, std::true_type{});
    } else {  // lines are contiguous: each row of memory is read to its end, the next ones prefetched
        const int64_t bytes = (end - begin) * static_cast<int64_t>(sizeof *x);
        for (int64_t t = 0; t < steps; t++) {
            const int64_t soon = (t + 1) * tile_depth;
            for (int64_t k = soon; k < least(soon + tile_depth, depth); k++)
                prefetch_bytes<3>(x + begin + (k0 + k) * step, bytes);
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
    // To prefetch: lines of the panels of the far operand that come after these.
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
    const float *a, *b;
    bool first;

    BF16Block at(int64_t i, int64_t j) const {
        return {.i = i,
                .i_end = i1,
                .j = j,
                .j_end = j1,
                .steps = steps,
                .a = a + (i - i0) / Kernel::side * panel,
                .b = b + (j - j0) / tile_side * panel,
                .first = first};
    }
    /// To be prefetched beside this part: share `index` of `count` of the two panels behind `from`.
    void prefetch(BF16Block& part, const float* from, int64_t index, int64_t count) const {
        const int64_t lines = 2 * panel / 16, begin = lines * index / count;
        part.next = reinterpret_cast<const char*>(from + 2 * panel) + begin * 64;
        part.next_lines = lines * (index + 1) / count - begin;
    }

    /// All rows for two panels of B, which lie in L1; the next ones come from L3 to L2 meanwhile.
    void down_columns() const {
        const int64_t count = ceil_divide(i1 - i0, Kernel::rows);
        for (int64_t j = j0; j < j1; j += tile_block)
            for (int64_t i = i0; i < i1; i += Kernel::rows) {
                BF16Block part = at(i, j);
                if (j + tile_block < j1) prefetch(part, part.b, (i - i0) / Kernel::rows, count);
                kernel.block(g, part);
            }
    }

    /// All columns for two panels of A, which lie in L1; the next ones come from L3 to L2 meanwhile. (C is
    /// not prefetched: its lines would wait for memory in the same buffers as the tiles', and dW is 6 %
    /// slower.)
    void along_rows() const {
        const int64_t count = ceil_divide(j1 - j0, tile_block);
        for (int64_t i = i0; i < i1; i += Kernel::rows)
            for (int64_t j = j0; j < j1; j += tile_block) {
                BF16Block part = at(i, j);
                if (i + Kernel::rows < i1) prefetch(part, part.a, (j - j0) / tile_block, count);
                kernel.block(g, part);
            }
    }
};

/// One piece of K, [k0, k0 + depth).
template <class Kernel>
class BF16Piece {
  public:
    BF16Piece(const Kernel& kernel, const Gemm<Real>& g, int64_t k0, int64_t depth, BF16Panels& work)
        : kernel_(kernel),
          g_(g),
          k0_(k0),
          depth_(depth),
          a_(b_near ? work.far : work.near),
          b_(b_near ? work.near : work.far) {}

    void multiply() const { b_near ? rows_outside() : columns_outside(); }

  private:
    static constexpr bool split = Kernel::split, b_near = Kernel::b_near;
    static constexpr int64_t side = Kernel::side, rows = Kernel::rows;

    /// Where C is written along its rows; in the other order each store meets another page. (On one thread of
    /// Emerald Rapids, before and after: 4096 × 3072 × 768 920 and 1 130 GFLOP/s, 3072 × 768 × 4096 650 and
    /// 810; what the tiles alone reach is 1 750.)
    void rows_outside() const {
        for (int64_t i0 = g_.m_begin; i0 < g_.m_end; i0 += block_rows()) {
            const int64_t i1 = least(i0 + block_rows(), g_.m_end);
            pack_a(i0, i1);
            for (int64_t j0 = g_.n_begin; j0 < g_.n_end; j0 += block_columns()) {
                const int64_t j1 = least(j0 + block_columns(), g_.n_end);
                pack_b(j0, j1);
                packed(i0, i1, j0, j1).along_rows();
            }
        }
    }
    void columns_outside() const {
        for (int64_t j0 = g_.n_begin; j0 < g_.n_end; j0 += block_columns()) {
            const int64_t j1 = least(j0 + block_columns(), g_.n_end);
            pack_b(j0, j1);
            for (int64_t i0 = g_.m_begin; i0 < g_.m_end; i0 += block_rows()) {
                const int64_t i1 = least(i0 + block_rows(), g_.m_end);
                pack_a(i0, i1);
                packed(i0, i1, j0, j1).down_columns();
            }
        }
    }

    int64_t block_rows() const { return (b_near ? bf16_far : bf16_near) / panel_ * side / rows * rows; }
    int64_t block_columns() const { return (b_near ? bf16_near : bf16_far) / panel_ / 2 * tile_block; }
    void pack_a(int64_t i0, int64_t i1) const {
        pack_operand<split, Kernel::pairs_first, side>(g_.a, g_.a.row, g_.a.col, i0, i1, k0_, depth_, a_);
    }
    void pack_b(int64_t j0, int64_t j1) const {
        pack_operand<split, true, tile_side>(g_.b, g_.b.col, g_.b.row, j0, j1, k0_, depth_, b_);
    }
    PackedPiece<Kernel> packed(int64_t i0, int64_t i1, int64_t j0, int64_t j1) const {
        return {kernel_, g_, i0, i1, j0, j1, steps_, panel_, a_, b_, k0_ == 0};
    }

    const Kernel& kernel_;
    const Gemm<Real>& g_;
    int64_t k0_, depth_;
    float *a_, *b_;
    int64_t steps_ = most(1, ceil_divide(depth_, tile_depth)), panel_ = panel_words<split>(depth_);
};

template <class Kernel>
void bf16_product(const Gemm<Real>& g, void* workspace) {
    const int64_t depth = even_piece(g.k, g.bf16 ? Kernel::longest : Kernel::depth, tile_depth);
    BF16Panels& work = *static_cast<BF16Panels*>(workspace);
    const Kernel kernel(work);
    for (int64_t k = 0; k == 0 || k < g.k; k += depth)
        BF16Piece<Kernel>(kernel, g, k, most(0, least(depth, g.k - k)), work).multiply();
}

}  // namespace
}  // namespace linnet
