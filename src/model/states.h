// The memory of an engine's states: what every sequence has left behind for the positions to come.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/arena.h"
#include "graph/graph.h"

namespace linnet {

/// Room for `slots` sequences of `positions` positions, zeroed. Memory is touched as positions are filled.
class States {
  public:
    States(const Graph& graph, std::int64_t positions, std::int64_t slots);

    const std::vector<StateView>& views() const { return views_; }  // by StateId
    /// A sequence that begins anew.
    void clear(std::int32_t slot);
    /// The first `positions` positions of one sequence become another's.
    void copy(std::int32_t from, std::int32_t to, std::int64_t positions);
    /// The memory of a sequence's first `positions` positions, in an order that layout() fixes.
    std::vector<std::span<std::byte>> pieces(std::int32_t slot, std::int64_t positions) const;
    /// How a state's bytes are to be read: equal for states that may be exchanged.
    std::string layout() const;

    /// Before a run: what can only be gone back to as a whole is copied, so that `position` can be reached
    /// again.
    void remember(std::int32_t slot, std::int64_t position);
    /// Takes a sequence of `position` positions back to at most `wanted`. Returns the position reached:
    /// `wanted` itself, or where a snapshot is needed, the newest one before it (0 where there is none).
    std::int64_t rewind(std::int32_t slot, std::int64_t position, std::int64_t wanted);

  private:
    struct Snapshot {
        std::int64_t position;
        std::vector<std::byte> bytes;
    };
    Snapshot snapshot(std::int32_t slot, std::int64_t position) const;
    void restore(std::int32_t slot, const Snapshot& snapshot);

    std::vector<StateSpec> specs_;
    std::vector<std::vector<Snapshot>> snapshots_;  // of each slot, by position
    std::vector<StateView> views_;
    std::vector<Arena> memory_;
    std::size_t snapshot_bytes_ = 0;
};

}  // namespace linnet
