// C = start + A · Wᵀ for many rows of A and weights of a block type, where a set adds four neighbouring
// products of an unsigned and a signed byte to a word (VNNI), or two of them to half a word (AVX2), for types
// whose codes are so small that sums fit there: the product of reading.
//
// Activations are rounded as for writing (activations.inl), 32 with a scale. Panels of W hold codes as
// unsigned bytes, signed ones plus 128; what that adds to a sum, zero · Σ a, is where the sum starts. Sums of
// 32 products, or of 16 where a group of the type has 16 weights (a part), are exact and get their two
// scales. 16-bit integers (panels.inl) need two instructions for the products of one here, but no scales for
// each group: on Zen 4 they read q8_0 at 0.67 and q4_k at 0.79 of this speed.
//
// An output is one chain of multiply, add over the parts of 512 numbers of K, then those chains in turn: the
// same bits whatever part is asked for. `Dots` has the instruction, or in tests what it is said to do:
//     words<Block>              words of W that may be summed between begin and end
//     begin(sum)                where sums begin that are to be added to `sum`
//     add(some, codes, a)       the sums and the products of four codes and four bytes per word
//     end(some, sum)            both together, as words
// `WordDots` is what they share whose sums are words themselves.
#pragma once
#include "kernels/blocks/activations.inl"
#include "kernels/packing.inl"
#include "kernels/stored.inl"

namespace linnet {
namespace {

constexpr int64_t dots_depth = 512, dots_words = dots_depth / 4, dots_parts = dots_depth / 16;
// Each sum needs a register for its integer and one for its number: 24 of 32 registers, or 12 of 16.
constexpr int quad_rows = W == 16 ? 6 : 3;
constexpr int64_t dots_rows = (520 + quad_rows - 1) / quad_rows * quad_rows;  // of A, at once in L2
constexpr int64_t dots_lines = tile_columns > quad_rows ? tile_columns : quad_rows;

struct WordDots {
    template <class Block>
    static constexpr int words = 8;
    static LINNET_INLINE Integers begin(Integers sum) { return sum; }
    static LINNET_INLINE Integers end(Integers some, Integers) { return some; }
};

/// What a part of a row of A has beside its bytes, for the rows of a tile.
struct PartOfA {
    int32_t start[quad_rows];  // -zero · Σ q
    float d[quad_rows];
    float sum[quad_rows];  // d · Σ q
};
/// Words are four bytes, kept as the bits of floats, because the same code packs panels of both.
struct DotPanels {
    alignas(64) float a[dots_rows * dots_words + 64];
    alignas(64) float w[tile_columns * dots_words + 64];
    alignas(64) float scale[tile_columns * dots_parts + 64];
    alignas(64) float offset[tile_columns * dots_parts + 64];
    PartOfA parts[dots_rows / quad_rows * dots_parts];
    alignas(64) float lines[dots_lines * dots_words];
    alignas(64) float line_scale[tile_columns * dots_parts];
    alignas(64) float line_offset[tile_columns * dots_parts];
};
static_assert(sizeof(DotPanels) <= gemm_workspace_bytes);

/// How the weights of a type meet bytes.
template <class Block>
struct Dotted {
    static constexpr int parts = Block::group == 16 ? 2 : 1;  // of 32 weights
    static constexpr int zero = Block::is_signed ? 128 : Block::zero;
    static_assert(!Block::is_signed || Block::zero == 0);
};

/// A row's numbers [k, k + depth) as bytes, and what their parts need, as row r of a tile.
template <class Block>
inline void dots_row(const Real* x, int64_t depth, Whole* bytes, int r, PartOfA* parts) {
    using As = Dotted<Block>;
    for (int64_t k = 0; k < depth; k += 32, parts += As::parts) {
        const WholeScale scale = scale_of(x + k, 32, byte_most);
        const HalfSums sums = bytes_of_group(x + k, scale.to, bytes + k);
        const int32_t of_part[2] = {As::parts == 1 ? sums.first + sums.second : sums.first, sums.second};
        for (int part = 0; part < As::parts; part++) {
            parts[part].start[r] = -As::zero * of_part[part];
            parts[part].d[r] = scale.back;
            parts[part].sum[r] = scale.back * static_cast<float>(of_part[part]);
        }
    }
}
/// Some rows of A, and columns that are one block of K.
struct DotsBlock {
    int64_t i0, i1, k0, depth;
};
/// Where such a block of A is packed: its bytes, and what its parts have beside them.
struct DotsRows {
    float* a;
    PartOfA* parts;
};

/// Packs a block of A; returns where the next one goes.
template <class Block>
inline DotsRows pack_dots_rows(const Gemm<Real>& g, const DotsBlock& b, float* lines, DotsRows to) {
    const int64_t parts = b.depth / 32 * Dotted<Block>::parts;
    for (int64_t i = b.i0; i < b.i1; i += quad_rows) {
        const int64_t rows = least(quad_rows, b.i1 - i);
        for (int64_t r = 0; r < rows; r++)
            dots_row<Block>(static_cast<const Real*>(g.a.data) + (i + r) * g.a.row + b.k0, b.depth,
                            reinterpret_cast<Whole*>(lines + r * dots_words), static_cast<int>(r), to.parts);
        pack_panel<StoredF32, quad_rows>(lines, dots_words, 1, rows, b.depth / 4, to.a);
        to.a += quad_rows * (b.depth / 4), to.parts += parts;
    }
    return to;
}

/// 256 weights or fewer, as a line of a panel of W.
template <class Block>
inline void dots_run(const char* from, int64_t count, Byte* codes, float* scales, float* offsets) {
    constexpr int parts = Dotted<Block>::parts;
    char copy[run_bytes<Block>];
    const char* run = whole_run<Block>(from, count, copy);
    const Scales s = Block::scales(run);
    each_group([&]<int g>() LINNET_LAMBDA_INLINE {
        if (32 * g >= count) return;
        Bytes32 c = Block::template codes<g>(run);
        if constexpr (Block::is_signed) c ^= 128;
        put_vector(codes + 32 * g, c);
        for (int part = 0; part < parts; part++) {
            scales[g * parts + part] = s.scale[part][g];
            if constexpr (Block::has_offset) offsets[g * parts + part] = s.offset[part][g];
        }
    });
}
/// The rows [j, j + count) of W, columns [k, k + depth): a panel.
struct DotsColumns {
    int64_t j, count, k, depth;
};

/// A row of the next panel comes from memory while one of this is packed: rows lie apart, and what fetches
/// memory ahead by itself finds no pattern in that. (With the order of `dots_by_columns`, prompts of 4 and 16
/// tokens at 1.1B are read 5 to 7 % faster on Zen 5; of 512 as before.)
template <class Block>
inline void prefetch_row(const Operand& w, const DotsColumns& panel, int64_t c) {
    if (c >= panel.count) return;
    const char* from = block_at<Block>(w, panel.j + c, panel.k);
    const int64_t bytes = panel.depth / Block::elements * Block::bytes;
    for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at, 0, 2);
}

/// Packs a panel of W; `next` is the one to come.
template <class Block>
inline void pack_dots_columns(const Gemm<Real>& g, const DotsColumns& panel, const DotsColumns& next,
                              DotPanels& p) {
    const int64_t count = panel.count, depth = panel.depth, parts = depth / 32 * Dotted<Block>::parts;
    for (int64_t c = 0; c < count; c++) {
        prefetch_row<Block>(g.b, next, c);
        for (int64_t k = 0; k < depth; k += run_length) {
            const int64_t at = c * dots_parts + k / 32 * Dotted<Block>::parts;
            dots_run<Block>(block_at<Block>(g.b, panel.j + c, panel.k + k), depth - k,
                            reinterpret_cast<Byte*>(p.lines + c * dots_words) + k, p.line_scale + at,
                            p.line_offset + at);
        }
    }
    pack_panel<StoredF32, tile_columns>(p.lines, dots_words, 1, count, depth / 4, p.w);
    pack_panel<StoredF32, tile_columns>(p.line_scale, dots_parts, 1, count, parts, p.scale);
    if constexpr (Block::has_offset)
        pack_panel<StoredF32, tile_columns>(p.line_offset, dots_parts, 1, count, parts, p.offset);
}

struct DotsTileInput {
    const float* a;
    const PartOfA* part;
    const float *w, *scale, *offset;
    int64_t parts;
};

/// The products of `words` words of a part, added to its sums.
template <class Dots, int words, int R, int NV>
LINNET_INLINE void add_words(DotsTileInput& in, Integers (&sums)[R][NV]) {
    Integers some[R][NV];
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) some[i][j] = Dots::begin(sums[i][j]);
    }
    for (int word = 0; word < words; word++, in.a += quad_rows, in.w += tile_columns) {
        Integers column[NV];
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) column[j] = load_integers(in.w + j * W);
        LINNET_UNROLL
        for (int i = 0; i < R; i++) {
            const Integers x = set1_integer(__builtin_bit_cast(int32_t, in.a[i]));
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

/// R rows × NV vectors of sums, added to their start; a part is `words` words of four bytes, which are summed
/// in so many pieces.
template <class Dots, int words, int pieces, bool offsets, int R, int NV>
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
        for (int piece = 0; piece < pieces; piece++) add_words<Dots, words / pieces>(in, acc);
        LINNET_UNROLL
        for (int j = 0; j < NV; j++) {
            const Vec scale = load(in.scale + j * W);
            LINNET_UNROLL
            for (int i = 0; i < R; i++)
                sums[i][j] = sums[i][j] + to_real(acc[i][j]) * (scale * set1(in.part->d[i]));
            if constexpr (offsets) {
                const Vec offset = load(in.offset + j * W);
                LINNET_UNROLL
                for (int i = 0; i < R; i++) sums[i][j] = sums[i][j] + offset * set1(in.part->sum[i]);
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

template <class Dots, int words, int pieces, bool offsets>
constexpr auto dots_tiles = tile_table<tile_vectors, quad_rows>([]<int R, int NV>() {
    return dots_tile<Dots, words, pieces, offsets, R, NV>;
});

/// A packed block of A with one panel of W; returns where the next block of A is.
template <class Block, class Dots>
DotsRows dots_panel(const Gemm<Real>& g, const DotsBlock& b, DotsRows rows, const DotsColumns& panel,
                    const DotPanels& p) {
    constexpr int of_group = Dotted<Block>::parts, words = 8 / of_group;
    constexpr int pieces = Dots::template words<Block> < words ? words / Dots::template words<Block> : 1;
    constexpr auto& tiles = dots_tiles<Dots, words, pieces, Block::has_offset>.at;
    const int64_t parts = b.depth / 32 * of_group, vectors = ceil_divide(panel.count, W);
    for (int64_t i = b.i0; i < b.i1; i += quad_rows) {
        const DotsTileInput in = {
            .a = rows.a, .part = rows.parts, .w = p.w, .scale = p.scale, .offset = p.offset, .parts = parts};
        tiles[vectors][least(quad_rows, b.i1 - i)](
            in, tile_target(g, i, panel.j, panel.count - (vectors - 1) * W, b.k0 == 0));
        rows.a += quad_rows * (b.depth / 4), rows.parts += parts;
    }
    return rows;
}

inline DotsColumns dots_columns(const Gemm<Real>& g, int64_t j, int64_t k) {
    return {j, j < g.n_end ? least(tile_columns, g.n_end - j) : 0, k, least(dots_depth, g.k - k)};
}

/// Many rows: block after block of A, which stays in cache while all of W goes by.
template <class Block, class Dots>
void dots_by_rows(const Gemm<Real>& g, int64_t at_once, DotPanels& p) {
    for (int64_t i = g.m_begin; i < g.m_end; i += at_once)
        for (int64_t k = 0; k < g.k; k += dots_depth) {
            const DotsBlock block = {i, least(i + at_once, g.m_end), k, least(dots_depth, g.k - k)};
            const DotsRows rows = {p.a, p.parts};
            pack_dots_rows<Block>(g, block, p.lines, rows);
            for (int64_t j = g.n_begin; j < g.n_end; j += tile_columns) {
                const DotsColumns panel = dots_columns(g, j, k);
                pack_dots_columns<Block>(g, panel, dots_columns(g, j + tile_columns, k), p);
                dots_panel<Block, Dots>(g, block, rows, panel, p);
            }
        }
}

/// Few rows, all of A packed at once: rows of W are read to their end, so that memory is read in its order.
template <class Block, class Dots>
void dots_by_columns(const Gemm<Real>& g, DotPanels& p) {
    DotsRows to = {p.a, p.parts};
    for (int64_t k = 0; k < g.k; k += dots_depth)
        to = pack_dots_rows<Block>(g, {g.m_begin, g.m_end, k, least(dots_depth, g.k - k)}, p.lines, to);
    for (int64_t j = g.n_begin; j < g.n_end; j += tile_columns) {
        DotsRows rows = {p.a, p.parts};
        for (int64_t k = 0; k < g.k; k += dots_depth) {
            const DotsColumns panel = dots_columns(g, j, k);
            const bool last = k + dots_depth >= g.k;
            pack_dots_columns<Block>(
                g, panel, last ? dots_columns(g, j + tile_columns, 0) : dots_columns(g, j, k + dots_depth),
                p);
            rows = dots_panel<Block, Dots>(g, {g.m_begin, g.m_end, k, panel.depth}, rows, panel, p);
        }
    }
}

template <class Block, class Dots>
void dots_product(const Gemm<Real>& g, void* workspace) {
    auto& panels = *static_cast<DotPanels*>(workspace);
    const int64_t rows = even_piece(g.m_end - g.m_begin, dots_rows, quad_rows);
    const int64_t all = ceil_divide(g.m_end - g.m_begin, quad_rows) * quad_rows * g.k;
    if (all <= dots_rows * dots_depth)
        dots_by_columns<Block, Dots>(g, panels);
    else
        dots_by_rows<Block, Dots>(g, rows, panels);
}

template <class Dots>
void dot_panels(const Gemm<Real>& g, void* workspace) {
    AllBlockTypes::with(g.b.type, [&](auto block) { dots_product<decltype(block), Dots>(g, workspace); });
}

}  // namespace
}  // namespace linnet
