// A config traced once into a graph: the one definition of a model, for training and for inference.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "model/config.h"

namespace linnet {

struct TracedModel {
    Graph graph;
    NodeId logits = none;  // [outputs, V], for the rows of Batch::outputs
    NodeId loss = none;    // [R, 1], nats a row
};

/// `config` must be resolved. Dropout nodes stand in the graph only where `training`.
TracedModel trace(const ModelConfig& config, bool training);

/// Floating-point operations a token, forward, in sequences of `length` tokens (causal attention: each token
/// sees half of them on average).
double forward_flops(const TracedModel& model, const ModelConfig& config, double length);

Activation activation_from_name(std::string_view name);
std::vector<std::string> activation_names();

}  // namespace linnet
