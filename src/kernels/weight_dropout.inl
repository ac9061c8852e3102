// Dropout of attention's weights: the draws of a block of keys, for a few queries. Which weights fall depends
// on their queries and keys alone, never on what they are computed with, so backward draws them again.
//
// With weights P and a mask m of 0 and 1 / (1 - p), out = (P ∘ m)·V. So dV = (P ∘ m)ᵀ·dO and dP = m ∘ dO·Vᵀ,
// and the rest of the softmax's backward stays, as rowsum(P ∘ dP) is still rowsum(dO ∘ O).
#pragma once
#include "kernels/dropout.inl"
#include "kernels/softmax.inl"

namespace linnet {
namespace {

/// Of up to most_weighed queries, one after another.
struct WeightDraws {
    static constexpr int64_t row_counters = key_block / dropout_draws;  // of a query
    static_assert(row_counters % W == 0 || W % row_counters == 0);
    static_assert(most_weighed * row_counters % W == 0);
    alignas(64) uint16_t at[most_weighed * key_block];

    /// Of query rows [i, i + rows) and the keys from j, a multiple of key_block, on.
    void draw(const Attention<Real>& f, int64_t head, int64_t i, int64_t rows, int64_t j) {
        constexpr uint64_t row = weight_row / dropout_draws;
        const Dropout<Real>& d = f.dropout;
        const auto next = static_cast<uint64_t>(f.heads) * row;  // to the next query
        uint64_t more[W], counter = d.counter + static_cast<uint64_t>(i * f.heads + head) * row +
                                    static_cast<uint64_t>(j / dropout_draws);
        for (int64_t l = 0; l < W; l++)
            more[l] =
                static_cast<uint64_t>(l / row_counters) * next + static_cast<uint64_t>(l % row_counters);
        for (int64_t c = 0; c < rows * row_counters; c += W) {
            const uint64_t first = counter + static_cast<uint64_t>(c / row_counters) * next +
                                   static_cast<uint64_t>(c % row_counters);
            uint32_t words[4 * W];
            philox_words(d.key, d.stream, first, more, words);
            // As in dropout().
            __builtin_memcpy(at + c * dropout_draws, words, sizeof words);
        }
    }
    /// What is left of x, rows of `width` (whole vectors) numbers.
    void keep(const Dropout<Real>& d, int64_t rows, int64_t width, Real* x, int64_t row) const {
        const Vec factor = set1(d.factor);
        for (int64_t r = 0; r < rows; r++, x += row)
            for (int64_t c = 0; c < width; c += W)
                store(x + c, keep_drawn(at + r * key_block + c, d.limit, load(x + c) * factor));
    }
};

/// Weights of query rows [i, i + rows), at most most_weighed, with `width` (whole vectors) keys from j on.
inline void drop_weights(const Attention<Real>& f, int64_t head, int64_t i, int64_t rows, int64_t j,
                         int64_t width, Real* weights, int64_t row) {
    for (int64_t c = 0; c < width; c += key_block) {
        WeightDraws draws;
        draws.draw(f, head, i, rows, j + c);
        draws.keep(f.dropout, rows, least(key_block, width - c), weights + c, row);
    }
}

}  // namespace
}  // namespace linnet
