#include "graph/plan.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "graph/lower.h"

namespace linnet {

std::int64_t capacity_of(const Graph& graph, const Lowering& lowering, SpaceId space) {
    const RowSpace& s = graph.spaces()[space];
    if (s.fixed > 0) return s.fixed;
    if (s.parent != none) return capacity_of(graph, lowering, s.parent) * s.per_parent / s.parents;
    auto at = static_cast<std::size_t>(space);
    return at < lowering.capacity.size() ? lowering.capacity[at] : 0;
}

ValueId new_value(const Graph& graph, Plan& plan, DType type, std::int64_t width, SpaceId space, int step) {
    std::int64_t rows = space == none ? 1 : capacity_of(graph, plan.lowering, space);
    Value v;
    v.type = type, v.space = space, v.width = width;
    v.bytes = static_cast<std::size_t>(width * rows * info(type).bytes);
    v.first = v.last = step;
    plan.values.push_back(v);
    return static_cast<ValueId>(plan.values.size() - 1);
}

void touch(Plan& plan, ValueId value, int step) {
    if (value == none) return;
    Value& v = plan.values[value];
    v.first = std::min(v.first, step);
    v.last = std::max(v.last, step);
}

Plan make_plan(const Graph& graph, const Program& program, const Lowering& lowering) {
    Plan plan;
    plan.lowering = lowering;
    plan.roots = program.roots;
    Lowerer lowerer(graph, plan);
    lower_forward(lowerer);
    if (lowering.phase == Phase::train) lower_backward(lowerer);
    for (NodeId root : plan.roots) touch(plan, plan.value[root], static_cast<int>(plan.steps.size()));
    make_in_place(graph, plan);
    pack(plan);
    place_barriers(graph, plan);
    return plan;
}

int Plan::barriers() const {
    return static_cast<int>(
        std::count_if(steps.begin(), steps.end(), [](const PlanStep& s) { return s.barrier; }));
}

std::vector<NodeId> inputs_of(const Graph& graph, const PlanStep& step) {
    const Node& node = graph.node(step.node);
    // Of rows that are picked, not those that the get_rows was traced for.
    if (step.kind == StepKind::convert || (node.op == &get_rows_op && step.result != step.node))
        return {step.result};
    return {node.inputs.begin(), node.inputs.end()};
}

const char* name_of(StepKind kind) {
    static constexpr const char* names[] = {"forward", "again", "backward", "convert"};
    return names[static_cast<std::size_t>(kind)];
}

std::string describe(const Graph& graph, const Plan& plan) {
    std::string out;
    char line[256];
    for (std::size_t i = 0; i < plan.steps.size(); i++) {
        const PlanStep& s = plan.steps[i];
        const Node& node = graph.node(s.node);
        std::string inputs;
        if (s.kind == StepKind::convert) {
            const Value& made = plan.values[s.out];
            inputs = " to " + std::string(info(made.type).name);
        } else {
            for (NodeId input : inputs_of(graph, s)) inputs += " " + graph.node(input).path;
            if (s.add != none) inputs += " +residual";
        }
        std::snprintf(line, sizeof line, "%4zu %c %-8s %-18s %-24s %6lld ", i, s.barrier ? '|' : ' ',
                      name_of(s.kind), std::string(node.op->name).c_str(), graph.node(s.result).path.c_str(),
                      static_cast<long long>(graph.node(s.result).width));
        out += line + std::string("<-") + inputs;
        std::string attributes = node.attributes.text();
        out += (attributes.empty() ? "" : "  {" + attributes + "}") + "\n";
    }
    std::snprintf(line, sizeof line, "%zu steps, %d barriers, arena of %.1f MiB for %lld rows\n",
                  plan.steps.size(), plan.barriers(), static_cast<double>(plan.arena_bytes) / (1 << 20),
                  static_cast<long long>(capacity_of(graph, plan.lowering, 0)));
    return out + line;
}

}  // namespace linnet
