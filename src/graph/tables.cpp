#include "graph/tables.h"

#include <algorithm>
#include <set>

namespace linnet {

namespace {

/// Positions are made so many at a time.
constexpr std::int64_t positions_at_once = 1024;

std::string table_key(const Graph& graph, const Node& node) {
    Graph::Shapes s = graph.shapes(node);
    // All digits: numbers that differ late must not share a table.
    std::string key =
        std::string(node.op->name) + " " + node.attributes.text(17) + " " + std::to_string(s.in.at(0));
    for (ParameterId p : node.parameters) key += " " + std::to_string(p);
    return key;
}

std::string table_key(const Graph& graph, const Node& node, std::int64_t context) {
    return table_key(graph, node) + " " + std::to_string(context);
}

/// Of the given positions, or of none where the op has no position_table. `parameters`: of the whole graph,
/// or none where only the table's size is asked for.
std::vector<double> table_of(const Graph& graph, const Node& node, std::int64_t context, Range positions,
                             std::span<const Tensor> parameters = {}) {
    Graph::Shapes s = graph.shapes(node);
    std::vector<Tensor> values;
    for (ParameterId p : node.parameters)
        if (!parameters.empty()) values.push_back(parameters[static_cast<std::size_t>(p)]);
    const NodeShape shape{s.in, s.parameters, node.attributes, values};
    return node.op->constants ? node.op->constants(shape)
                              : node.op->position_table(shape, context, positions);
}

}  // namespace

template <class Real>
const Real* Tables<Real>::get(const Graph& graph, const Node& node, std::int64_t context,
                              std::span<const Tensor> parameters) {
    Table& table = tables_[table_key(graph, node, context)];
    if (!table.memory) {
        const std::vector<double> values = table_of(graph, node, context, {0, 1}, parameters);
        table.elements = values.size();
        const std::size_t rows = node.op->constants ? 1 : static_cast<std::size_t>(context);
        table.memory = allocate_arena(rows * table.elements * sizeof(Real), "tables of positions");
        if (node.op->constants)
            std::copy(values.begin(), values.end(), static_cast<Real*>(table.memory.get()));
    }
    return static_cast<const Real*>(table.memory.get());
}

template <class Real>
std::int64_t Tables<Real>::reach(const Graph& graph, const Node& node, std::int64_t context,
                                 std::span<const Tensor> parameters, std::int64_t end) {
    Table& table = tables_.at(table_key(graph, node, context));
    while (table.ready < std::min(end, context)) {
        const Range next{table.ready, std::min(table.ready + positions_at_once, context)};
        const std::vector<double> values = table_of(graph, node, context, next, parameters);
        std::copy(
            values.begin(), values.end(),
            static_cast<Real*>(table.memory.get()) + static_cast<std::size_t>(table.ready) * table.elements);
        table.ready = next.end;
    }
    return table.ready;
}

std::size_t table_elements(const Graph& graph, const std::vector<const Plan*>& plans) {
    std::set<std::string> seen;
    std::size_t count = 0;
    for (const Plan* plan : plans)
        for (const PlanStep& step : plan->steps) {
            const Node& node = graph.node(step.node);
            const std::int64_t context = plan->lowering.positions;
            if (!node.op->has_table() || !seen.insert(table_key(graph, node, context)).second) continue;
            count += table_of(graph, node, context, {0, 1}).size() *
                     (node.op->constants ? 1 : static_cast<std::size_t>(context));
        }
    return count;
}

template class Tables<float>;
template class Tables<double>;

}  // namespace linnet
