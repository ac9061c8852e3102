// The forward steps of a program: which nodes run, which products take a residual add with them, in which
// type values are kept.
#include <algorithm>

#include "graph/lower.h"

namespace linnet {

Lowerer::Lowerer(const Graph& g, Plan& p) : graph(g), plan(p) {
    std::size_t count = g.nodes().size();
    wanted.assign(count, 0), kept.assign(count, 0), dropped.assign(count, 0), residual.assign(count, 0);
    consumers.assign(count, 0);
    made_by.assign(count, none), run_by.assign(count, none);
    wide.assign(count, none);
    ById<char> leaves_block(count, 0);
    for (NodeId root : p.roots)
        if (p.lowering.states || g.node(root).writes == none)  // without states there is nothing to extend
            wanted[root] = leaves_block[root] = 1;
    for (auto id = static_cast<NodeId>(count) - 1; id >= 0; id--) {
        if (!wanted[id]) continue;
        const Node& node = g.node(id);
        if (node.op->reads_output) kept[id] = 1;
        residual[id] |= node.op->passes_gradient;
        for (std::size_t i = 0; i < node.inputs.size(); i++) {
            if (from_state(node, i)) continue;
            const NodeId input = node.inputs[i];
            wanted[input] = 1;
            residual[input] |= node.op->passes_gradient;
            consumers[input]++;
            if (backward_reads(node, i)) kept[input] = 1;
            if (node.block != g.node(node.inputs[i]).block) leaves_block[input] = 1;
        }
    }
    for (std::size_t id = 0; id < count; id++)
        dropped[id] = training() && p.lowering.recompute && g.nodes()[id].block != none && !leaves_block[id];
    chooser.assign(count, none);
    picked.assign(count, {});
    if (p.lowering.chosen_only && !training()) choose();
}

/// A node whose rows go to one get_rows alone, perhaps by way of other such nodes, is made for the rows that
/// it chooses, where its op allows: of a prompt, what follows the attention of the last layer, for one row.
void Lowerer::choose() {
    constexpr NodeId unread = -2;
    ById<NodeId> by(graph.nodes().size(), unread);  // what reads it takes the rows of this one; none: all
    for (NodeId root : plan.roots) by[root] = none;
    for (auto id = static_cast<NodeId>(graph.nodes().size()) - 1; id >= 0; id--) {
        if (!wanted[id]) continue;
        const Node& node = graph.node(id);
        auto in_its_space = [&](NodeId input) { return graph.node(input).space == node.space; };
        if (node.op->by_row && by[id] >= 0 &&
            std::all_of(node.inputs.begin(), node.inputs.end(), in_its_space))
            chooser[id] = by[id];
        const bool chooses = node.op == &get_rows_op && node.stream != none;
        const NodeId rows = chooses ? id : chooser[id];
        for (NodeId input : node.inputs) by[input] = by[input] == unread || by[input] == rows ? rows : none;
    }
}

DType Lowerer::type_of(NodeId node) const {
    return graph.node(node).op->integers ? DType::i32 : plan.lowering.arithmetic;
}

StoredForms Lowerer::forms(const Node& node) const {
    if (!node.op->stored) return {};
    const Graph::Shapes s = graph.shapes(node);
    // The kernels that round have f32 and bf16 alone, and take no weights of block types.
    const Lowering& l = plan.lowering;
    bool rounds = l.arithmetic == DType::f32 && l.activation == DType::bf16;
    if (node.op->product && !l.stored.empty()) rounds &= info(l.stored[node.parameters[0]]).block == 1;
    const StoredForms forms =
        node.op->stored({s.in, s.parameters, node.attributes}, rounds ? l.products : ProductKernel::panels);
    if (!forms.alike) return forms;
    bool all = stored_narrow(static_cast<NodeId>(&node - graph.nodes().data()));
    for (std::size_t i = 0; i < node.inputs.size(); i++)
        if (forms.inputs >> i & 1u) all &= stored_narrow(node.inputs[i]);
    return all ? forms : StoredForms{};
}

bool Lowerer::stored_narrow(NodeId node) const {
    return training() && plan.lowering.activation && kept[node] && !residual[node] &&
           !graph.node(node).op->integers &&
           std::find(plan.roots.begin(), plan.roots.end(), node) == plan.roots.end();
}

void Lowerer::convert(ValueId from, ValueId to, NodeId node) {
    PlanStep step{StepKind::convert, node, node, plan.values[to].space};
    step.in = {from};
    step.out = to;
    touch(plan, from, now()), touch(plan, to, now());
    plan.steps.push_back(step);
}

ValueId Lowerer::read(NodeId id) {
    ValueId stored = plan.value[id];
    if (stored == none || plan.values[stored].type == type_of(id)) return stored;
    // A copy that was read a few steps ago is read again; to keep one longer would undo the narrow storage.
    constexpr int soon = 8;
    ValueId& copy = wide[id];
    if (copy == none || plan.values[copy].last + soon < now()) {
        const Node& node = graph.node(id);
        copy = value(type_of(id), node.width, node.space);
        convert(stored, copy, id);
    }
    return copy;
}

ValueId Lowerer::read_chosen(NodeId id, NodeId by) {
    if (chooser[id] == by) return plan.value[id];
    if (picked[id].by == by) return picked[id].value;
    PlanStep step{StepKind::forward, by, id, graph.node(by).space};
    step.in = {read(id)};
    step.out = value(type_of(id), graph.node(id).width, step.space);
    touch(plan, step.in[0], now());
    plan.steps.push_back(step);
    picked[id] = {by, step.out};
    return step.out;
}

ValueId Lowerer::scratch(const Node& node, std::int64_t (*size)(const NodeShape&, std::int64_t rows),
                         SpaceId space) {
    if (!size) return none;
    const Graph::Shapes s = graph.shapes(node);
    const NodeShape shape{s.in, s.parameters, node.attributes};
    return value(plan.lowering.arithmetic, size(shape, capacity_of(graph, plan.lowering, space)), none);
}

void Lowerer::run(StepKind kind, PlanStep step) {
    const Node &runs = graph.node(step.node), &makes = graph.node(step.result);
    const Lowering& lowering = plan.lowering;
    const NodeId result = step.result;
    bool keeps = kind == StepKind::recompute || !dropped[result];
    bool written = lowering.phase == Phase::write || runs.attributes.has("written");
    step.kind = kind;
    step.product = written ? ProductKernel::rows : lowering.products;
    const bool narrow = stored_narrow(step.result), made_narrow = narrow && !written && forms(runs).output;
    step.out = value(made_narrow ? *lowering.activation : type_of(step.result), makes.width, step.space);
    Graph::Shapes s = graph.shapes(runs);
    NodeShape shape{s.in, s.parameters, runs.attributes};
    if (training() && runs.op->saved && keeps)
        step.saved = value(lowering.arithmetic, runs.op->saved(shape), step.space);
    step.scratch = scratch(runs, runs.op->scratch, step.space);
    for (ValueId v : step.in) touch(plan, v, now());
    touch(plan, step.add, now());
    plan.value[result] = step.out;
    if (kind == StepKind::forward) made_by[result] = run_by[step.node] = now();
    plan.steps.push_back(step);

    if (narrow) wide[result] = none;  // consumers must see what backward will differentiate
    if (narrow && !made_narrow) {
        const ValueId stored = value(*lowering.activation, makes.width, step.space);
        convert(step.out, stored, step.result);
        plan.value[result] = stored;
    }
}

namespace {

/// The product that node `id`, a residual add, may be fused into: an input that nothing else reads and that
/// belongs to the same space. Returns its place among the inputs, or none.
int fusable_input(const Lowerer& lowerer, NodeId id) {
    const Node& node = lowerer.graph.node(id);
    if (node.op != &add_op) return none;
    for (int i = 1; i >= 0; i--) {
        NodeId input = node.inputs[static_cast<std::size_t>(i)];
        bool sole = lowerer.consumers[input] == 1 && lowerer.chooser[input] == lowerer.chooser[id];
        if (lowerer.graph.node(input).op->can_add && sole) return i;
    }
    return none;
}

}  // namespace

void lower_forward(Lowerer& l) {
    const Graph& graph = l.graph;
    auto count = static_cast<NodeId>(graph.nodes().size());
    ById<int> fused(graph.nodes().size(), none);  // for an add: the input whose product makes it
    ById<char> folded(graph.nodes().size(), 0);   // for a product: made by its add
    for (NodeId id = 0; l.plan.lowering.fuse && id < count; id++) {
        if (!l.wanted[id]) continue;
        int input = fusable_input(l, id);
        if (input == none) continue;
        fused[id] = input;
        folded[graph.node(id).inputs[static_cast<std::size_t>(input)]] = 1;
    }
    l.plan.value.assign(graph.nodes().size(), none);
    for (NodeId id = 0; id < count; id++) {
        const Node& node = graph.node(id);
        if (!l.wanted[id] || folded[id]) continue;
        if (l.training() && node.op->loss) continue;                       // its backward makes the loss too
        if (node.op == &get_rows_op && l.chooser[node.inputs[0]] == id) {  // there are no other rows
            l.plan.value[id] = l.plan.value[node.inputs[0]];
            continue;
        }
        PlanStep step{StepKind::forward, id, id, l.space_of(id)};
        if (fused[id] != none) {
            step.node = node.inputs[static_cast<std::size_t>(fused[id])];
            step.add = l.read_input(id, static_cast<std::size_t>(1 - fused[id]));
        }
        const Node& runs = graph.node(step.node);
        for (std::size_t i = 0; i < runs.inputs.size(); i++)
            step.in.push_back(l.from_state(runs, i) ? none : l.read_input(step.node, i));
        l.run(StepKind::forward, step);
    }
}

}  // namespace linnet
