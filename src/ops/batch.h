// What one run is about: the rows of every row space, the sequences that they belong to, the input streams.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

/// What a run is for. Given tokens are read, sampled and drafted tokens are written; the phase, never the
/// number of rows, decides how a value is computed (src/graph/README.md, "The same bits alone and in
/// company").
enum class Phase : std::uint8_t { read, write, train };

/// One sequence's share of the rows of a space. Its first row sits at position `position`; that many
/// positions of it are in the state slot already.
struct Segment {
    std::int64_t first = 0, length = 0;
    std::int64_t position = 0;
    std::int32_t slot = 0;
};

/// The rows of one space in one run. All spaces list the same sequences in the same order; a sequence without
/// rows of this space has a segment of length 0.
struct Rows {
    std::int64_t count = 0;
    std::vector<Segment> segments;
    std::vector<std::int32_t> positions;  // [count]

    /// Rows of the longest segment.
    std::int64_t longest() const {
        std::int64_t most = 0;
        for (const Segment& s : segments) most = std::max(most, s.length);
        return most;
    }
    /// Adds a segment of `length` rows.
    void add(std::int64_t length, std::int64_t position, std::int32_t slot) {
        segments.push_back({count, length, position, slot});
        for (std::int64_t i = 0; i < length; i++)
            positions.push_back(static_cast<std::int32_t>(position + i));
        count += length;
    }
};

/// Training (B sequences of T), prompt reading, one-token decoding and packed documents differ in these
/// numbers only. Streams and spaces are found by the names that a graph declares; the executor does that once
/// per run. Those of a language model have members of their own.
struct Batch {
    Rows rows;                          // of the space "tokens"
    std::vector<std::int32_t> tokens;   // stream "tokens", one id per row
    std::vector<std::int32_t> targets;  // stream "targets": -1: no loss at this row
    std::vector<std::int32_t> outputs;  // stream "outputs": rows whose logits are wanted, ascending
    std::uint64_t seed = 0, step = 0;   // of dropout; step counts micro-batches
    double loss_scale = 1;              // of each row's gradient: 1 / tokens of the optimizer step
    double sequence_scale = 1;  // … in losses of whole sequences beside it: 1 / sequences of the step
    double step_share = 1;      // … in means over the batch's rows: 1 / micro-batches of the step
    bool training = false;      // dropout is on

    /// A further space, by name, made where it is new.
    Rows& space(std::string_view name);
    /// A further stream of integers, or of vectors [rows, width] of float, made where it is new.
    std::vector<std::int32_t>& stream(std::string_view name);
    std::vector<float>& vectors(std::string_view name);

    const Rows* find_space(std::string_view name) const;
    const std::vector<std::int32_t>* find_stream(std::string_view name) const;
    const std::vector<float>* find_vectors(std::string_view name) const;

    /// Adds a sequence of tokens behind `position` others.
    void add(const std::int32_t* ids, std::int64_t length, std::int64_t position, std::int64_t slot) {
        tokens.insert(tokens.end(), ids, ids + length);
        rows.add(length, position, static_cast<std::int32_t>(slot));
    }

  private:
    template <class T>
    struct Named {
        std::string name;
        T value;
    };
    std::vector<Named<Rows>> spaces_;
    std::vector<Named<std::vector<std::int32_t>>> streams_;
    std::vector<Named<std::vector<float>>> vectors_;
};

}  // namespace linnet
