// A model, traced: a flat list of nodes in the order they run. The same list is the inference plan (run
// forwards) and the training tape (walked backwards).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ops/op.h"

namespace linnet {

using NodeId = std::int32_t;
using ParameterId = std::int32_t;
inline constexpr std::int32_t none = -1;

/// How a parameter starts, and whether weight decay applies (matrices only).
struct Parameter {
    std::string name;  // as in GGUF: "blk.0.attn_q.weight"
    Shape shape;       // a vector has rank 1
    double init_mean = 0, init_std = 0;
    bool decay() const { return shape.rank > 1; }
};

struct Node {
    const Op* op;
    std::string path;  // module path: "blk.3.attn.q"
    std::vector<NodeId> inputs;
    std::vector<ParameterId> parameters;
    Attributes attributes;
    std::int64_t width = 0;  // of the output rows
    RowSpace space = RowSpace::tokens;
};

class Graph {
  public:
    ParameterId parameter(std::string name, Shape shape, double init_mean, double init_std);
    /// Appends a node; its inputs must stand before it. Shapes that do not fit are a std::logic_error.
    NodeId add(const Op& op, std::string path, std::vector<NodeId> inputs,
               std::vector<ParameterId> parameters = {}, Attributes attributes = {});

    const std::vector<Node>& nodes() const { return nodes_; }
    const std::vector<Parameter>& parameters() const { return parameters_; }
    const Node& node(NodeId id) const { return nodes_[static_cast<std::size_t>(id)]; }
    std::int64_t parameter_count() const;  // elements

    /// The widths and shapes that the node's op asks its rules about.
    struct Shapes {
        std::vector<std::int64_t> in;
        std::vector<Shape> parameters;
    };
    Shapes shapes(const Node& node) const;

  private:
    std::vector<Node> nodes_;
    std::vector<Parameter> parameters_;
};

}  // namespace linnet
