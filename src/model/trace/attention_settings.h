// What a config tells attention's op of a layer.
#pragma once
#include "graph/graph.h"
#include "model/config/config.h"

namespace linnet {

/// Rows that the keys of the layer's attention become; 0: none. `own`: of its own stack's rows, both ways.
std::int64_t projected_at(const ModelConfig& config, std::int64_t layer, bool own, bool causal);

/// The attributes of attention_op in the layer; `self`: the keys are of its own stack's rows; `training`: of
/// a graph that is trained.
Attributes attention_settings(const ModelConfig& config, std::int64_t layer, bool self, bool causal,
                              bool training);

}  // namespace linnet
