// Room for the rows of a traced model's spaces.
#pragma once
#include <cstdint>

#include "graph/graph.h"

namespace linnet {

/// Most rows of the spaces that a batch fills; all others follow from these.
struct RowRoom {
    std::int64_t tokens = 0;
    std::int64_t outputs = 0;
    std::int64_t beside = 0;  // of "source", "masks" or "next": a model has one of them, or none
};

/// Of each of the graph's spaces, for Lowering::capacity.
ById<std::int64_t> capacities(const Graph& graph, const RowRoom& room);

}  // namespace linnet
