// Panels of words for sums of neighbouring products (VNNI and its like): what they are, the tile, and the
// order in which a product goes through them. What the words hold, `As` says: bytes of a block type
// (dot_panels.inl), or 16-bit integers (half_panels.inl).
//
// K is gone through in blocks of as.depth() numbers, and each of them in parts, whose sums are exact and get
// two scales. An output is one chain of fma's over the parts of a block, then those chains in turn: the same
// bits whatever part of C is asked for. `As`, made of K:
//     offsets                       whether W has offsets
//     row_words                     words from one packed row of A to the next, at most dots_longest
//     rows_ahead                    how far ahead a row of A is fetched; 0: the processor does
//     words                         of a part; 0: words_of_part() alone says
//     pieces<Dots>                  in how many a part is summed
//     depth()                       numbers of K in a block
//     parts(d), words_of_part()     parts that d numbers of K make, and their words
//     row(x, d, lines, r, parts)    packs d numbers of a row of A, and what row r of `parts` has
//     line(w, j, k, d, lines, …)    packs d weights of row j of W, their scales and offsets
//     at(w, j, k), bytes(d)         where row j's numbers from k on lie, and the bytes of d numbers
//
// `Dots` has the instruction, or in tests what it is said to do:
//     begin(sum)                    where sums begin that are to be added to `sum`
//     add(some, w, a)               the sums and the products of a word each
//     end(some, sum)                both together, as words
//
// `WordDots` is what they share whose sums are words themselves.
#pragma once
#include "kernels/packing.inl"
#include "kernels/stored.inl"

namespace linnet {
namespace {

// Of a block of K. A panel of W (24 KiB in AVX-512) stands in L1; with 128 words, C is added to more often
// (f16 7, q6_k 5 % slower). Up to dots_longest they may be one block.
constexpr int64_t dots_words = 192, dots_longest = 288;
constexpr int64_t dots_parts = 48;  // at most: parts of bytes have four words or more
// Each sum needs a register for its integer and one for its number: 24 of 32 registers, or 12 of 16.
constexpr int dots_tile_rows = W == 16 ? 6 : 3;
constexpr int64_t dots_rows =
    (520 + dots_tile_rows - 1) / dots_tile_rows * dots_tile_rows;  // of A, at once in L2

/// a·b + c in one rounding: also in tests, where fma has two.
template <class V>
LINNET_INLINE V fused(V a, V b, V c) {
    if constexpr (W == 1)
        return __builtin_fmaf(a, b, c);
    else
        return fma(a, b, c);
}

struct WordDots {
    static LINNET_INLINE Integers begin(Integers sum) { return sum; }
    static LINNET_INLINE Integers end(Integers some, Integers) { return some; }
};

/// What a part of a row of A has beside its words, for the rows of a tile.
struct PartOfA {
    int32_t start[dots_tile_rows];  // where sums begin
    float d[dots_tile_rows];
    float sum[dots_tile_rows];  // what offsets are multiplied with
};
/// Words are four bytes, kept as the bits of floats, because the same code packs panels of both. Rows of A
/// stay rows: a tile broadcasts its words from there as well as from a panel.
struct DotPanels {
    alignas(64) float a[dots_rows * dots_longest + 64];
    alignas(64) float w[tile_columns * dots_longest + 64];
    alignas(64) float scale[tile_columns * dots_parts + 64];
    alignas(64) float offset[tile_columns * dots_parts + 64];
    PartOfA parts[dots_rows / dots_tile_rows * dots_parts];
    alignas(64) float lines[tile_columns * dots_longest + 64];
    alignas(64) float line_scale[tile_columns * dots_parts];
    alignas(64) float line_offset[tile_columns * dots_parts];
};

/// Some rows of A, and columns that are one block of K.
struct DotsBlock {
    int64_t i0, i1, k0, depth;
};
/// Where such a block of A is packed: its words, and what its parts have beside them.
struct DotsRows {
    float* a;
    PartOfA* parts;
};

/// Packs a block of A; returns where the next one goes. Rows are fetched ahead: they lie apart, and what does
/// so by itself finds no pattern in that.
template <class As>
inline DotsRows pack_dots_rows(const As& as, const Gemm<Real>& g, const DotsBlock& b, DotsRows to) {
    auto row = [&](int64_t i) { return static_cast<const Real*>(g.a.data) + i * g.a.row + b.k0; };
    for (int64_t i = b.i0; i < b.i1; i += dots_tile_rows) {
        for (int r = 0; r < least(dots_tile_rows, b.i1 - i); r++, to.a += As::row_words) {
            if (As::rows_ahead > 0 && i + r + As::rows_ahead < b.i1)
                prefetch_bytes<3>(row(i + r + As::rows_ahead), b.depth * static_cast<int64_t>(sizeof(Real)));
            as.row(row(i + r), b.depth, to.a, r, to.parts);
        }
        to.parts += as.parts(b.depth);
    }
    return to;
}

/// The rows [j, j + count) of W, columns [k, k + depth): a panel.
struct DotsColumns {
    int64_t j, count, k, depth;
};

/// A row of the next panel comes likewise while one of this is packed. (With the order of
/// `dots_by_columns`, prompts of 4 and 16 tokens at 1.1B are read 5 to 7 % faster on Zen 5; of 512 as
/// before.)
template <class As>
inline void prefetch_row(const As& as, const Operand& w, const DotsColumns& panel, int64_t c) {
    if (c >= panel.count) return;
    prefetch_bytes<2>(as.at(w, panel.j + c, panel.k), as.bytes(panel.depth));
}

/// Packs a panel of W; `next` is the one to come.
template <class As>
inline void pack_dots_columns(const As& as, const Gemm<Real>& g, const DotsColumns& panel,
                              const DotsColumns& next, DotPanels& p) {
    const int64_t count = panel.count, parts = as.parts(panel.depth);
    for (int64_t c = 0; c < count; c++) {
        prefetch_row(as, g.b, next, c);
        as.line(g.b, panel.j + c, panel.k, panel.depth, p.lines + c * dots_longest,
                p.line_scale + c * dots_parts, p.line_offset + c * dots_parts);
    }
    pack_panel<StoredF32, tile_columns>(p.lines, dots_longest, 1, count, parts * as.words_of_part(), p.w);
    pack_panel<StoredF32, tile_columns>(p.line_scale, dots_parts, 1, count, parts, p.scale);
    if constexpr (As::offsets)
        pack_panel<StoredF32, tile_columns>(p.line_offset, dots_parts, 1, count, parts, p.offset);
}

struct DotsTileInput {
    const float* a;
    const PartOfA* part;
    const float *w, *scale, *offset;
    int64_t parts, words;  // words: of a part
};

/// The products of so many words of a part, added to its sums.
template <class As, class Dots, int R, int NV>
LINNET_INLINE void add_words(DotsTileInput& in, int64_t words, Integers (&sums)[R][NV]) {
    Integers some[R][NV];
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) some[i][j] = Dots::begin(sums[i][j]);
    }
    for (int64_t word = 0; word < words; word++, in.a++, in.w += tile_columns) {
        Integers column[NV];
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) column[j] = load_integers(in.w + j * W);
        LINNET_UNROLL
        for (int i = 0; i < R; i++) {
            const Integers x = set1_integer(__builtin_bit_cast(int32_t, in.a[i * As::row_words]));
            LINNET_UNROLL
            for (int j = 0; j < NV; j++) some[i][j] = Dots::add(some[i][j], column[j], x);
        }
    }
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) sums[i][j] = Dots::end(some[i][j], sums[i][j]);
    }
}

/// R rows × NV vectors of sums, added to their start.
template <class As, class Dots, int R, int NV>
void dots_tile(DotsTileInput in, const TileTarget& t) {
    Vec sums[R][NV];
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) {
            __builtin_prefetch(t.c + i * t.c_row + j * W, 1);
            sums[i][j] = zero();
        }
    }
    for (int64_t p = 0; p < in.parts; p++) {
        Integers acc[R][NV];
        LINNET_UNROLL
        for (int i = 0; i < R; i++) {
            LINNET_UNROLL
            for (int j = 0; j < NV; j++) acc[i][j] = set1_integer(in.part->start[i]);
        }
        constexpr int pieces = As::template pieces<Dots>;
        for (int piece = 0; piece < pieces; piece++)
            add_words<As, Dots>(in, As::words > 0 ? As::words / pieces : in.words, acc);
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) {
            const Vec scale = load(in.scale + j * W);
            LINNET_UNROLL
            for (int i = 0; i < R; i++)
                sums[i][j] = fused(to_real(acc[i][j]), scale * set1(in.part->d[i]), sums[i][j]);
            if constexpr (As::offsets) {
                const Vec offset = load(in.offset + j * W);
                LINNET_UNROLL
                for (int i = 0; i < R; i++) sums[i][j] = fused(offset, set1(in.part->sum[i]), sums[i][j]);
            }
        }
        in.part++, in.scale += tile_columns, in.offset += tile_columns;
    }
    LINNET_UNROLL
    for (int j = 0; j < NV; j++) {
        const int64_t lanes = j == NV - 1 ? t.last : W;
        const Vec bias = bias_at(t, j * W, lanes);
        LINNET_UNROLL
        for (int i = 0; i < R; i++) put_sums(t, i, j * W, lanes, bias, sums[i][j]);
    }
}

template <class As, class Dots>
constexpr auto dots_tiles = tile_table<tile_vectors, dots_tile_rows>([]<int R, int NV>() {
    return dots_tile<As, Dots, R, NV>;
});

/// A packed block of A with one panel of W; returns where the next block of A is.
template <class Dots, class As>
DotsRows dots_panel(const As& as, const Gemm<Real>& g, const DotsBlock& b, DotsRows rows,
                    const DotsColumns& panel, const DotPanels& p) {
    constexpr auto& tiles = dots_tiles<As, Dots>.at;
    const int64_t parts = as.parts(b.depth), words = as.words_of_part(),
                  vectors = ceil_divide(panel.count, W);
    for (int64_t i = b.i0; i < b.i1; i += dots_tile_rows) {
        const DotsTileInput in = {.a = rows.a,
                                  .part = rows.parts,
                                  .w = p.w,
                                  .scale = p.scale,
                                  .offset = p.offset,
                                  .parts = parts,
                                  .words = words};
        tiles[vectors][least(dots_tile_rows, b.i1 - i)](
            in, tile_target(g, i, panel.j, panel.count - (vectors - 1) * W, b.k0 == 0));
        rows.a += least(dots_tile_rows, b.i1 - i) * As::row_words, rows.parts += parts;
    }
    return rows;
}

inline DotsColumns dots_columns(const Gemm<Real>& g, int64_t j, int64_t k, int64_t depth) {
    return {j, j < g.n_end ? least(tile_columns, g.n_end - j) : 0, k, least(depth, g.k - k)};
}

/// Many rows: block after block of A, which stays in cache while all of W goes by.
template <class Dots, class As>
void dots_by_rows(const As& as, const Gemm<Real>& g, DotPanels& p) {
    const int64_t at_once = even_piece(g.m_end - g.m_begin, dots_rows, dots_tile_rows), depth = as.depth();
    for (int64_t i = g.m_begin; i < g.m_end; i += at_once)
        for (int64_t k = 0; k < g.k; k += depth) {
            const DotsBlock block = {i, least(i + at_once, g.m_end), k, least(depth, g.k - k)};
            const DotsRows rows = {p.a, p.parts};
            pack_dots_rows(as, g, block, rows);
            for (int64_t j = g.n_begin; j < g.n_end; j += tile_columns) {
                const DotsColumns panel = dots_columns(g, j, k, depth);
                pack_dots_columns(as, g, panel, dots_columns(g, j + tile_columns, k, depth), p);
                dots_panel<Dots>(as, g, block, rows, panel, p);
            }
        }
}

/// Few rows, all of A packed at once: rows of W are read to their end, so that memory is read in its order.
template <class Dots, class As>
void dots_by_columns(const As& as, const Gemm<Real>& g, DotPanels& p) {
    const int64_t depth = as.depth();
    DotsRows to = {p.a, p.parts};
    for (int64_t k = 0; k < g.k; k += depth)
        to = pack_dots_rows(as, g, {g.m_begin, g.m_end, k, least(depth, g.k - k)}, to);
    for (int64_t j = g.n_begin; j < g.n_end; j += tile_columns) {
        DotsRows rows = {p.a, p.parts};
        for (int64_t k = 0; k < g.k; k += depth) {
            const DotsColumns panel = dots_columns(g, j, k, depth);
            const bool last = k + depth >= g.k;
            pack_dots_columns(
                as, g, panel,
                last ? dots_columns(g, j + tile_columns, 0, depth) : dots_columns(g, j, k + depth, depth), p);
            rows = dots_panel<Dots>(as, g, {g.m_begin, g.m_end, k, panel.depth}, rows, panel, p);
        }
    }
}

template <class Dots, class As>
void dots_product(const As& as, const Gemm<Real>& g, void* workspace) {
    auto& panels = *static_cast<DotPanels*>(workspace);
    const int64_t rows = ceil_divide(g.m_end - g.m_begin, dots_tile_rows) * dots_tile_rows;
    const bool few =
        rows * ceil_divide(g.k, as.depth()) <= dots_rows && rows * as.parts(g.k) <= dots_rows * dots_parts;
    few ? dots_by_columns<Dots>(as, g, panels) : dots_by_rows<Dots>(as, g, panels);
}

}  // namespace
}  // namespace linnet
