// The memory of an engine's states: what every sequence has left behind for the positions to come.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/arena.h"
#include "graph/graph.h"

namespace linnet {

/// Types that keys and values may be kept in, the default first.
std::span<const DType> state_types();

/// How large states are to be.
struct StateRoom {
    std::int64_t positions = 0, slots = 1;
    std::int64_t run = 0;     // most positions of a sequence that one run adds; 0: positions
    DType rows = DType::f32;  // of states that have a row per position (keys and values); others are f32
};

/// States of several sequences, zeroed. Memory is touched as positions are filled. One that is looked back at
/// through a window keeps the window's positions and those of one run, no more, however long the sequence is.
class States {
  public:
    States(const Graph& graph, const StateRoom& room);

    const std::vector<StateView>& views() const { return views_; }  // by StateId
    /// A sequence that begins anew.
    void clear(std::int32_t slot);
    /// The first `positions` positions of one sequence, all that it has, become another's; `source`: what is
    /// of another text, too.
    void copy(std::int32_t from, std::int32_t to, std::int64_t positions, bool source = true);
    /// The memory of a sequence's first `positions` positions, in an order that layout() fixes (of what
    /// another text left, a source, all of its).
    std::vector<std::span<std::byte>> pieces(std::int32_t slot, std::int64_t positions,
                                             bool source = true) const;
    /// How a state's bytes are to be read: equal for states that may be exchanged.
    std::string layout() const;

    /// Before a run that adds `length` positions: what can only be gone back to as a whole is copied, so that
    /// `position` can be reached again.
    void remember(std::int32_t slot, std::int64_t position, std::int64_t length);
    /// Takes a sequence of `position` positions back to at most `wanted`. Returns the position reached:
    /// `wanted` itself, or where a snapshot is needed, the newest one before it (0 where there is none). With
    /// windows `wanted` is reached where all that it looks back at is still there, which is sure of where the
    /// last run began and after; else the sequence begins anew: 0.
    std::int64_t rewind(std::int32_t slot, std::int64_t position, std::int64_t wanted);

  private:
    struct Snapshot {
        std::int64_t position;
        std::vector<std::byte> bytes;
    };
    bool intact(std::int32_t slot, std::int64_t position) const;
    Snapshot snapshot(std::int32_t slot, std::int64_t position) const;
    void restore(std::int32_t slot, const Snapshot& snapshot);

    std::vector<StateSpec> specs_;
    std::vector<std::vector<Snapshot>> snapshots_;  // of each slot, by position
    std::vector<std::int64_t> furthest_;            // positions that each slot has come to hold
    std::vector<StateView> views_;
    std::vector<Arena> memory_;
    std::size_t snapshot_bytes_ = 0;
};

}  // namespace linnet
