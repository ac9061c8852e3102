#include "graph/graph.h"

#include <algorithm>
#include <stdexcept>

namespace linnet {
namespace {

template <class T>
std::int32_t append(std::vector<T>& list, T item) {
    list.push_back(std::move(item));
    return static_cast<std::int32_t>(list.size() - 1);
}

}  // namespace

Shape Parameter::stored() const {
    if (shape.rank > 1 && parts == 1 && shape.dim[0] == 1) return Shape(shape.dim[1]);  // one row: a vector
    if (parts == 0) return shape;
    if (shape.rank == 1 && parts == stacked) {
        Shape stored(1, 1);
        stored.dim = {1, 1, 1, shape.dim[0]}, stored.rank = 4;
        return stored;
    }
    if (shape.rank == 1) return Shape(shape.dim[0] / parts, parts);
    Shape stored = shape;
    stored.dim = {parts, shape.dim[0] / parts, shape.dim[1], 1}, stored.rank = 3;
    return stored;
}

double Parameter::start(std::int64_t i, double noise) const {
    if (!ramp_end) return init_mean + init_std * noise;
    const std::int64_t row = parts > 1 ? parts : shape.count();
    return init_mean + (*ramp_end - init_mean) * static_cast<double>(i % row) /
                           static_cast<double>(std::max<std::int64_t>(row - 1, 1));
}

SpaceId Graph::space(RowSpace space) {
    return append(spaces_, std::move(space));
}
StreamId Graph::stream(Stream stream) {
    return append(streams_, std::move(stream));
}
StateId Graph::state(StateSpec spec) {
    return append(states_, std::move(spec));
}
ParameterId Graph::parameter(Parameter parameter) {
    return append(parameters_, std::move(parameter));
}
void Graph::add_program(std::string name, std::vector<NodeId> roots) {
    programs_.push_back({std::move(name), std::move(roots)});
}

const Program& Graph::program(std::string_view name) const {
    for (const Program& p : programs_)
        if (p.name == name) return p;
    throw std::logic_error("a graph without the program " + std::string(name));
}

Graph::Shapes Graph::shapes(const Node& node) const {
    Shapes s;
    for (NodeId input : node.inputs) s.in.push_back(nodes_[input].width);
    for (ParameterId p : node.parameters) s.parameters.push_back(parameters_[p].shape);
    return s;
}

double Graph::flops(const Node& node, double length) const {
    const Shapes s = shapes(node);
    return node.op->flops({s.in, s.parameters, node.attributes}, length);
}

double Graph::tokens(SpaceId space, std::int64_t rows, double length) const {
    const RowSpace& s = spaces_[space];
    if (s.parent == none) return static_cast<double>(rows);
    const double shortened = s.most > 0 ? std::max(1.0, length / static_cast<double>(s.most)) : 1;
    return tokens(s.parent, rows * s.parents, length) * shortened / static_cast<double>(s.per_parent);
}

NodeId Graph::add(const Op& op, std::string path, Small<NodeId, max_inputs> inputs,
                  Small<ParameterId, max_parameters> parameters, Attributes attributes, Placement placement) {
    Node node{&op, std::move(path), inputs, parameters, std::move(attributes)};
    node.stream = placement.stream, node.reads = placement.reads, node.writes = placement.writes;
    node.block = block_;
    for (NodeId input : inputs)
        if (input < 0 || static_cast<std::size_t>(input) >= nodes_.size())
            throw std::logic_error(node.path + ": an input does not stand before its node");
    const bool made = op.stream && inputs.size() > op.inputs && this->node(inputs[op.inputs]).op->integers;
    if (inputs.size() != op.inputs + made || parameters.size() > op.parameters ||
        op.stream != (made || node.stream != none))
        throw std::logic_error(node.path + ": " + std::string(op.name) + " has other inputs");
    if (placement.space == none && inputs.empty())
        throw std::logic_error(node.path + ": a node without inputs must name its row space");
    node.space = placement.space != none ? placement.space : this->node(inputs[0]).space;
    Shapes s = shapes(node);
    node.width = op.width({s.in, s.parameters, node.attributes});
    return append(nodes_, std::move(node));
}

std::int64_t Graph::parameter_count() const {
    std::int64_t count = 0;
    for (const Parameter& p : parameters_) count += p.shape.count();
    return count;
}

}  // namespace linnet
