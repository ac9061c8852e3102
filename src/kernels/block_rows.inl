// C = start + A · Wᵀ for few rows of A and weights of a block type: the product of writing.
//
// W is read once, a run of 256 weights at a time, where it lies; its codes are multiplied with the bytes of
// the activations, which is exact, and sums of four products with the two scales. An output is a chain of
// additions for each of those eight sums in each fourth group of 32, in the order of K, and then a tree: the
// same bits whatever the number of rows, the part asked for and the instruction set.
//
// With one row of A the time is memory's, and some machines read several distant rows of W together faster
// than one after another: Gemm::streams says how many.
#pragma once
#include "kernels/activation_blocks.inl"
#include "kernels/packing.inl"
#include "kernels/stored.inl"

namespace linnet {
namespace {

constexpr int64_t block_rows_at_once = 16;  // rows of A that share an unpacked run

/// An output on its way.
struct Chains {
    Floats8 products[4], offsets;
};
LINNET_INLINE Chains no_chains() {
    return {{all_of(0), all_of(0), all_of(0), all_of(0)}, all_of(0)};
}
inline Real sum(const Chains& c) {
    return total((c.products[0] + c.products[1]) + (c.products[2] + c.products[3])) + total(c.offsets);
}

/// The scales of a run's weights times those of the activations. In memory, because a load spreads a number
/// over a vector at no cost, where shuffles would be half of the work.
struct alignas(32) ScaleProducts {
    float of[2][8];
};

/// Adds the offsets' part of 256 products; returns the scales for the rest.
template <class Block>
LINNET_INLINE ScaleProducts add_offsets(const Scales& s, const ActivationBlock& a, Chains& c) {
    ScaleProducts both;
    auto d = get_vector<Floats8>(a.d), sums = get_vector<Floats8>(a.first),
         more = get_vector<Floats8>(a.second);
    put_vector(both.of[0], s.scale[0] * d);
    if constexpr (Block::group == 16) put_vector(both.of[1], s.scale[1] * d);
    __asm__("" : "+m"(both));  // or compilers keep them in registers after all
    if constexpr (adds_offset<Block>) {
        if constexpr (Block::group == 16)
            c.offsets += code_offset<Block>(s, 0) * sums + code_offset<Block>(s, 1) * more;
        else
            c.offsets += code_offset<Block>(s, 0) * (sums + more);
    }
    return both;
}

/// Adds the products of group g.
template <class Block, int g>
LINNET_INLINE void add_group(Bytes32 codes, const ScaleProducts& scale, const ActivationBlock& a, Chains& c) {
    auto bytes = get_vector<Bytes32>(a.q + 32 * g);
    Ints8 sums = Block::is_signed ? dot_signed(codes, bytes) : dot_codes(codes, bytes);
    Floats8 by = all_of(scale.of[0][g]);
    if constexpr (Block::group == 16)
        by = __builtin_shufflevector(by, all_of(scale.of[1][g]), 0, 1, 2, 3, 12, 13, 14, 15);
    c.products[g % 4] += __builtin_convertvector(sums, Floats8) * by;
}

template <class Block>
inline void finish(const Gemm<Real>& g, int64_t row, int64_t j, const Chains& chains) {
    Real all = sum(chains), *c = g.c + row * g.c_row + j;
    if (g.accumulate) all += *c;
    if (g.bias) all += g.bias[j];
    if (g.add) all += g.add[row * g.add_row + j];
    *c = all;
}

/// Adds the products of a run with one row of A.
template <class Block>
LINNET_INLINE void add_run(const char* run, const ActivationBlock& a, Chains& c) {
    ScaleProducts scale = add_offsets<Block>(Block::scales(run), a, c);
    each_group([&]<int group>() LINNET_LAMBDA_INLINE {
        add_group<Block, group>(Block::template codes<group>(run), scale, a, c);
    });
}

/// One row of A and `streams` columns, `apart` from each other.
template <class Block, int streams>
void block_streams(const Gemm<Real>& g, const ActivationBlock* a, int64_t row, int64_t j, int64_t apart) {
    Chains chains[streams];
    LINNET_UNROLL
    for (int s = 0; s < streams; s++) chains[s] = no_chains();
    const char* from = block_at<Block>(g.b, j, 0);
    const int64_t next = block_at<Block>(g.b, apart, 0) - block_at<Block>(g.b, 0, 0);
    int64_t left = g.k;
    for (; left >= run_length; left -= run_length, a++, from += run_bytes<Block>) {
        LINNET_UNROLL
        for (int s = 0; s < streams; s++) {
            LINNET_UNROLL
            for (int64_t line = 0; line < run_bytes<Block>; line += 64)
                prefetch(from + s * next + read_ahead / streams + line);
            add_run<Block>(from + s * next, *a, chains[s]);
        }
    }
    for (int s = 0; s < streams; s++) {
        if (left > 0) {
            char copy[run_bytes<Block>];
            add_run<Block>(whole_run<Block>(from + s * next, left, copy), *a, chains[s]);
        }
        finish<Block>(g, row, j + s * apart, chains[s]);
    }
}

/// Column j for `rows` rows of A, whose blocks stand one row after another.
template <class Block>
void block_column(const Gemm<Real>& g, const ActivationBlock* a, int64_t row, int64_t rows, int64_t j) {
    const int64_t runs = ceil_divide(g.k, run_length);
    Chains chains[block_rows_at_once];
    for (int64_t r = 0; r < rows; r++) chains[r] = no_chains();
    const char* from = block_at<Block>(g.b, j, 0);
    char copy[run_bytes<Block>];
    for (int64_t p = 0; p < runs; p++, from += run_bytes<Block>) {
        for (int64_t line = 0; line < run_bytes<Block>; line += 64) prefetch(from + read_ahead + line);
        const char* run = whole_run<Block>(from, g.k - p * run_length, copy);
        const Scales scales = Block::scales(run);
        Bytes32 codes[run_length / 32];
        each_group([&]<int group>()
                       LINNET_LAMBDA_INLINE { codes[group] = Block::template codes<group>(run); });
        for (int64_t r = 0; r < rows; r++) {
            const ActivationBlock& block = a[r * runs + p];
            ScaleProducts scale = add_offsets<Block>(scales, block, chains[r]);
            each_group([&]<int group>() LINNET_LAMBDA_INLINE {
                add_group<Block, group>(codes[group], scale, block, chains[r]);
            });
        }
    }
    for (int64_t r = 0; r < rows; r++) finish<Block>(g, row + r, j, chains[r]);
}

/// One row of A: the columns in four stretches that are walked together, where that is faster.
template <class Block>
void block_row(const Gemm<Real>& g, const ActivationBlock* a, int64_t row) {
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

void block_rows(const Gemm<Real>& g, void* workspace) {
    auto* a = static_cast<ActivationBlock*>(workspace);
    const int64_t runs = ceil_divide(g.k, run_length);
    const int64_t room = block_rows_longest / run_length / runs;
    for (int64_t i = g.m_begin; i < g.m_end;) {
        int64_t rows = least(least(block_rows_at_once, room), g.m_end - i);
        for (int64_t r = 0; r < rows; r++)
            quantize_activations(static_cast<const Real*>(g.a.data) + (i + r) * g.a.row, g.k, a + r * runs);
        AllBlockTypes::with(g.b.type, [&](auto block) {
            using Block = decltype(block);
            if (rows == 1) return block_row<Block>(g, a, i);
            for (int64_t j = g.n_begin; j < g.n_end; j++) block_column<Block>(g, a, i, rows, j);
        });
        i += rows;
    }
}

}  // namespace
}  // namespace linnet
