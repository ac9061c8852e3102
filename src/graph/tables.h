// What depends on positions or on attributes alone (rotary angles, sinusoids, slopes), made once.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/arena.h"
#include "graph/graph.h"
#include "graph/plan.h"

namespace linnet {

/// Each table made once, for all executors that share this object. Not for use by several threads at once.
template <class Real>
class Tables {
  public:
    /// The table of a node's op, from the graph's parameters. That of an op with a position_table has room
    /// for positions [0, context), and holds those that were reached.
    const Real* get(const Graph& graph, const Node& node, std::int64_t context,
                    std::span<const Tensor> parameters);
    /// Makes positions [0, end) of a table that `get` was asked for, and some more of it: a context of a
    /// million positions has room for 512 MB of angles, which took seconds where all were made at the start.
    /// Returns how many there are now, of `context` at most.
    std::int64_t reach(const Graph& graph, const Node& node, std::int64_t context,
                       std::span<const Tensor> parameters, std::int64_t end);

  private:
    struct Table {
        Arena memory;  // [elements], or [context, elements]
        std::size_t elements = 0;
        std::int64_t ready = 0;  // positions
    };
    std::map<std::string, Table> tables_;
};

/// Elements of all tables that the plans need, each distinct one once, with all its positions.
std::size_t table_elements(const Graph& graph, const std::vector<const Plan*>& plans);

}  // namespace linnet
