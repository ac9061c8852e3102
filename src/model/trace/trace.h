// A config traced once into a graph: the one definition of a model, for training and for inference.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "model/config/config.h"

namespace linnet {

/// Row spaces: "tokens" (R), "outputs" (rows of the stream "outputs"). Streams: "tokens", "targets",
/// "outputs". Programs: "loss" (in training, with the losses of routers and `expert_bounds`); "logits" and
/// "score" (the loss), which also extend the states where the plan has them.
///
/// An encoder–decoder has a space and a stream "source" too, and a program "encode" that leaves the source's
/// keys and values in states of their own. An encoder has no states; its losses and logits are of the rows
/// that "outputs" names, or of sequences (classes: "outputs" has one entry for each). Its programs named by
/// pooling_names make `pooled`. It may read a stream "segments", and in the place of tokens one of "patches".
/// One that tells whether the second of two texts follows the first (model.head.next) has a stream "next", an
/// entry for each sequence, of which a second loss in "loss" and the program "next" are.
struct TracedModel {
    Graph graph;
    NodeId logits = none;        // [outputs, V]
    NodeId loss = none;          // [R, 1], nats per row; of an encoder [outputs, 1]
    std::vector<NodeId> pooled;  // of an encoder, by Pooling (ops/pool.h): [outputs, C]
    NodeId next_loss = none;     // where the config has it: [sequences, 1], nats; Batch::sequence_scale
    NodeId next_logits = none;   // … [sequences, next_classes], in "score", too
    std::vector<NodeId> router_losses;  // in training, where the config has them; [R, 1] each
    /// Of each layer with experts: its number, and where each expert's places begin, [experts + 1, 1].
    std::vector<std::pair<std::int64_t, NodeId>> expert_bounds;
    /// Parameters of which training is to leave no value above a number.
    std::vector<std::pair<ParameterId, float>> upper_bounds;
};

/// Entries of the stream "next", beside -1: the second text follows the first, or is from elsewhere.
inline constexpr std::int32_t next_follows = 0, next_elsewhere = 1, next_classes = 2;

/// What the names of an adapter's two matrices end in.
inline constexpr const char *lora_a = ".lora_a", *lora_b = ".lora_b";

/// A change of low rank to a tensor of a model's file (Hu et al. 2021, "LoRA"): W x becomes
/// W x + scale · B (A x), A [rank, C], B [rows, rank].
struct AdapterTarget {
    std::string tensor;                   // with ".weight"
    std::vector<std::string> parameters;  // whose rows the tensor holds, in order: they share A
    std::int64_t rank = 0;
    double scale = 1;
};

/// What of a model an adapter changes.
struct AdapterShape {
    std::vector<AdapterTarget> targets;
    double dropout = 0;  // of x on its way to A, in training
};

/// `config` must be resolved. A graph for training has dropout nodes, one for inference states. Adapters are
/// thin products beside the matrices; Parameter::adapter says which one's a parameter is: "TENSOR.lora_a",
/// and of each parameter in the tensor "PARAMETER.lora_b".
TracedModel trace(const ModelConfig& config, bool training, std::span<const AdapterShape> adapters = {});

/// Floating-point operations per token of the program "loss", forward, in sequences of `length` tokens.
double forward_flops(const TracedModel& model, double length);

Activation activation_from_name(std::string_view name);

}  // namespace linnet
