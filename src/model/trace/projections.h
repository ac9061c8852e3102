// Keys and values made fewer on their way to attention (Wang et al. 2020, "Linformer"): see
// ops/attention/project.cpp.
#pragma once
#include <string>

#include "model/trace/mixers.h"

namespace linnet {

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
