// Reverse-mode differentiation: the forward list walked backwards, each op's backward called once all
// gradients of its output have come together.
#include <algorithm>

#include "graph/plan.h"

namespace linnet {
namespace {

struct Backward {
    const Graph& graph;
    Plan& plan;
    std::vector<BufferId> gradient;  // of each node's value, none until its first consumer was walked
    std::vector<std::vector<NodeId>> consumers;  // of each node, among those that the root needs
    std::vector<int> forward_step;               // the step that ran a node's op, none if none did

    Backward(const Graph& g, Plan& p)
        : graph(g),
          plan(p),
          gradient(g.nodes().size(), none),
          consumers(g.nodes().size()),
          forward_step(g.nodes().size(), none) {
        for (std::size_t i = 0; i < p.steps.size(); i++)
            forward_step[static_cast<std::size_t>(p.steps[i].node)] = static_cast<int>(i);
        std::vector<char> wanted(g.nodes().size(), 0);
        wanted[static_cast<std::size_t>(p.root)] = 1;
        for (NodeId id = p.root; id >= 0; id--) {
            if (!wanted[static_cast<std::size_t>(id)]) continue;
            for (NodeId input : g.node(id).inputs) {
                wanted[static_cast<std::size_t>(input)] = 1;
                consumers[static_cast<std::size_t>(input)].push_back(id);
            }
        }
    }

    BufferId& of(NodeId id) { return gradient[static_cast<std::size_t>(id)]; }

    /// May inputs a and b of one add both live in the add's gradient buffer? b's gradient must be final
    /// already (one consumer) and read, by b's own backward, before any other consumer of a adds to the
    /// buffer.
    bool may_share(NodeId a, NodeId b, NodeId add) const {
        if (consumers[static_cast<std::size_t>(b)].size() != 1 || graph.node(b).op->passes_gradient || a >= b)
            return false;
        return std::all_of(consumers[static_cast<std::size_t>(a)].begin(),
                           consumers[static_cast<std::size_t>(a)].end(),
                           [&](NodeId c) { return c == add || c < b; });
    }

    /// Gradients of the inputs of an op whose inputs' gradients equal its output's: shared where that is
    /// safe.
    void pass(NodeId id, PlanStep& step, int now) {
        const Node& node = graph.node(id);
        bool first = of(node.inputs[0]) == none;
        bool both =
            node.inputs.size() == 2 && first && of(node.inputs[1]) == none &&
            (may_share(node.inputs[0], node.inputs[1], id) || may_share(node.inputs[1], node.inputs[0], id));
        bool taken = false;
        for (std::size_t i = 0; i < node.inputs.size(); i++) {
            BufferId& g = of(node.inputs[i]);
            if (g == none && (!taken || both)) {
                g = step.dout;
                taken = true;
                step.din[i] = g;
            } else {
                give(node.inputs[i], step, i, now);
            }
        }
    }

    void give(NodeId input, PlanStep& step, std::size_t i, int now) {
        BufferId& g = of(input);
        step.accumulate[i] = g != none;
        if (g == none) g = new_buffer(plan, graph.node(input).width, graph.node(input).space, now);
        step.din[i] = g;
        touch(plan, g, now);
    }

    void walk(NodeId id) {
        const Node& node = graph.node(id);
        int now = static_cast<int>(plan.steps.size());
        PlanStep step{Phase::backward, id, id, false};
        for (std::size_t i = 0; i < node.inputs.size(); i++)
            if (node.op->reads_inputs >> i & 1u) {
                step.in[i] = plan.value[static_cast<std::size_t>(node.inputs[i])];
                touch(plan, step.in[i], now);
            }
        if (node.op->loss) {
            Graph::Shapes s = graph.shapes(node);
            NodeShape shape{s.in, s.parameters, node.attributes};
            plan.value[static_cast<std::size_t>(id)] = step.out =
                new_buffer(plan, node.width, node.space, now);
            plan.buffers.push_back({node.op->scratch(shape, plan.options.rows), now, now, 0});
            step.scratch = static_cast<BufferId>(plan.buffers.size() - 1);
        } else {
            step.dout = of(id);
            touch(plan, step.dout, now);
            if (node.op->reads_output) step.out = plan.value[static_cast<std::size_t>(id)];
            touch(plan, step.out, now);
            int forward = forward_step[static_cast<std::size_t>(id)];
            if (forward != none) step.saved = plan.steps[static_cast<std::size_t>(forward)].saved;
            touch(plan, step.saved, now);
        }
        if (node.op->passes_gradient)
            pass(id, step, now);
        else
            for (std::size_t i = 0; i < node.inputs.size(); i++) give(node.inputs[i], step, i, now);
        plan.steps.push_back(step);
    }
};

}  // namespace

void plan_backward(const Graph& graph, Plan& plan) {
    Backward backward(graph, plan);
    backward.walk(plan.root);
    for (NodeId id = plan.root - 1; id >= 0; id--)
        if (backward.of(id) != none) backward.walk(id);
}

}  // namespace linnet
