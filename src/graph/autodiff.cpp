// Reverse-mode differentiation: the forward list walked backwards, each op's backward called once all
// gradients of its output have come together. A value that was dropped is computed again when it is first
// read (gradient checkpointing: Chen et al. 2016, "Training deep nets with sublinear memory cost").
#include <algorithm>

#include "graph/lower.h"

namespace linnet {
namespace {

struct Backward {
    Lowerer& l;
    const Graph& graph;
    Plan& plan;
    ById<ValueId> gradient;               // of each node's value, none until its first consumer was walked
    ById<std::vector<NodeId>> consumers;  // of each node, among those that the roots need
    ById<char> wants;                     // a trained parameter stands in the node or before it
    ById<int> again;                      // the recompute step that stands for a node's forward step

    explicit Backward(Lowerer& lowerer)
        : l(lowerer),
          graph(l.graph),
          plan(l.plan),
          gradient(graph.nodes().size(), none),
          consumers(graph.nodes().size()),
          wants(graph.nodes().size(), 0),
          again(graph.nodes().size(), none) {
        for (NodeId id = 0; id < size(); id++) {
            const Node& node = graph.node(id);
            if (!l.wanted[id] || node.op->integers || !node.op->backward) continue;
            for (ParameterId p : node.parameters) wants[id] |= trained(p);
            for (std::size_t i = 0; i < node.inputs.size(); i++) wants[id] |= differentiates(node, i);
        }
        for (NodeId id = size() - 1; id >= 0; id--)
            if (l.wanted[id])
                for (NodeId input : graph.node(id).inputs) consumers[input].push_back(id);
    }

    NodeId size() const { return static_cast<NodeId>(graph.nodes().size()); }
    bool trained(ParameterId p) const { return plan.lowering.trained.empty() || plan.lowering.trained[p]; }
    bool differentiates(const Node& node, std::size_t input) const {
        return !(node.op->undifferentiated >> input & 1u) && wants[node.inputs[input]];
    }
    ValueId& of(NodeId id) { return gradient[id]; }

    /// The node's value for a backward or recompute step that is about to be added.
    ValueId read(NodeId id) {
        recompute(id);
        return l.read(id);
    }

    ValueId read_output(NodeId id) {
        recompute(id);
        return l.forms(graph.node(id)).output ? plan.value[id] : l.read(id);
    }

    ValueId read_input(NodeId reader, std::size_t i) {
        recompute(graph.node(reader).inputs[i]);
        return l.read_input(reader, i);
    }

    void recompute(NodeId id) {
        if (!l.dropped[id] || l.made_by[id] == none || again[id] != none) return;
        const PlanStep first = plan.steps[l.made_by[id]];
        PlanStep step{StepKind::recompute, first.node, first.result, first.space};
        const Node& runs = graph.node(first.node);
        for (std::size_t i = 0; i < runs.inputs.size(); i++) step.in.push_back(read_input(first.node, i));
        if (first.add != none) {
            const Node& sum = graph.node(first.result);
            step.add = read(sum.inputs[sum.inputs[0] == first.node ? 1 : 0]);
        }
        again[id] = l.now();
        l.run(StepKind::recompute, step);
    }

    /// What the node's forward kept for its backward.
    ValueId saved(NodeId id) {
        int step = l.run_by[id];
        if (step == none) return none;
        NodeId result = plan.steps[step].result;
        recompute(result);
        if (again[result] != none) step = again[result];
        return plan.steps[step].saved;
    }

    /// May inputs a and b of one add both live in the add's gradient? b's gradient must be final already (one
    /// consumer) and read, by b's own backward, before any other consumer of a adds to the value.
    bool may_share(NodeId a, NodeId b, NodeId add) const {
        if (consumers[b].size() != 1 || graph.node(b).op->passes_gradient || a >= b) return false;
        return std::all_of(consumers[a].begin(), consumers[a].end(),
                           [&](NodeId c) { return c == add || c < b; });
    }

    /// Gradients of the inputs of an op whose inputs' gradients equal its output's: shared where that is
    /// safe.
    void pass(NodeId id, PlanStep& step) {
        const Node& node = graph.node(id);
        bool both =
            node.inputs.size() == 2 && of(node.inputs[0]) == none && of(node.inputs[1]) == none &&
            (may_share(node.inputs[0], node.inputs[1], id) || may_share(node.inputs[1], node.inputs[0], id));
        bool taken = false;
        for (std::size_t i = 0; i < node.inputs.size(); i++) {
            ValueId& g = of(node.inputs[i]);
            if (differentiates(node, i) && g == none && (!taken || both)) {
                g = step.dout;
                taken = true;
                step.din.push_back(g);
                step.accumulate.push_back(false);
            } else {
                give(node, i, step);
            }
        }
    }

    void give(const Node& node, std::size_t i, PlanStep& step) {
        NodeId input = node.inputs[i];
        ValueId& g = of(input);
        bool wanted = differentiates(node, i);
        step.accumulate.push_back(wanted && g != none);
        if (wanted && g == none)
            g = l.value(plan.lowering.arithmetic, graph.node(input).width, graph.node(input).space);
        // An op of several inputs writes the gradients of all: one that is not wanted goes where no one
        // reads.
        ValueId to = wanted ? g : none;
        if (!wanted && node.op->inputs > 1 && i < node.op->inputs && !(node.op->undifferentiated >> i & 1u))
            to = l.value(plan.lowering.arithmetic, graph.node(input).width, graph.node(input).space);
        step.din.push_back(to);
        if (to != none) touch(plan, to, l.now());
    }

    void walk(NodeId id) {
        const Node& node = graph.node(id);
        PlanStep step{StepKind::backward, id, id, node.space};
        step.product = plan.lowering.products;
        for (std::size_t i = 0; i < node.inputs.size(); i++)
            step.in.push_back(backward_reads(node, i) ? read_input(id, i) : none);
        if (node.op->reads_output) step.out = read_output(id);
        step.saved = saved(id);
        // From here on no step is added before this one.
        if (node.op->loss) {
            plan.value[id] = step.out = l.value(plan.lowering.arithmetic, node.width, node.space);
            step.scratch = l.scratch(node, node.op->scratch, node.space);
        } else {
            step.dout = of(id);
            step.scratch = l.scratch(node, node.op->backward_scratch, node.space);
        }
        for (ValueId v : step.in) touch(plan, v, l.now());
        for (ValueId v : {step.out, step.saved, step.dout}) touch(plan, v, l.now());
        if (node.op->passes_gradient)
            pass(id, step);
        else
            for (std::size_t i = 0; i < node.inputs.size(); i++) give(node, i, step);
        plan.steps.push_back(step);
    }
};

}  // namespace

void lower_backward(Lowerer& lowerer) {
    Backward backward(lowerer);
    const std::vector<NodeId>& roots = lowerer.plan.roots;
    for (NodeId id = backward.size() - 1; id >= 0; id--) {
        bool loss =
            lowerer.graph.node(id).op->loss && std::find(roots.begin(), roots.end(), id) != roots.end();
        if (loss || (backward.of(id) != none && backward.wants[id])) backward.walk(id);
    }
}

}  // namespace linnet
