#include "model/trace/adapters.h"

#include <algorithm>
#include <cmath>

namespace linnet {
namespace {

/// A parameter of an adapter: the one that is there already (tied layers have one), or a new one.
ParameterId find_or_add(Graph& graph, Parameter wanted) {
    const auto& all = graph.parameters();
    for (std::size_t i = all.size(); i-- > 0;)
        if (all[i].adapter == wanted.adapter && all[i].name == wanted.name)
            return static_cast<ParameterId>(i);
    return graph.parameter(std::move(wanted));
}

/// The thin matrix `name` [rows,columns] of an adapter, beside a product; of experts, each has its own.
Parameter thin_matrix(std::string name, Shape shape, std::size_t adapter, const Node& product) {
    const std::int64_t experts =
        product.attributes.has("experts") ? product.attributes.integer("experts") : 0;
    shape.dim[0] *= std::max<std::int64_t>(experts, 1);
    return {.name = std::move(name),
            .shape = shape,
            .parts = experts,
            .adapter = static_cast<std::int32_t>(adapter)};
}

}  // namespace

AdapterTracer::AdapterTracer(std::span<const AdapterShape> adapters) : adapters_(adapters) {
    for (std::size_t a = 0; a < adapters.size(); a++)
        for (std::size_t t = 0; t < adapters[a].targets.size(); t++)
            for (const std::string& name : adapters[a].targets[t].parameters) uses_.insert({name, {a, t}});
}

/// A product of the same kind as the one beside it.
NodeId AdapterTracer::thin(Graph& graph, const Node& product, std::string path, NodeId x,
                           ParameterId matrix) const {
    Small<NodeId, max_inputs> inputs = product.inputs;
    inputs[0] = x;
    return graph.add(*product.op, std::move(path), inputs, {matrix}, product.attributes);
}

/// scale · A x, where the factor is cheapest. B starts at zero and A so that A x has a third of the variance
/// of x's elements, as PEFT's does.
NodeId AdapterTracer::down(Graph& graph, Use use, const Node& product, bool training) {
    const NodeId x = product.inputs[0];
    auto [at, first] = down_.try_emplace({use.adapter, use.target, x}, none);
    if (!first) return at->second;
    const AdapterShape& adapter = adapters_[use.adapter];
    const AdapterTarget& target = adapter.targets[use.target];
    const std::string path = product.path + ".lora" + (use.adapter ? std::to_string(use.adapter) : "");
    const std::int64_t columns = graph.node(x).width;
    NodeId in = x;
    if (training && adapter.dropout > 0)
        in = graph.add(dropout_op, path + ".dropout", {x}, {}, {{"probability", adapter.dropout}});
    Parameter a = thin_matrix(target.tensor + lora_a, {target.rank, columns}, use.adapter, product);
    a.init_std = 1 / std::sqrt(3.0 * static_cast<double>(columns));
    NodeId y = thin(graph, product, path + ".a", in, find_or_add(graph, std::move(a)));
    if (target.scale != 1) y = graph.add(scale_op, path + ".scale", {y}, {}, {{"value", target.scale}});
    return at->second = y;
}

NodeId AdapterTracer::add(Graph& graph, ParameterId weight, NodeId product, bool training) {
    const std::string name = graph.parameters()[static_cast<std::size_t>(weight)].name;
    const auto [begin, end] = uses_.equal_range(name);
    NodeId y = product;
    for (auto it = begin; it != end; ++it) {
        const Use use = it->second;
        const Node node = graph.node(product);  // a copy: nodes are added
        const NodeId low = down(graph, use, node, training);
        const std::int64_t rank = adapters_[use.adapter].targets[use.target].rank;
        const ParameterId b =
            find_or_add(graph, thin_matrix(name + lora_b, {node.width, rank}, use.adapter, node));
        const std::string path = node.path + ".lora" + (use.adapter ? std::to_string(use.adapter) : "");
        const NodeId high = thin(graph, node, path + ".b", low, b);
        y = graph.add(add_op, path, {y, high});
    }
    return y;
}

}  // namespace linnet
