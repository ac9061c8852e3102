// C = start + A · Wᵀ for few rows of A and weights of a block type: the product of writing.
//
// W is read once, a run of 256 weights at a time, where it lies; its codes are multiplied with the bytes of
// the activations, which is exact. The sums over a group of 32, or where the type's scales are whole numbers,
// with those over a run, are integers; then they are multiplied with the two scales. An output is eight
// chains of additions, in the order of K, and then a tree: the same bits whatever the number of rows, the
// part asked for and the instruction set.
//
// With one row of A the time is memory's, and some machines read several distant rows of W together faster
// than one after another: Gemm::streams says how many.
#pragma once
#include <type_traits>

#include "kernels/blocks/activations.inl"
#include "kernels/blocks/row_fours.inl"
#include "kernels/packing.inl"
#include "kernels/stored.inl"

namespace linnet {
namespace {

constexpr int64_t block_rows_at_once = 16;  // rows of A that share a column of W while it is in cache

/// C columns of W with R rows of A, as far as they are summed.
template <class Sums, int R, int C>
using TileSums = Sums[C][R];

/// An output of a type whose groups have scales of their own: the products of a group are summed as integers,
/// and there is a chain for each of a run's eight groups. Where a tile has several rows of A, words of W are
/// regrouped once for all of them, and those of A once for all columns, so that sums of a group need few
/// shuffles: with 8 rows that takes half of the time (Zen 5).
template <class Block>
struct GroupSums {
    static_assert(Block::group == 32);
    using Activations = ActivationBlock;
    using Scaled = Scales;
    using Codes = RowLanes::Codes;
    static constexpr int parts = 8 / RowLanes::groups, bias = RowLanes::bias<Block>;

    Floats8 products = all_of(0), offsets = all_of(0);

    static Scaled scales(const char* run) { return Block::scales(run); }
    /// The activations of a row that is not alone in its tile. Whole runs: what ends a row stays as it is.
    static void arrange(ActivationBlock* a, int64_t k) {
        for (; k >= run_length; k -= run_length, a++) {
            Codes words[parts];
            __builtin_memcpy(words, a->q, sizeof words);
            RowLanes::regroup(words);
            __builtin_memcpy(a->q, words, sizeof words);
        }
    }

    /// Adds the products of a run; codes.operator()<p>(c) are those of part p in column c; rows of A are
    /// `apart` blocks apart.
    template <int R, int C, class Unpacked>
    static LINNET_INLINE void add(const Scaled (&scales)[C], const Unpacked& codes, const ActivationBlock* a,
                                  int64_t apart, TileSums<GroupSums, R, C>& sums) {
        Codes words[C][parts];
        LINNET_UNROLL
        for (int c = 0; c < C; c++) {
            each_part([&]<int p>() LINNET_LAMBDA_INLINE {
                words[c][p] = RowLanes::factor<Block>(codes.template operator()<p>(c));
            });
            if constexpr (R > 1) RowLanes::regroup(words[c]);
        }
        constexpr int parts_of_sum = R > 1 ? 4 : 1;
        LINNET_UNROLL
        for (int r = 0; r < R; r++) {
            const ActivationBlock& block = a[r * apart];
            RowLanes::Ints dots[C][parts / parts_of_sum] = {};
            each_part([&]<int p>() LINNET_LAMBDA_INLINE {
                const auto bytes = get_vector<Codes>(block.q + p * sizeof(Codes));
                LINNET_UNROLL
                for (int c = 0; c < C; c++) {
                    RowLanes::Ints& sum = dots[c][p / parts_of_sum];
                    sum = RowLanes::add<Block>(sum, words[c][p], bytes);
                }
            });
            LINNET_UNROLL
            for (int c = 0; c < C; c++) sums[c][r].add_groups(scales[c], block, RowLanes::of_groups(dots[c]));
        }
    }
    /// Adds the products of the first `groups` groups of a run that is not regrouped.
    template <class Unpacked>
    LINNET_INLINE void add_last(const Scaled& scales, const Unpacked& codes, const ActivationBlock& block,
                                int64_t groups) {
        RowLanes::Ints dots[parts] = {};
        each_part([&]<int p>() LINNET_LAMBDA_INLINE {
            if (p * RowLanes::groups >= groups) return;
            dots[p] = RowLanes::add<Block>(dots[p], RowLanes::factor<Block>(codes.template operator()<p>(0)),
                                           get_vector<Codes>(block.q + p * sizeof(Codes)));
        });
        add_groups(scales, block, RowLanes::of_groups(dots));
    }
    LINNET_INLINE void add_groups(const Scaled& s, const ActivationBlock& block, Ints8 whole) {
        if constexpr (bias != 0) whole -= get_vector<Ints8>(block.whole) * bias;
        products += __builtin_convertvector(whole, Floats8) * (s.scale[0] * get_vector<Floats8>(block.d));
        if constexpr (Block::has_offset)
            offsets += s.offset[0] * (get_vector<Floats8>(block.first) + get_vector<Floats8>(block.second));
    }
    Real sum() const { return Block::has_offset ? total(products) + total(offsets) : total(products); }
};

/// An output of a type with whole scales: 256 scaled products are summed as integers, which takes two thirds
/// of the instructions.
template <class Block>
struct RunSums {
    using Activations = ActivationRun;
    using Scaled = WholeScales;
    static constexpr int chains = 2 / RowLanes::groups;

    Floats8 products = all_of(0), offsets = all_of(0);

    static Scaled scales(const char* run) { return Block::whole_scales(run); }
    static void arrange(ActivationRun*, int64_t) {}

    template <int R, int C, class Codes>
    static LINNET_INLINE void add(const Scaled (&scales)[C], const Codes& codes, const ActivationRun* a,
                                  int64_t apart, TileSums<RunSums, R, C>& sums) {
        RowLanes::Ints whole[C][R][chains] = {};
        RowLanes::SpreadWords<Block::group == 16> spread[C];
        LINNET_UNROLL
        for (int c = 0; c < C; c++) spread[c].set(scales[c].scale);
        each_part([&]<int p>() LINNET_LAMBDA_INLINE {
            LINNET_UNROLL
            for (int c = 0; c < C; c++) {
                const RowLanes::Codes column = codes.template operator()<p>(c);
                const RowLanes::Ints by = spread[c].template get<p>();
                LINNET_UNROLL
                for (int r = 0; r < R; r++) {
                    auto bytes = get_vector<RowLanes::Codes>(a[r * apart].q + p * sizeof(RowLanes::Codes));
                    RowLanes::Ints& chain = whole[c][r][p % chains];
                    chain = Block::is_signed ? add_scaled_signed(chain, column, bytes, by)
                                             : add_scaled_codes(chain, column, bytes, by);
                }
            }
        });
        LINNET_UNROLL
        for (int c = 0; c < C; c++) {
            LINNET_UNROLL
            for (int r = 0; r < R; r++)
                sums[c][r].add_run(scales[c], a[r * apart], RowLanes::total_of(whole[c][r]));
        }
    }
    /// Adds the summed products of a run.
    LINNET_INLINE void add_run(const WholeScales& s, const ActivationRun& a, Ints8 whole) {
        if constexpr (Block::zero != 0) whole += dot_pairs(s.scale * int16_t{-Block::zero}, a.sums);
        products += __builtin_convertvector(whole, Floats8) * all_of(s.d * a.d);
        if constexpr (Block::has_offset)
            offsets += __builtin_convertvector(dot_pairs(s.minimum, a.sums), Floats8) * all_of(s.dmin * a.d);
    }
    Real sum() const { return Block::has_offset ? total(products) - total(offsets) : total(products); }
};

template <class Block>
using BlockSums = std::conditional_t<has_whole_scales<Block>, RunSums<Block>, GroupSums<Block>>;
template <class Block>
using ActivationsFor = typename BlockSums<Block>::Activations;

inline void finish(const Gemm<Real>& g, int64_t row, int64_t j, Real all) {
    Real* c = g.c + row * g.c_row + j;
    if (g.accumulate) all += *c;
    if (g.bias) all += g.bias[j];
    if (g.add) all += g.add[row * g.add_row + j];
    *c = all;
}

/// A tile: some rows of A, whose blocks stand one row after another, and columns j, j + apart, …
struct TileAt {
    int64_t row, j, apart;
    int64_t ahead;  // bytes from what is multiplied to what is fetched; 0: nothing is
};

/// The end of a row of W, `count` weights that are no whole run. What follows in memory is the next row: its
/// codes meet activations of 0, and its scales, which may be anything, become 0. Only at the matrix's end is
/// the run copied: a copy in short pieces that is loaded in long ones took most of the time of a row of 288.
template <class Block>
LINNET_INLINE const char* last_run(const Gemm<Real>& g, const char* run, int64_t count,
                                   char (&copy)[run_bytes<Block>]) {
    const bool beyond = (run + run_bytes<Block>) > block_at<Block>(g.b, g.n, 0);
    return beyond ? whole_run<Block>(run, count, copy) : run;
}
template <class Block, int R>
LINNET_INLINE void add_last_run(const Gemm<Real>& g, const char* run, int64_t count,
                                const ActivationsFor<Block>* a, int64_t runs, BlockSums<Block> (&sums)[R]) {
    if constexpr (Block::elements < run_length) {
        char copy[run_bytes<Block>];
        run = last_run<Block>(g, run, count, copy);
        const auto codes = [run]<int p>(int) LINNET_LAMBDA_INLINE { return RowLanes::codes<Block, p>(run); };
        const int64_t groups = count / 32;
        const auto scales = first_scales(BlockSums<Block>::scales(run), groups);
        for (int r = 0; r < R; r++) sums[r].add_last(scales, codes, a[r * runs], groups);
    }
}

/// Prefetches a run.
template <class Block>
LINNET_INLINE void fetch_run(const char* run) {
    LINNET_UNROLL
    for (int64_t line = 0; line < run_bytes<Block>; line += 64) __builtin_prefetch(run + line, 0, 2);
}

template <class Block, int R, int C>
void block_tile(const Gemm<Real>& g, const ActivationsFor<Block>* a, const TileAt& t) {
    TileSums<BlockSums<Block>, R, C> sums;
    const char* from = block_at<Block>(g.b, t.j, 0);
    const int64_t next = block_at<Block>(g.b, t.apart, 0) - block_at<Block>(g.b, 0, 0);
    const int64_t runs = ceil_divide(g.k, run_length);
    int64_t left = g.k;
    for (; left >= run_length; left -= run_length, a++, from += run_bytes<Block>) {
        if (t.ahead) {
            LINNET_UNROLL
            for (int c = 0; c < C; c++) fetch_run<Block>(from + c * next + t.ahead);
        }
        typename BlockSums<Block>::Scaled scales[C];
        LINNET_UNROLL
        for (int c = 0; c < C; c++) scales[c] = BlockSums<Block>::scales(from + c * next);
        const auto codes = [&]<int p>(int c)
                               LINNET_LAMBDA_INLINE { return RowLanes::codes<Block, p>(from + c * next); };
        BlockSums<Block>::template add<R, C>(scales, codes, a, runs, sums);
    }
    for (int c = 0; c < C; c++) {
        if (left > 0) add_last_run<Block, R>(g, from + c * next, left, a, runs, sums[c]);
        for (int r = 0; r < R; r++) finish(g, t.row + r, t.j + c * t.apart, sums[c][r].sum());
    }
}

#ifdef LINNET_WIDE_BYTES
template <class Block>
constexpr bool sums_fours = !has_whole_scales<Block>;

/// One row of A with `fours` times four columns: t's, and their neighbours. One function for all: with one
/// for each four, a third of the instructions of rows of 288 prepared the rest.
template <class Block>
void block_fours(const Gemm<Real>& g, const ActivationBlock* a, TileAt t, int64_t fours) {
    const char* first = block_at<Block>(g.b, t.j, 0);
    const int64_t column = block_at<Block>(g.b, 1, 0) - block_at<Block>(g.b, 0, 0), next = t.apart * column;
    for (; fours > 0; fours--, t.j++, first += column) {
        FourSums<Block> sums;
        const char* run[4] = {first, first + next, first + 2 * next, first + 3 * next};
        const ActivationBlock* block = a;
        int64_t left = g.k;
        for (; left >= run_length; left -= run_length, block++) {
            sums.add(run, *block);
            LINNET_UNROLL
            for (int c = 0; c < 4; c++) {
                fetch_run<Block>(run[c] + t.ahead);
                run[c] += run_bytes<Block>;
            }
        }
        if (left > 0) {
            char copy[4][run_bytes<Block>];
            for (int c = 0; c < 4; c++) run[c] = last_run<Block>(g, run[c], left, copy[c]);
            sums.add_last(run, *block, left / 32);
        }
        Real all[4];
        sums.total(all);
        for (int c = 0; c < 4; c++) finish(g, t.row, t.j + c * t.apart, all[c]);
    }
}
#else
template <class Block>
constexpr bool sums_fours = false;
#endif

/// One row of A with C columns of W, a run of each in turn: all of them together need more registers than
/// there are.
template <class Block, int C>
void block_single(const Gemm<Real>& g, const ActivationsFor<Block>* a, const TileAt& t) {
    TileSums<BlockSums<Block>, 1, 1> sums[C];
    const char* first = block_at<Block>(g.b, t.j, 0);
    const int64_t next = block_at<Block>(g.b, t.apart, 0) - block_at<Block>(g.b, 0, 0);
    int64_t left = g.k;
    for (; left >= run_length; left -= run_length, a++, first += run_bytes<Block>) {
        LINNET_UNROLL
        for (int c = 0; c < C; c++) {
            const char* run = first + c * next;
            fetch_run<Block>(run + t.ahead);
            const auto codes = [run]<int p>(int)
                                   LINNET_LAMBDA_INLINE { return RowLanes::codes<Block, p>(run); };
            BlockSums<Block>::template add<1, 1>({BlockSums<Block>::scales(run)}, codes, a, 0, sums[c]);
        }
    }
    for (int c = 0; c < C; c++) {
        if (left > 0) add_last_run<Block>(g, first + c * next, left, a, 0, sums[c][0]);
        finish(g, t.row, t.j + c * t.apart, sums[c][0][0].sum());
    }
}

/// One row of A: the columns in four stretches that are walked together, but where one after another is
/// faster.
template <class Block>
void block_row(const Gemm<Real>& g, const ActivationsFor<Block>* a, int64_t row) {
    const int64_t fours = g.streams == 4 ? (g.n_end - g.n_begin) / 4 : 0;
    TileAt t = {row, g.n_begin, fours, read_ahead(4)};
    if constexpr (sums_fours<Block>)
        block_fours<Block>(g, a, t, fours);
    else
        for (; t.j < g.n_begin + fours; t.j++) block_single<Block, 4>(g, a, t);
    for (t = {row, g.n_begin + 4 * fours, 1, read_ahead(1)}; t.j < g.n_end; t.j++)
        block_single<Block, 1>(g, a, t);
}

/// C columns for several rows of A: R at a time, so that all sums stay in registers and W's part in cache,
/// then what is left by half as many.
template <class Block, int C, int R = 8>
void block_columns(const Gemm<Real>& g, const ActivationsFor<Block>* a, int64_t rows, TileAt t) {
    const int64_t apart = R * ceil_divide(g.k, run_length);
    for (; rows >= R; rows -= R, t.row += R, t.ahead = 0, a += apart) block_tile<Block, R, C>(g, a, t);
    if constexpr (R > 1) block_columns<Block, C, R / 2>(g, a, rows, t);
}

template <class Block>
void block_several(const Gemm<Real>& g, const ActivationsFor<Block>* a, int64_t row, int64_t rows) {
    constexpr int columns = RowLanes::groups;  // as many as registers are for
    int64_t j = g.n_begin;
    for (; j + columns <= g.n_end; j += columns)
        block_columns<Block, columns>(g, a, rows, {row, j, 1, read_ahead(1)});
    for (; j < g.n_end; j++) block_columns<Block, 1>(g, a, rows, {row, j, 1, read_ahead(1)});
}

constexpr int64_t block_rows_longest =
    static_cast<int64_t>(gemm_workspace_bytes / sizeof(ActivationBlock)) * run_length;
static_assert(sizeof(ActivationRun) <= sizeof(ActivationBlock));

void block_rows(const Gemm<Real>& g, void* workspace) {
    const int64_t runs = ceil_divide(g.k, run_length);
    const int64_t room = block_rows_longest / run_length / runs;
    AllBlockTypes::with(g.b.type, [&](auto block) {
        using Block = decltype(block);
        auto* a = static_cast<ActivationsFor<Block>*>(workspace);
        for (int64_t i = g.m_begin; i < g.m_end;) {
            int64_t rows = least(least(block_rows_at_once, room), g.m_end - i);
            for (int64_t r = 0; r < rows; r++)
                quantize_activations(static_cast<const Real*>(g.a.data) + (i + r) * g.a.row, g.k,
                                     a + r * runs);
            for (int64_t r = 0; r < rows / 2 * 2; r++) BlockSums<Block>::arrange(a + r * runs, g.k);
            if (rows == 1)
                block_row<Block>(g, a, i);
            else
                block_several<Block>(g, a, i, rows);
            i += rows;
        }
    });
}

}  // namespace
}  // namespace linnet
