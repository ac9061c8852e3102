// What is run, in which order, and where every value lives.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace linnet {

using BufferId = std::int32_t;

/// A piece of the arena, in elements (float or double), alive from step `first` to step `last`.
struct Buffer {
    std::int64_t size = 0;
    int first = 0, last = 0;
    std::int64_t offset = 0;
};

enum class Phase : std::uint8_t { forward, backward };

/// One op run once. Buffers are `none` where the op does without.
struct PlanStep {
    Phase phase;
    NodeId node;           // whose op runs
    NodeId result;         // whose value it makes: another node where a residual add was fused into this one
    bool barrier = false;  // the team must meet before this step
    std::array<BufferId, max_inputs> in{none, none, none};
    BufferId out = none, add = none, saved = none, scratch = none;
    BufferId dout = none;
    std::array<BufferId, max_inputs> din{none, none, none};  // equal to dout where the gradient is shared
    std::array<bool, max_inputs> accumulate{};
};

struct PlanOptions {
    std::int64_t rows = 0;     // capacity: rows of a batch
    std::int64_t outputs = 0;  // capacity: rows of Batch::outputs
    bool training = false;     // walk back from the root, a loss
    bool fuse = true;          // residual adds into the products before them
};

struct Plan {
    PlanOptions options;
    NodeId root = none;
    std::vector<PlanStep> steps;
    std::vector<Buffer> buffers;
    std::vector<BufferId> value;  // of each node; none where it is not made
    std::int64_t arena_size = 0;  // elements

    int barriers() const;
};

/// The steps that make `root` (and, for training, every parameter's gradient), their buffers packed by
/// liveness.
Plan make_plan(const Graph& graph, NodeId root, const PlanOptions& options);

/// One line a step: phase, op, path, width, buffers, barriers (`--graph`).
std::string describe(const Graph& graph, const Plan& plan);

// The parts of make_plan, each in a file of its own.
void plan_forward(const Graph& graph, Plan& plan);    // plan.cpp
void plan_backward(const Graph& graph, Plan& plan);   // autodiff.cpp
void pack(Plan& plan);                                // memory.cpp: offsets and arena_size
void place_barriers(const Graph& graph, Plan& plan);  // memory.cpp

/// A new buffer of `width` elements a row of `space`, born at step `step`.
BufferId new_buffer(Plan& plan, std::int64_t width, RowSpace space, int step);
/// The buffer is read or written at `step`.
void touch(Plan& plan, BufferId buffer, int step);

}  // namespace linnet
