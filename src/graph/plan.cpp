#include "graph/plan.h"

#include <algorithm>
#include <cstdio>

namespace linnet {

BufferId new_buffer(Plan& plan, std::int64_t width, RowSpace space, int step) {
    std::int64_t rows = space == RowSpace::tokens ? plan.options.rows : plan.options.outputs;
    plan.buffers.push_back({width * rows, step, step, 0});
    return static_cast<BufferId>(plan.buffers.size() - 1);
}

void touch(Plan& plan, BufferId buffer, int step) {
    if (buffer == none) return;
    Buffer& b = plan.buffers[static_cast<std::size_t>(buffer)];
    b.first = std::min(b.first, step);
    b.last = std::max(b.last, step);
}

namespace {

std::vector<char> reachable(const Graph& graph, NodeId root) {
    std::vector<char> seen(graph.nodes().size(), 0);
    seen[static_cast<std::size_t>(root)] = 1;
    for (NodeId id = root; id >= 0; id--)
        if (seen[static_cast<std::size_t>(id)])
            for (NodeId input : graph.node(id).inputs) seen[static_cast<std::size_t>(input)] = 1;
    return seen;
}

/// The product that node `id`, a residual add, may be fused into: an input that nothing else reads. Returns
/// its place among the inputs, or none.
int fusable_input(const Graph& graph, NodeId id, const std::vector<int>& consumers) {
    const Node& node = graph.node(id);
    if (node.op != &add_op) return none;
    for (int i = 1; i >= 0; i--) {
        NodeId input = node.inputs[static_cast<std::size_t>(i)];
        if (graph.node(input).op->can_add && consumers[static_cast<std::size_t>(input)] == 1) return i;
    }
    return none;
}

}  // namespace

void plan_forward(const Graph& graph, Plan& plan) {
    std::vector<char> wanted = reachable(graph, plan.root);
    std::vector<int> consumers(graph.nodes().size(), 0);
    for (NodeId id = 0; id <= plan.root; id++)
        if (wanted[static_cast<std::size_t>(id)])
            for (NodeId input : graph.node(id).inputs) consumers[static_cast<std::size_t>(input)]++;

    std::vector<int> fused(graph.nodes().size(), none);  // for an add: the input whose product makes it
    std::vector<char> folded(graph.nodes().size(), 0);   // for a product: made by its add
    for (NodeId id = 0; plan.options.fuse && id <= plan.root; id++) {
        if (!wanted[static_cast<std::size_t>(id)]) continue;
        int input = fusable_input(graph, id, consumers);
        if (input == none) continue;
        fused[static_cast<std::size_t>(id)] = input;
        folded[static_cast<std::size_t>(graph.node(id).inputs[static_cast<std::size_t>(input)])] = 1;
    }

    plan.value.assign(graph.nodes().size(), none);
    for (NodeId id = 0; id <= plan.root; id++) {
        auto at = static_cast<std::size_t>(id);
        const Node& node = graph.node(id);
        if (!wanted[at] || folded[at]) continue;
        if (plan.options.training && node.op->loss) continue;  // its backward makes the loss too
        int now = static_cast<int>(plan.steps.size());
        PlanStep step{Phase::forward, id, id, false};
        if (fused[at] != none) {
            step.node = node.inputs[static_cast<std::size_t>(fused[at])];
            step.add =
                plan.value[static_cast<std::size_t>(node.inputs[static_cast<std::size_t>(1 - fused[at])])];
            touch(plan, step.add, now);
        }
        const Node& runs = graph.node(step.node);
        for (std::size_t i = 0; i < runs.inputs.size(); i++) {
            step.in[i] = plan.value[static_cast<std::size_t>(runs.inputs[i])];
            touch(plan, step.in[i], now);
        }
        plan.value[at] = step.out = new_buffer(plan, node.width, node.space, now);
        Graph::Shapes s = graph.shapes(runs);
        NodeShape shape{s.in, s.parameters, runs.attributes};
        if (plan.options.training && runs.op->saved)
            step.saved = new_buffer(plan, runs.op->saved(shape), node.space, now);
        if (runs.op->scratch) {
            plan.buffers.push_back({runs.op->scratch(shape, plan.options.rows), now, now, 0});
            step.scratch = static_cast<BufferId>(plan.buffers.size() - 1);
        }
        plan.steps.push_back(step);
    }
}

Plan make_plan(const Graph& graph, NodeId root, const PlanOptions& options) {
    Plan plan;
    plan.options = options;
    plan.root = root;
    plan_forward(graph, plan);
    if (options.training) plan_backward(graph, plan);
    touch(plan, plan.value[static_cast<std::size_t>(root)], static_cast<int>(plan.steps.size()));
    pack(plan);
    place_barriers(graph, plan);
    return plan;
}

int Plan::barriers() const {
    return static_cast<int>(
        std::count_if(steps.begin(), steps.end(), [](const PlanStep& s) { return s.barrier; }));
}

std::string describe(const Graph& graph, const Plan& plan) {
    std::string out;
    char line[256];
    for (std::size_t i = 0; i < plan.steps.size(); i++) {
        const PlanStep& s = plan.steps[i];
        const Node& node = graph.node(s.node);
        std::string inputs;
        for (NodeId input : node.inputs) inputs += " " + graph.node(input).path;
        if (s.add != none) inputs += " +residual";
        std::snprintf(line, sizeof line, "%4zu %c %-8s %-18s %-24s %6lld ", i, s.barrier ? '|' : ' ',
                      s.phase == Phase::forward ? "forward" : "backward", std::string(node.op->name).c_str(),
                      graph.node(s.result).path.c_str(), static_cast<long long>(graph.node(s.result).width));
        out += line + std::string("<-") + inputs;
        std::string attributes = node.attributes.text();
        out += (attributes.empty() ? "" : "  {" + attributes + "}") + "\n";
    }
    std::snprintf(line, sizeof line, "%zu steps, %d barriers, arena of %lld elements for %lld rows\n",
                  plan.steps.size(), plan.barriers(), static_cast<long long>(plan.arena_size),
                  static_cast<long long>(plan.options.rows));
    return out + line;
}

}  // namespace linnet
