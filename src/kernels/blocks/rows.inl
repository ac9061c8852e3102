// C = start + A · Wᵀ for few rows of A and weights of a block type: the product of writing.
//
// W is read once, a run of 256 weights at a time, where it lies; its codes are multiplied with the bytes of
// the activations, which is exact. How their sums become floats follows from the type's scales
// (row_groups.inl, row_runs.inl); the order is the same, and so are the bits, whatever the number of rows,
// the part asked for and the instruction set.
//
// With one row of A the time is memory's, and some machines read several distant rows of W together faster
// than one after another: Gemm::streams says how many.
#pragma once
#include <type_traits>

#include "kernels/blocks/row_groups.inl"
#include "kernels/blocks/row_runs.inl"
#include "kernels/packing.inl"
#include "kernels/stored.inl"
#ifdef LINNET_WIDE_BYTES
#include "kernels/blocks/run_columns.inl"
#endif

namespace linnet {
namespace {

template <class Block>
constexpr bool sums_runs = has_whole_scales<Block> && !Block::is_signed;
template <class Block>
using BlockSums = std::conditional_t<sums_runs<Block>, RunSums<Block>, GroupSums<Block>>;
template <class Block>
using ActivationsFor = typename BlockSums<Block>::Activations;

/// Where a tile stands: rows of A from `row` on, whose blocks stand one row after another, and columns j,
/// j + apart, …; the next tile has j + step, …
struct TileAt {
    int64_t row, j, apart, step;
    int64_t ahead;  // bytes from what is multiplied to what is fetched; 0: nothing is
};

/// The end of a row of W, `count` weights that are no whole run. What follows in memory is the next row: its
/// codes meet activations of 0. Only at the matrix's end is the run copied: a copy in short pieces that is
/// loaded in long ones took most of the time of a row of 288.
template <class Block>
LINNET_INLINE const char* last_run(const Gemm<Real>& g, const char* run, int64_t count,
                                   char (&copy)[run_bytes<Block>]) {
    const auto left = block_at<Block>(g.b, g.n - 1, g.k) - run;  // bytes of the matrix
    return left < run_bytes<Block> ? whole_run<Block>(run, count, copy) : run;
}

/// Prefetches a run.
template <class Block>
LINNET_INLINE void fetch_run(const char* run) {
    LINNET_UNROLL
    for (int64_t line = 0; line < run_bytes<Block>; line += 64) __builtin_prefetch(run + line, 0, 2);
}

/// `times` tiles. One function for all: with one for each tile, a third of the instructions of rows of 288
/// prepared the rest.
template <class Block, int R, int C>
void tiles_of_rows(const Gemm<Real>& g, const ActivationsFor<Block>* a, TileAt t, int64_t times) {
    const char* first = block_at<Block>(g.b, t.j, 0);
    const int64_t column = block_at<Block>(g.b, 1, 0) - block_at<Block>(g.b, 0, 0), next = t.apart * column;
    const int64_t runs = ceil_divide(g.k, run_length);
    for (; times > 0; times--, t.j += t.step, first += t.step * column) {
        typename BlockSums<Block>::template Tile<R, C> tile;
        const char* run[C];
        for (int c = 0; c < C; c++) run[c] = first + c * next;
        const ActivationsFor<Block>* block = a;
        int64_t left = g.k;
        for (; left >= run_length; left -= run_length, block++) {
            tile.add(run, block, runs);
            LINNET_UNROLL
            for (int c = 0; c < C; c++) {
                if (t.ahead) fetch_run<Block>(run[c] + t.ahead);
                run[c] += run_bytes<Block>;
            }
        }
        if (Block::elements < run_length && left > 0) {
            char copy[C][run_bytes<Block>];
            for (int c = 0; c < C; c++) run[c] = last_run<Block>(g, run[c], left, copy[c]);
            tile.add_last(run, block, runs, left / 32);
        }
        Real sums[C * R];
        tile.sums(sums);
        for (int c = 0; c < C; c++)
            for (int r = 0; r < R; r++) put_output(g, t.row + r, t.j + c * t.apart, sums[c * R + r]);
    }
}

/// One row of A: four columns at a time, far from each other where memory delivers more so.
template <class Block>
void block_row(const Gemm<Real>& g, const ActivationsFor<Block>* a, int64_t row) {
    const int64_t columns = g.n_end - g.n_begin, fours = columns / 4;
    TileAt t = {row, g.n_begin, 1, 4, read_ahead(4)};
    if (g.streams == 4) t.apart = fours, t.step = 1;
    tiles_of_rows<Block, 1, 4>(g, a, t, fours);
    tiles_of_rows<Block, 1, 1>(g, a, {row, g.n_begin + 4 * fours, 1, 1, read_ahead(1)}, columns - 4 * fours);
}

/// C columns for several rows of A: R at a time, so that all sums stay in registers and W's part in cache,
/// then what is left by half as many.
template <class Block, int C, int R = 8>
void block_columns(const Gemm<Real>& g, const ActivationsFor<Block>* a, int64_t rows, TileAt t) {
    const int64_t apart = R * ceil_divide(g.k, run_length);
    for (; rows >= R; rows -= R, t.row += R, t.ahead = 0, a += apart) tiles_of_rows<Block, R, C>(g, a, t, 1);
    if constexpr (R > 1) block_columns<Block, C, R / 2>(g, a, rows, t);
}

#ifdef LINNET_WIDE_BYTES
/// 16 columns at a time; meanwhile the rows of W of the 16 after the next are fetched. Returns the column
/// behind the last ones.
template <class Block>
int64_t run_columns(const Gemm<Real>& g, const ActivationRun* a, int64_t row, int64_t rows) {
    const int64_t runs = g.k / run_length, row_bytes = runs * run_bytes<Block>;
    int64_t j = g.n_begin;
    for (; j + lane_columns <= g.n_end; j += lane_columns) {
        RunColumns<Block> columns;
        const char* first = block_at<Block>(g.b, j, 0);
        const char* next = j + 3 * lane_columns <= g.n_end ? first + 2 * lane_columns * row_bytes : nullptr;
        for (int64_t i = 0; i < runs; i++, first += run_bytes<Block>) {
            const char* run[lane_columns];
            for (int c = 0; c < lane_columns; c++) run[c] = first + c * row_bytes;
            columns.add(run, a + i, runs, rows, next);
            if (next) next += lane_columns * run_bytes<Block>;
        }
        for (int64_t r = 0; r < rows; r++) {
            const Floats16 sums = columns.sums(r);
            for (int c = 0; c < lane_columns; c++) put_output(g, row + r, j + c, sums[c]);
        }
    }
    return j;
}
#endif

template <class Block>
void block_several(const Gemm<Real>& g, const ActivationsFor<Block>* a, int64_t row, int64_t rows) {
    // As many columns as registers are for.
    constexpr int columns = sums_runs<Block> ? 1 : 2 / RowLanes::parts;
    int64_t j = g.n_begin;
#ifdef LINNET_WIDE_BYTES
    if constexpr (sums_runs<Block>) j = run_columns<Block>(g, a, row, rows);
#endif
    if constexpr (columns > 1) {  // neighbours, or far from each other where memory delivers more so
        const int64_t tiles = (g.n_end - j) / columns;
        const bool far = g.streams == 4;
        TileAt t = {row, j, far ? tiles : 1, 1, read_ahead(far ? columns : 1)};
        for (int64_t i = 0; i < tiles; i++, t.j += far ? 1 : columns)
            block_columns<Block, columns>(g, a, rows, t);
        j += tiles * columns;
    }
    for (; j < g.n_end; j++) block_columns<Block, 1>(g, a, rows, {row, j, 1, 1, read_ahead(1)});
}

constexpr int64_t block_rows_longest =
    static_cast<int64_t>(gemm_workspace_bytes / sizeof(GroupedActivations)) * run_length;
static_assert(sizeof(ActivationRun) <= sizeof(GroupedActivations));

void block_rows(const Gemm<Real>& g, void* workspace) {
    const int64_t runs = ceil_divide(g.k, run_length);
    const int64_t room = block_rows_longest / run_length / runs;
    AllBlockTypes::with(g.b.type, [&](auto block) {
        using Block = decltype(block);
        auto* a = static_cast<ActivationsFor<Block>*>(workspace);
        for (int64_t i = g.m_begin; i < g.m_end;) {
            int64_t rows = least(least(block_rows_at_once, room), g.m_end - i);
            for (int64_t r = 0; r < rows; r++)
                BlockSums<Block>::quantize(static_cast<const Real*>(g.a.data) + (i + r) * g.a.row, g.k,
                                           a + r * runs);
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
