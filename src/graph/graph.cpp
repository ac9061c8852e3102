#include "graph/graph.h"

#include <stdexcept>

namespace linnet {

ParameterId Graph::parameter(std::string name, Shape shape, double init_mean, double init_std) {
    parameters_.push_back({std::move(name), shape, init_mean, init_std});
    return static_cast<ParameterId>(parameters_.size() - 1);
}

Graph::Shapes Graph::shapes(const Node& node) const {
    Shapes s;
    for (NodeId input : node.inputs) s.in.push_back(nodes_[static_cast<std::size_t>(input)].width);
    for (ParameterId p : node.parameters)
        s.parameters.push_back(parameters_[static_cast<std::size_t>(p)].shape);
    return s;
}

NodeId Graph::add(const Op& op, std::string path, std::vector<NodeId> inputs,
                  std::vector<ParameterId> parameters, Attributes attributes) {
    Node node{&op, std::move(path), std::move(inputs), std::move(parameters), std::move(attributes),
              0,   op.space};
    if (static_cast<int>(node.inputs.size()) != op.inputs ||
        static_cast<int>(node.parameters.size()) > op.parameters)
        throw std::logic_error(node.path + ": " + std::string(op.name) + " has other inputs");
    for (NodeId input : node.inputs) {
        if (input < 0 || static_cast<std::size_t>(input) >= nodes_.size())
            throw std::logic_error(node.path + ": an input does not stand before its node");
        if (nodes_[static_cast<std::size_t>(input)].space == RowSpace::outputs)
            node.space = RowSpace::outputs;
    }
    Shapes s = shapes(node);
    node.width = op.width({s.in, s.parameters, node.attributes});
    nodes_.push_back(std::move(node));
    return static_cast<NodeId>(nodes_.size() - 1);
}

std::int64_t Graph::parameter_count() const {
    std::int64_t count = 0;
    for (const Parameter& p : parameters_) count += p.shape.count();
    return count;
}

}  // namespace linnet
