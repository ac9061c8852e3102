// Rotary positions (Su et al. 2021) in a model's graph.
#pragma once
#include <string>

#include "graph/graph.h"
#include "model/config/config.h"

namespace linnet {

class RopeTracer {
  public:
    /// What the nodes of all layers have in common, and their factors, once.
    void begin(Graph& graph, const ModelConfig& config);
    /// x [R, heads·D] rotated by its rows' positions.
    NodeId add(Graph& graph, const ModelConfig& config, std::int64_t layer, std::string path, NodeId x) const;

  private:
    Attributes turn_;
    Small<ParameterId, max_parameters> factors_;
};

}  // namespace linnet
