// C = start + A · Wᵀ for few rows of A and weights of a block type: the product of writing.
//
// W is read once, a block of 256 weights at a time, where it lies; its whole numbers are multiplied with
// those of the activations, which is exact, and the sums of 16 or 32 products with the two scales. An output
// is one chain of additions per group of 32 in the order of K, and then a tree over the eight groups: the
// same bits whatever the number of rows, the part asked for and the instruction set.
#pragma once
#include "kernels/activation_blocks.inl"
#include "kernels/block_types.inl"
#include "kernels/gemm.inl"
#include "kernels/gemv.inl"

namespace linnet {
namespace {

constexpr int64_t block_rows_at_once = 16;  // rows of A that share an unpacked block

/// 256 weights of a row of W: bytes, and the scales and offsets of the first and second halves of each group
/// (where a type's groups are of 32, second is not used).
struct UnpackedBlock {
    alignas(32) Whole q[activation_block];
    Floats8 scale, scale_second, offset, offset_second;
};

/// Eight of the numbers that a type said, one group or every second one. Each is loaded alone: they were
/// stored alone, and a longer load would wait for those stores to end.
template <int step>
inline Floats8 eight_of(const float* x) {
    return Floats8{x[0],        x[step],     x[2 * step], x[3 * step],
                   x[4 * step], x[5 * step], x[6 * step], x[7 * step]};
}

template <class Block>
inline void scales_of(const float* scale, Floats8& first, Floats8& second) {
    constexpr int step = 32 / Block::group;
    first = eight_of<step>(scale);
    if constexpr (step == 2) second = eight_of<step>(scale + 1);
}

/// `count` blocks that make up to 256 weights.
template <class Block>
inline void unpack_256(const char* from, int64_t count, UnpackedBlock& to) {
    constexpr int64_t blocks = activation_block / Block::elements, groups = Block::elements / Block::group;
    alignas(32) float scale[blocks * groups], offset[blocks * groups];
    if (count < blocks) {
        __builtin_memset(to.q, 0, sizeof to.q);
        __builtin_memset(scale, 0, sizeof scale);
        __builtin_memset(offset, 0, sizeof offset);
        for (int64_t b = 0; b < count; b++) {
            Block::whole(from + b * Block::bytes, to.q + b * Block::elements);
            Block::scales(from + b * Block::bytes, scale + b * groups, offset + b * groups);
        }
    } else {
        LINNET_UNROLL
        for (int64_t b = 0; b < blocks; b++) {
            Block::whole(from + b * Block::bytes, to.q + b * Block::elements);
            Block::scales(from + b * Block::bytes, scale + b * groups, offset + b * groups);
        }
    }
    scales_of<Block>(scale, to.scale, to.scale_second);
    if constexpr (Block::has_offset) scales_of<Block>(offset, to.offset, to.offset_second);
}

/// Adds the products of 256 weights and activations to the chains of eight groups.
template <class Block>
inline Floats8 add_block(const UnpackedBlock& w, const ActivationBlock& a, Floats8 chains) {
    Ints8 part[8];
    LINNET_UNROLL
    for (int g = 0; g < 8; g++) part[g] = dot_32<Ints8>(w.q + 32 * g, a.q + 32 * g);
    Ints8 low = add_neighbours(add_neighbours(part[0], part[1]), add_neighbours(part[2], part[3]));
    Ints8 high = add_neighbours(add_neighbours(part[4], part[5]), add_neighbours(part[6], part[7]));
    Ints8 first = __builtin_shufflevector(low, high, 0, 1, 2, 3, 8, 9, 10, 11);
    Ints8 second = __builtin_shufflevector(low, high, 4, 5, 6, 7, 12, 13, 14, 15);
    Floats8 d = get_vector<Floats8>(a.d);
    auto floats = [](Ints8 v) { return __builtin_convertvector(v, Floats8); };
    if constexpr (Block::group == 16) {
        chains += floats(first) * (w.scale * d) + floats(second) * (w.scale_second * d);
    } else {
        chains += floats(first + second) * (w.scale * d);
    }
    if constexpr (Block::has_offset) {
        Floats8 sums = get_vector<Floats8>(a.first), more = get_vector<Floats8>(a.second);
        if constexpr (Block::group == 16)
            chains += w.offset * sums + w.offset_second * more;
        else
            chains += w.offset * (sums + more);
    }
    return chains;
}

/// Column j for `rows` rows of A, whose blocks stand one row after another.
template <class Block, bool one>
inline void block_column(const Gemm<Real>& g, const ActivationBlock* a, int64_t row, int64_t rows,
                         int64_t j) {
    const int64_t blocks = ceil_divide(g.k, activation_block);
    const int64_t row_bytes = g.b.col / Block::elements * Block::bytes;
    const char* from = static_cast<const char*>(g.b.data) + j * row_bytes;
    constexpr int64_t per_256 = activation_block / Block::elements;
    Floats8 chains[one ? 1 : block_rows_at_once];
    if (one) rows = 1;
    for (int64_t r = 0; r < rows; r++) chains[r] = all_of(0);
    int64_t left = g.k / Block::elements;
    for (int64_t p = 0; p < blocks; p++, left -= per_256) {
        for (int64_t line = 0; line < per_256 * Block::bytes; line += 64) prefetch(from + gemv_ahead + line);
        UnpackedBlock w;
        unpack_256<Block>(from, least(left, per_256), w);
        for (int64_t r = 0; r < rows; r++) chains[r] = add_block<Block>(w, a[r * blocks + p], chains[r]);
        from += per_256 * Block::bytes;
    }
    for (int64_t r = 0; r < rows; r++) {
        Real sum = total(chains[r]), *c = g.c + (row + r) * g.c_row + j;
        if (g.accumulate) sum += *c;
        if (g.bias) sum += g.bias[j];
        if (g.add) sum += g.add[(row + r) * g.add_row + j];
        *c = sum;
    }
}

constexpr int64_t block_rows_longest =
    static_cast<int64_t>(gemm_workspace_bytes / sizeof(ActivationBlock)) * activation_block;

void block_rows(const Gemm<Real>& g, void* workspace) {
    auto* a = static_cast<ActivationBlock*>(workspace);
    const int64_t blocks = ceil_divide(g.k, activation_block);
    const int64_t room = block_rows_longest / activation_block / blocks;
    for (int64_t i = g.m_begin; i < g.m_end;) {
        int64_t rows = least(least(block_rows_at_once, room), g.m_end - i);
        for (int64_t r = 0; r < rows; r++)
            quantize_activations(static_cast<const Real*>(g.a.data) + (i + r) * g.a.row, g.k, a + r * blocks);
        AllBlockTypes::with(g.b.type, [&](auto block) {
            using Block = decltype(block);
            for (int64_t j = g.n_begin; j < g.n_end; j++) {
                if (rows == 1)
                    block_column<Block, true>(g, a, i, 1, j);
                else
                    block_column<Block, false>(g, a, i, rows, j);
            }
        });
        i += rows;
    }
}

}  // namespace
}  // namespace linnet
