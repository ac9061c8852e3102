// The rows of one run: which tokens they are, which sequence each belongs to, what is wanted of them.
#pragma once
#include <cstdint>
#include <vector>

namespace linnet {

/// One sequence's share of the rows. Its first row sits at position `cached`.
struct Sequence {
    std::int64_t first_row = 0, length = 0;
    std::int64_t cached = 0;  // positions already in the cache slot
    std::int64_t slot = 0;
};

/// Training (B sequences of T), prompt reading, one-token decoding and packed documents differ in these
/// numbers only.
struct Batch {
    std::vector<Sequence> sequences;
    std::vector<std::int32_t> tokens;     // [R]
    std::vector<std::int32_t> positions;  // [R]
    std::vector<std::int32_t> targets;    // [R], -1: no loss at this row (empty: no loss at all)
    std::vector<std::int32_t> outputs;    // rows whose logits are wanted, ascending
    double loss_scale = 1;                // of each row's gradient: 1 / tokens of the optimizer step
    std::uint64_t seed = 0, step = 0;     // of dropout; step counts micro-batches
    bool training = false;                // dropout is on

    std::int64_t rows() const { return static_cast<std::int64_t>(tokens.size()); }
    /// Every sequence is one token long: products use the kernel whose bits do not depend on the row count.
    bool decoding() const { return rows() == static_cast<std::int64_t>(sequences.size()); }

    /// Adds a sequence of tokens behind `cached` positions.
    void add(const std::int32_t* ids, std::int64_t length, std::int64_t cached, std::int64_t slot) {
        sequences.push_back({rows(), length, cached, slot});
        tokens.insert(tokens.end(), ids, ids + length);
        for (std::int64_t i = 0; i < length; i++) positions.push_back(static_cast<std::int32_t>(cached + i));
    }
};

}  // namespace linnet
