// What the forward and the backward half of lowering share.
#pragma once
#include <vector>

#include "graph/plan.h"

namespace linnet {

/// Whether the node's backward reads input `i`: also one that makes the integers of its stream.
inline bool backward_reads(const Node& node, std::size_t i) {
    return i == node.op->inputs || (node.op->reads_inputs >> i & 1u) != 0;
}

/// A program being lowered: its plan so far, and what is known of every node.
struct Lowerer {
    const Graph& graph;
    Plan& plan;
    ById<char> wanted;     // nodes that the roots need
    ById<char> kept;       // nodes whose value backward reads
    ById<char> residual;   // nodes whose value is a sum or goes into one: never stored narrowly
    ById<char> dropped;    // nodes whose value is computed again for backward
    ById<int> consumers;   // how many wanted nodes read each node
    ById<int> made_by;     // the forward step that makes a node's value; none: none does
    ById<int> run_by;      // the forward step that runs a node's op (another's, where fused)
    ById<ValueId> wide;    // the newest copy of a value in the type of arithmetic
    ById<NodeId> chooser;  // the get_rows whose rows alone a node is made for; none: all of its own
    struct Picked {
        NodeId by = none;
        ValueId value = none;
    };
    ById<Picked> picked;  // of nodes that are made whole, the rows that such a node takes

    Lowerer(const Graph& g, Plan& p);

    bool training() const { return plan.lowering.phase == Phase::train; }
    /// The input is read from a state and not from the node that makes it.
    bool from_state(const Node& node, std::size_t input) const {
        return plan.lowering.states && node.reads != none && (node.op->from_state >> input & 1u);
    }
    /// The node's value in the type of arithmetic, for step `plan.steps.size()`; a narrower one is converted
    /// first, which adds a step.
    ValueId read(NodeId id);
    /// The same for input `i` of a node's op, which may read it as it is stored.
    ValueId read_input(NodeId reader, std::size_t i) {
        const Node& node = graph.node(reader);
        const NodeId id = node.inputs[i];
        if (chooser[reader] != none) return read_chosen(id, chooser[reader]);
        return forms(node).inputs >> i & 1u ? plan.value[id] : read(id);
    }
    /// The rows of a node's value that a get_rows chooses: made so, or picked, which adds a step.
    ValueId read_chosen(NodeId id, NodeId by);
    /// Of the rows that a node is made for.
    SpaceId space_of(NodeId id) const { return graph.node(chooser[id] == none ? id : chooser[id]).space; }
    /// What the node's op takes and makes as it is stored, once its inputs' values are there.
    StoredForms forms(const Node& node) const;
    /// The node's value is stored in the type that the lowering has for those.
    bool stored_narrow(NodeId node) const;
    /// The type in which a node's op makes its value.
    DType type_of(NodeId node) const;
    int now() const { return static_cast<int>(plan.steps.size()); }
    ValueId value(DType type, std::int64_t width, SpaceId space) {
        return new_value(graph, plan, type, width, space, now());
    }
    /// Memory of one step, as `size` (Op::scratch, Op::backward_scratch) says for the rows of `space`; none
    /// where the op has no such rule.
    ValueId scratch(const Node& node, std::int64_t (*size)(const NodeShape&, std::int64_t rows),
                    SpaceId space);
    /// Adds a step that runs a node's op forwards; all but inputs, `add` and storage are filled in.
    void run(StepKind kind, PlanStep step);

  private:
    void choose();
    void convert(ValueId from, ValueId to, NodeId node);
};

void lower_forward(Lowerer& lowerer);   // forward.cpp
void lower_backward(Lowerer& lowerer);  // autodiff.cpp

}  // namespace linnet
