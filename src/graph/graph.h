// A model, traced: a flat list of nodes in the order they run. The same list is the inference plan (run
// forwards) and the training tape (walked backwards).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/by_id.h"
#include "graph/small.h"
#include "ops/op.h"

namespace linnet {

using NodeId = std::int32_t;
using ParameterId = std::int32_t;
using SpaceId = std::int32_t;
using StreamId = std::int32_t;
using StateId = std::int32_t;
inline constexpr std::int32_t none = -1;

/// Of Parameter::parts.
inline constexpr std::int64_t stacked = -1;

/// What is trained: how it starts, how files hold it, and whether weight decay applies (matrices only).
struct Parameter {
    std::string name;                    // as in GGUF: "blk.0.attn_q.weight"
    Shape shape;                         // a vector has rank 1
    double init_mean = 0, init_std = 0;  // of its first values, normal and independent
    /// Instead it starts as init_mean … ramp_end in equal steps, in each row of the stored matrix anew.
    std::optional<double> ramp_end{};
    /// Of a vector: files hold it as a matrix with so many columns. Of a matrix: as so many matrices, one
    /// after another. 0: as it is. `stacked`, of a vector: as one of several along a fourth dimension.
    std::int64_t parts = 0;
    std::int32_t adapter = none;  // whose it is; none: the model's own; below: in no model's file
    Shape stored() const;
    /// The first value of element `i`, of which `noise` is the random part (normal, deviation 1).
    double start(std::int64_t i, double noise) const;
    bool decay() const { return shape.rank > 1; }
};

/// What the rows of values mean, and how many there are in a run: as many as the batch says, as a stream has
/// entries (chosen rows), a multiple or a part of another space's (the places of experts, merged patches),
/// some for each of its sequences (projected keys), or always the same.
struct RowSpace {
    std::string name;
    StreamId entries = none;
    SpaceId parent = none;
    std::int64_t per_parent = 0, fixed = 0;
    std::int64_t parents = 1;   // per_parent rows for so many of the parent's
    std::int64_t sequence = 0;  // rows of each of its sequences; 0: it has none, or the batch's
    std::int64_t most = 0;      // > 0: as many for each of the parent's sequences as it has, but no more
};

/// What comes in from outside, one entry per row: an integer (token ids, targets, row numbers), or where
/// width > 0 a vector (patches).
struct Stream {
    std::string name;
    std::int64_t width = 0;
};

struct Node {
    const Op* op;
    std::string path;  // module path: "blk.3.attn.q"
    Small<NodeId, max_inputs> inputs;
    Small<ParameterId, max_parameters> parameters;
    Attributes attributes;
    std::int64_t width = 0;  // of the output rows
    SpaceId space = 0;
    StreamId stream = none;  // or a last input beyond the op's makes its integers
    StateId reads = none, writes = none;
    int block = none;  // checkpointing recomputes a block at a time; none: always kept
};

/// A named set of nodes that are wanted together: a loss, logits with the states they extend, an encoder's
/// states.
struct Program {
    std::string name;
    std::vector<NodeId> roots;
};

/// What `Graph::add` cannot tell from a node's inputs.
struct Placement {
    SpaceId space = none;  // none: that of the first input
    StreamId stream = none;
    StateId reads = none, writes = none;
};

class Graph {
  public:
    SpaceId space(RowSpace space);
    StreamId stream(Stream stream);
    StateId state(StateSpec spec);
    ParameterId parameter(Parameter parameter);
    /// Appends a node; its inputs must stand before it. Shapes that do not fit are a std::logic_error.
    NodeId add(const Op& op, std::string path, Small<NodeId, max_inputs> inputs,
               Small<ParameterId, max_parameters> parameters = {}, Attributes attributes = {},
               Placement placement = {});
    void add_program(std::string name, std::vector<NodeId> roots);
    /// Nodes that are added from now on belong to this block (none: to no block).
    void begin_block(int block) { block_ = block; }

    const ById<Node>& nodes() const { return nodes_; }
    const ById<Parameter>& parameters() const { return parameters_; }
    const ById<RowSpace>& spaces() const { return spaces_; }
    const ById<Stream>& streams() const { return streams_; }
    const ById<StateSpec>& states() const { return states_; }
    const Program& program(std::string_view name) const;  // std::logic_error where there is none
    const Node& node(NodeId id) const { return nodes_[id]; }
    std::int64_t parameter_count() const;  // elements

    /// The widths and shapes that the node's op asks its rules about.
    struct Shapes {
        std::vector<std::int64_t> in;
        std::vector<Shape> parameters;
    };
    Shapes shapes(const Node& node) const;

    /// Floating-point operations of the node's op, forward, per token, in sequences of `length` tokens.
    double flops(const Node& node, double length) const;
    /// Tokens that `rows` rows of a space stand for, in sequences of `length` tokens: some spaces have
    /// several rows per token.
    double tokens(SpaceId space, std::int64_t rows, double length) const;

  private:
    ById<Node> nodes_;
    ById<Parameter> parameters_;
    ById<RowSpace> spaces_;
    ById<Stream> streams_;
    ById<StateSpec> states_;
    std::vector<Program> programs_;
    int block_ = none;
};

}  // namespace linnet
