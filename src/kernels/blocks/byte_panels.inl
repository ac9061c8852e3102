// C = start + A · Wᵀ for many rows of A and weights of a block type, where a set multiplies small matrices of
// bytes (i8mm): the product of reading.
//
// The instruction adds the products of 2 rows of A and 2 rows of W over 8 bytes to a 2 × 2 matrix, so pairs
// of rows are stored interleaved by 8 bytes. Activations are rounded as for writing (activations.inl);
// sums of 32 products, or of 16 where a group of the type has 16 weights, are exact and get their two scales.
//
// An output is one chain of fma's over the groups of 1024 numbers of K, then those chains in turn: the same
// bits whatever part is asked for. `Matrix` is ByteMatrix, or in tests what it is said to do, in plain C++.
#pragma once
#include "kernels/blocks/activations.inl"
#include "kernels/packing.inl"
#include "kernels/stored.inl"

namespace linnet {
namespace {

constexpr int64_t byte_rows = 128, byte_depth = 1024;  // of A, in L2 as bytes
constexpr int64_t byte_columns = 4;                    // of W at a time: two pairs, as many rows of A
constexpr int64_t groups_of_run = run_length / 32, pieces_of_group = 4;

/// Two rows, 256 numbers of K: bytes of a group in pieces of 8 of one row and 8 of the other.
struct alignas(16) PairOfA {
    Byte q[groups_of_run][pieces_of_group][16];
    float d[groups_of_run][4];       // of row 0, 0, 1, 1
    float sum[2][groups_of_run][4];  // d · Σ q over the halves of each group
};
struct alignas(16) PairOfW {
    Byte q[groups_of_run][pieces_of_group][16];
    float scale[2][groups_of_run][4];  // of row 0, 1, 0, 1, for the halves of each group
    float offset[2][groups_of_run][4];
};
struct BytePanels {
    PairOfA a[byte_rows / 2 * (byte_depth / run_length)];  // [runs][pairs]
    PairOfW w[byte_columns / 2];
    ActivationBlock rows[byte_depth / run_length];
    alignas(16) float sums[byte_rows / 2][byte_columns / 2][4];
};
static_assert(sizeof(BytePanels) <= gemm_workspace_bytes);

/// The 32 bytes of a group of one row (0 or 1), among those of the other.
inline void put_bytes(const void* from, int row, Byte (&to)[pieces_of_group][16]) {
    for (int64_t piece = 0; piece < pieces_of_group; piece++)
        __builtin_memcpy(to[piece] + 8 * row, static_cast<const char*>(from) + 8 * piece, 8);
}

/// Rows [i0, i1) of A, columns [k0, k0 + depth); a row that is missing in the last pair is 0.
inline void pack_byte_rows(const Gemm<Real>& g, int64_t i0, int64_t i1, int64_t k0, int64_t depth,
                           BytePanels& p) {
    const int64_t runs = ceil_divide(depth, run_length), pairs = ceil_divide(i1 - i0, 2);
    for (int64_t pair = 0; pair < pairs; pair++) {
        for (int row = 0; row < 2; row++) {
            const int64_t i = i0 + 2 * pair + row;
            if (i < i1)
                quantize_activations(static_cast<const Real*>(g.a.data) + i * g.a.row + k0, depth, p.rows);
            else
                __builtin_memset(p.rows, 0, sizeof p.rows);
            for (int64_t run = 0; run < runs; run++) {
                const ActivationBlock& from = p.rows[run];
                PairOfA& to = p.a[run * pairs + pair];
                for (int64_t group = 0; group < groups_of_run; group++) {
                    put_bytes(from.q + 32 * group, row, to.q[group]);
                    for (int lane = 2 * row; lane < 2 * row + 2; lane++) {
                        to.d[group][lane] = from.d[group];
                        to.sum[0][group][lane] = from.first[group];
                        to.sum[1][group][lane] = from.second[group];
                    }
                }
            }
        }
    }
}

/// `count` weights, at most 256, of a row of W.
template <class Block>
inline void unpack_byte_row(const char* from, int64_t count, int row, PairOfW& to) {
    char copy[run_bytes<Block>];
    const char* run = whole_run<Block>(from, count, copy);
    const Scales s = Block::scales(run);
    constexpr int halves = Block::group == 16 ? 2 : 1;
    for (int half = 0; half < halves; half++) {
        const Floats8 offsets = code_offset<Block>(s, half);
        for (int group = 0; group < groups_of_run; group++)
            for (int lane = row; lane < 4; lane += 2) {
                to.scale[half][group][lane] = s.scale[half][group];
                to.offset[half][group][lane] = offsets[group];
            }
    }
    each_group([&]<int g>() LINNET_LAMBDA_INLINE {
        const Bytes32 codes = Block::template codes<g>(run);
        put_bytes(&codes, row, to.q[g]);
    });
}
/// Rows [j, j + count) of W, numbers from k on; a row that is missing is 0.
template <class Block>
inline void unpack_byte_rows(const Gemm<Real>& g, int64_t j, int64_t count, int64_t k, BytePanels& p) {
    if (count < byte_columns) __builtin_memset(p.w, 0, sizeof p.w);
    for (int64_t r = 0; r < count; r++)
        unpack_byte_row<Block>(block_at<Block>(g.b, j + r, k), g.k - k, static_cast<int>(r % 2), p.w[r / 2]);
}

/// sums [2 of A][2 of W] += 256 products of two pairs of rows, pieces [begin, end) of each group with the
/// scales of one half.
template <class Block, class Matrix>
LINNET_INLINE Floats4 add_pair(const PairOfA& a, const PairOfW& w, int64_t group, Floats4 sums) {
    constexpr int halves = Block::group == 16 ? 2 : 1, pieces = pieces_of_group / halves;
    LINNET_UNROLL
    for (int half = 0; half < halves; half++) {
        Ints4 products = {0, 0, 0, 0};
        LINNET_UNROLL
        for (int piece = half * pieces; piece < (half + 1) * pieces; piece++)
            products = Matrix::multiply(products, a.q[group][piece], w.q[group][piece]);
        Floats4 by = get_vector<Floats4>(a.d[group]) * get_vector<Floats4>(w.scale[half][group]);
        sums += __builtin_convertvector(products, Floats4) * by;
        if constexpr (adds_offset<Block>) {
            auto a_sum = get_vector<Floats4>(a.sum[half][group]);
            if constexpr (halves == 1) a_sum += get_vector<Floats4>(a.sum[1][group]);
            sums += a_sum * get_vector<Floats4>(w.offset[half][group]);
        }
    }
    return sums;
}
/// `pairs` pairs of rows of A, one or two, times two pairs of rows of W.
template <class Block, class Matrix, int pairs>
void byte_tile(const PairOfA* a, const PairOfW* w, float (*sums)[byte_columns / 2][4]) {
    Floats4 all[pairs][2];
    LINNET_UNROLL
    for (int i = 0; i < 2 * pairs; i++) all[i / 2][i % 2] = get_vector<Floats4>(sums[i / 2][i % 2]);
    for (int64_t group = 0; group < groups_of_run; group++) {
        LINNET_UNROLL
        for (int i = 0; i < 2 * pairs; i++)
            all[i / 2][i % 2] = add_pair<Block, Matrix>(a[i / 2], w[i % 2], group, all[i / 2][i % 2]);
    }
    LINNET_UNROLL
    for (int i = 0; i < 2 * pairs; i++) put_vector(sums[i / 2][i % 2], all[i / 2][i % 2]);
}

/// Four columns of C from j on, rows [i0, i1), for a piece of K whose part of A is packed.
template <class Block, class Matrix>
void byte_column(const Gemm<Real>& g, int64_t i0, int64_t i1, int64_t j, int64_t k0, int64_t depth,
                 BytePanels& p) {
    const int64_t columns = least(byte_columns, g.n_end - j), pairs = ceil_divide(i1 - i0, 2);
    __builtin_memset(p.sums, 0, sizeof p.sums[0] * static_cast<size_t>(pairs));
    for (int64_t run = 0; run * run_length < depth; run++) {
        unpack_byte_rows<Block>(g, j, columns, k0 + run * run_length, p);
        const PairOfA* a = p.a + run * pairs;
        int64_t pair = 0;
        for (; pair + 2 <= pairs; pair += 2) byte_tile<Block, Matrix, 2>(a + pair, p.w, p.sums + pair);
        if (pair < pairs) byte_tile<Block, Matrix, 1>(a + pair, p.w, p.sums + pair);
    }
    const TileTarget t = tile_target(g, i0, j, 1, k0 == 0);
    for (int64_t i = 0; i < i1 - i0; i++)
        for (int64_t c = 0; c < columns; c++)
            put_sums(t, i, c, 1, bias_at(t, c, 1), set1(p.sums[i / 2][c / 2][i % 2 * 2 + c % 2]));
}

template <class Matrix>
void byte_panels(const Gemm<Real>& g, void* workspace) {
    auto& panels = *static_cast<BytePanels*>(workspace);
    AllBlockTypes::with(g.b.type, [&](auto block) {
        for (int64_t i = g.m_begin; i < g.m_end; i += byte_rows)
            for (int64_t k = 0; k < g.k; k += byte_depth) {
                const int64_t end = least(i + byte_rows, g.m_end), depth = least(byte_depth, g.k - k);
                pack_byte_rows(g, i, end, k, depth, panels);
                for (int64_t j = g.n_begin; j < g.n_end; j += byte_columns)
                    byte_column<decltype(block), Matrix>(g, i, end, j, k, depth, panels);
            }
    });
}

}  // namespace
}  // namespace linnet
