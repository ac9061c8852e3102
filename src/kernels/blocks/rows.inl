// C = start + A · Wᵀ for few rows of A and weights of a block type: the product of writing.
//
// W is read once, a run of 256 weights at a time, where it lies; its codes are multiplied with the bytes of
// the activations, which is exact. Sums of four products are lanes: over a group of 32, or where the type's
// scales are whole numbers, with those over the run, they stay integers; then they are multiplied with the
// two scales. An output is a few chains of additions for each of the eight lanes, in the order of K, and then
// a tree: the same bits whatever the number of rows, the part asked for and the instruction set.
//
// With one row of A the time is memory's, and some machines read several distant rows of W together faster
// than one after another: Gemm::streams says how many.
#pragma once
#include <type_traits>

#include "kernels/blocks/activations.inl"
#include "kernels/blocks/row_lanes.inl"
#include "kernels/packing.inl"
#include "kernels/stored.inl"

namespace linnet {
namespace {

constexpr int64_t block_rows_at_once = 16;  // rows of A that share an unpacked run

/// An output of a type whose groups have scales of their own: every 32 products are summed as integers.
template <class Block>
struct GroupSums {
    static_assert(Block::group == 32);
    using Activations = ActivationBlock;
    using Scaled = Scales;
    using Floats = RowLanes::Floats;
    static constexpr int chains = 4 / RowLanes::groups;

    Floats products[chains] = {};
    Floats8 offsets = all_of(0);

    static Scaled scales(const char* run) { return Block::scales(run); }

    /// Adds the products of the run's first `groups` groups, the others' being 0; codes.operator()<p>() are
    /// those of part p.
    template <class Codes>
    LINNET_INLINE void add(const Scaled& s, const Codes& codes, const ActivationBlock& a,
                           int64_t groups = 8) {
        // The scales of a run's weights times those of the activations.
        const RowLanes::Spread both(s.scale[0] * get_vector<Floats8>(a.d));
        if constexpr (adds_offset<Block>)
            offsets +=
                code_offset<Block>(s, 0) * (get_vector<Floats8>(a.first) + get_vector<Floats8>(a.second));
        each_part([&]<int p>() LINNET_LAMBDA_INLINE {
            if (p * RowLanes::groups >= groups) return;
            auto bytes = get_vector<RowLanes::Codes>(a.q + p * sizeof(RowLanes::Codes));
            const RowLanes::Codes c = codes.template operator()<p>();
            const RowLanes::Ints whole = Block::is_signed ? dot_signed(c, bytes) : dot_codes(c, bytes);
            products[p % chains] += __builtin_convertvector(whole, Floats) * both.template get<p>();
        });
    }
    Real sum() const {
        const Real all = total(RowLanes::total_of(products));
        return adds_offset<Block> ? all + total(offsets) : all;
    }
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

    template <class Codes>
    LINNET_INLINE void add(const Scaled& s, const Codes& codes, const ActivationRun& a) {
        const RowLanes::SpreadWords<Block::group == 16> spread(s.scale);
        RowLanes::Ints sums[chains] = {};
        each_part([&]<int p>() LINNET_LAMBDA_INLINE {
            auto bytes = get_vector<RowLanes::Codes>(a.q + p * sizeof(RowLanes::Codes));
            const RowLanes::Codes c = codes.template operator()<p>();
            const RowLanes::Ints by = spread.template get<p>();
            RowLanes::Ints& chain = sums[p % chains];
            chain = Block::is_signed ? add_scaled_signed(chain, c, bytes, by)
                                     : add_scaled_codes(chain, c, bytes, by);
        });
        Ints8 whole = RowLanes::total_of(sums);
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

template <class Block>
inline void finish(const Gemm<Real>& g, int64_t row, int64_t j, const BlockSums<Block>& sums) {
    Real all = sums.sum(), *c = g.c + row * g.c_row + j;
    if (g.accumulate) all += *c;
    if (g.bias) all += g.bias[j];
    if (g.add) all += g.add[row * g.add_row + j];
    *c = all;
}

/// Adds the products of a run with one row of A.
template <class Block>
LINNET_INLINE void add_run(const char* run, const ActivationsFor<Block>& a, BlockSums<Block>& sums) {
    const auto codes = [run]<int p>() LINNET_LAMBDA_INLINE { return RowLanes::codes<Block, p>(run); };
    sums.add(BlockSums<Block>::scales(run), codes, a);
}
/// The same where the row ends within the run, after `count` weights. What follows in memory is the next row:
/// its codes meet activations of 0, and its scales, which may be anything, become 0. Only at the matrix's end
/// is the run copied: a copy in short pieces that is loaded in long ones took most of the time of a row of
/// 288.
template <class Block>
LINNET_INLINE void add_last_run(const Gemm<Real>& g, const char* run, int64_t count,
                                const ActivationsFor<Block>& a, BlockSums<Block>& sums) {
    if constexpr (Block::elements < run_length) {
        char copy[run_bytes<Block>];
        if (run + run_bytes < Block >> block_at<Block>(g.b, g.n, 0)) run = whole_run<Block>(run, count, copy);
        const auto codes = [run]<int p>() LINNET_LAMBDA_INLINE { return RowLanes::codes<Block, p>(run); };
        const int64_t groups = count / 32;
        sums.add(first_scales(BlockSums<Block>::scales(run), groups), codes, a, groups);
    }
}

/// One row of A and `streams` columns, `apart` from each other.
template <class Block, int streams>
void block_streams(const Gemm<Real>& g, const ActivationsFor<Block>* a, int64_t row, int64_t j,
                   int64_t apart) {
    BlockSums<Block> sums[streams];
    const char* from = block_at<Block>(g.b, j, 0);
    const int64_t next = block_at<Block>(g.b, apart, 0) - block_at<Block>(g.b, 0, 0);
    int64_t left = g.k;
    for (; left >= run_length; left -= run_length, a++, from += run_bytes<Block>) {
        LINNET_UNROLL
        for (int s = 0; s < streams; s++) {
            LINNET_UNROLL
            for (int64_t line = 0; line < run_bytes<Block>; line += 64)
                prefetch(from + s * next + read_ahead / streams + line);
            add_run<Block>(from + s * next, *a, sums[s]);
        }
    }
    for (int s = 0; s < streams; s++) {
        if (left > 0) add_last_run<Block>(g, from + s * next, left, *a, sums[s]);
        finish<Block>(g, row, j + s * apart, sums[s]);
    }
}

/// Column j for `rows` rows of A, whose blocks stand one row after another.
template <class Block>
void block_column(const Gemm<Real>& g, const ActivationsFor<Block>* a, int64_t row, int64_t rows, int64_t j) {
    const int64_t runs = ceil_divide(g.k, run_length);
    BlockSums<Block> sums[block_rows_at_once];
    const char* from = block_at<Block>(g.b, j, 0);
    char copy[run_bytes<Block>];
    for (int64_t p = 0; p < runs; p++, from += run_bytes<Block>) {
        for (int64_t line = 0; line < run_bytes<Block>; line += 64) prefetch(from + read_ahead + line);
        const char* run = whole_run<Block>(from, g.k - p * run_length, copy);
        const auto scales = BlockSums<Block>::scales(run);
        RowLanes::Codes unpacked[run_length / sizeof(RowLanes::Codes)];
        each_part([&]<int p>() LINNET_LAMBDA_INLINE { unpacked[p] = RowLanes::codes<Block, p>(run); });
        const auto codes = [&]<int p>() LINNET_LAMBDA_INLINE { return unpacked[p]; };
        for (int64_t r = 0; r < rows; r++) sums[r].add(scales, codes, a[r * runs + p]);
    }
    for (int64_t r = 0; r < rows; r++) finish<Block>(g, row + r, j, sums[r]);
}

/// One row of A: the columns in four stretches that are walked together, where that is faster.
template <class Block>
void block_row(const Gemm<Real>& g, const ActivationsFor<Block>* a, int64_t row) {
    int64_t j = g.n_begin;
    if (g.streams == 4) {
        const int64_t apart = (g.n_end - g.n_begin) / 4;
        for (; j < g.n_begin + apart; j++) block_streams<Block, 4>(g, a, row, j, apart);
        j = g.n_begin + 4 * apart;
    }
    for (; j < g.n_end; j++) block_streams<Block, 1>(g, a, row, j, 0);
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
            if (rows == 1)
                block_row<Block>(g, a, i);
            else
                for (int64_t j = g.n_begin; j < g.n_end; j++) block_column<Block>(g, a, i, rows, j);
            i += rows;
        }
    });
}

}  // namespace
}  // namespace linnet
