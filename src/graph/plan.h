// What is run, in which order, and where every value lives: a program of a graph, lowered for one phase.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace linnet {

using ValueId = std::int32_t;

/// A piece of the arena, alive from step `first` to step `last`: what a node made (and in its place another
/// that read it: Op::in_place), a copy of it in another storage type, a gradient, or memory of one step.
struct Value {
    DType type = DType::f32;
    SpaceId space = none;    // none: not counted in rows
    std::int64_t width = 0;  // elements per row
    std::size_t bytes = 0, offset = 0;
    int first = 0, last = 0;
};

enum class StepKind : std::uint8_t { forward, recompute, backward, convert };

/// One op run once, or one conversion between storage types. Values are `none` where the op does without.
struct PlanStep {
    StepKind kind;
    NodeId node;           // whose op runs; of a conversion: whose value it is
    NodeId result;         // whose value it makes: another node where a residual add was fused into this one,
                           // or where its rows are picked by a get_rows
    SpaceId space;         // of the rows it is run for: the result's own, or rows that are chosen from them
    bool barrier = false;  // the team must meet before this step
    ProductKernel product = ProductKernel::panels;
    Small<ValueId, max_inputs> in{};
    ValueId out = none;  // equal to one of `in` where it is made over that
    ValueId add = none, saved = none, scratch = none;
    ValueId dout = none;
    Small<ValueId, max_inputs> din{};  // equal to dout where the gradient is shared
    Small<bool, max_inputs> accumulate{};

    bool runs_forward() const { return kind == StepKind::forward || kind == StepKind::recompute; }
};

/// How a program is to be run: all that is known before the first batch.
struct Lowering {
    Phase phase = Phase::read;
    bool states = false;            // bound: keys and values are read from them
    ById<std::int64_t> capacity;    // most rows, of each space (derived ones may be left out)
    std::int64_t positions = 0;     // most positions of a sequence: what tables must cover
    DType arithmetic = DType::f32;  // of every kernel: f32, or f64 where gradients are checked
    ProductKernel products = ProductKernel::panels;  // panels, bf16 or split
    std::optional<DType> activation;  // storage of what backward reads, where not that of arithmetic
    ById<DType> stored;               // of each parameter; empty: all in `arithmetic`
    ById<bool> trained;               // of each parameter; empty: all (where phase is train)
    bool recompute = false;           // blocks' values are computed again instead of kept
    bool fuse = true;                 // residual adds into the products before them
    bool chosen_only = false;  // rows that a get_rows leaves out are not made, where they can be spared
};

struct Plan {
    Lowering lowering;
    std::vector<NodeId> roots;
    ById<PlanStep> steps;
    ById<Value> values;
    ById<ValueId> value;  // of each node; none where it is not made (or has been dropped since)
                          // (in the rows of its space, or with chosen_only in some of them); later it may be
                          // another node's
    std::size_t arena_bytes = 0;

    int barriers() const;
};

/// The steps that make the program's roots (and, for training, the gradient of every trained parameter),
/// their values packed by liveness.
Plan make_plan(const Graph& graph, const Program& program, const Lowering& lowering);

/// Most rows of a space under the lowering's capacities.
std::int64_t capacity_of(const Graph& graph, const Lowering& lowering, SpaceId space);

/// The nodes whose values a step reads, but for a fused residual's.
std::vector<NodeId> inputs_of(const Graph& graph, const PlanStep& step);

/// "forward", "again", "backward", "convert"
const char* name_of(StepKind kind);

/// One line per step: kind, op, path, width, values, barriers (`inspect graph`).
std::string describe(const Graph& graph, const Plan& plan);

// The parts of make_plan, each in a file of its own.
/// memory.cpp: what an op may make over an input that nothing reads later is one value with it.
void make_in_place(const Graph& graph, Plan& plan);
/// memory.cpp: offsets and arena_bytes. Returns how often it looked where something is free.
std::size_t pack(Plan& plan);
void place_barriers(const Graph& graph, Plan& plan);  // memory.cpp

/// A new value of `width` elements per row of `space`, born at step `step`; with space none, of `width`
/// elements in all.
ValueId new_value(const Graph& graph, Plan& plan, DType type, std::int64_t width, SpaceId space, int step);
/// The value is read or written at `step`.
void touch(Plan& plan, ValueId value, int step);

}  // namespace linnet
