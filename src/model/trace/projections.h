// Keys and values made fewer on their way to attention (Wang et al. 2020, "Linformer"): see
// ops/attention/project.cpp. And what attention's op is told of a layer.
#pragma once
#include <string>

#include "model/trace/mixers.h"

namespace linnet {

/// Rows that the keys of the layer's attention become; 0: none. `own`: of its own stack's rows, both ways.
std::int64_t projected_at(const ModelConfig& config, std::int64_t layer, bool own, bool causal);

/// The attributes of attention_op in the layer; `self`: the keys are of its own stack's rows.
Attributes attention_settings(const ModelConfig& config, std::int64_t layer, bool self, bool causal);

class Projections {
  public:
    explicit Projections(BlockParts& parts) : parts_(parts) {}

    /// A stack begins whose parameters' names begin with `side`.
    void begin(const std::string& side);
    /// Keys and values [R,KV·D] of the layer being traced become `rows` for each sequence; `name`: how the
    /// names of its attention's parameters begin.
    void add(const std::string& path, const std::string& name, std::int64_t rows, NodeId& k, NodeId& v);

  private:
    ParameterId matrix(const std::string& name, std::int64_t rows);

    BlockParts& parts_;
    std::string side_;
    ParameterId shared_ = none;  // of all layers of the stack
};

}  // namespace linnet
