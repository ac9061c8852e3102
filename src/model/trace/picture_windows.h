// Pictures in windows, layer by layer (Liu et al. 2021, "Swin Transformer"): see ops/attention/window.cpp.
#pragma once
#include <string>

#include "model/trace/mixers.h"

namespace linnet {

class PictureWindows {
  public:
    explicit PictureWindows(BlockParts& parts) : parts_(parts) {}

    /// Rows of 2 × 2 patches side by side (section 3.1): [R,C] -> [R/4,4C], of the layer being traced.
    NodeId merge(const std::string& blk, NodeId x);
    /// The rows of each window together, as sequences of their own (section 3.2). A window that is the whole
    /// picture is not shifted.
    NodeId begin(const std::string& blk, NodeId x);
    /// Back again, line by line.
    NodeId lines(const std::string& blk, NodeId x);
    /// Of the windows that begin() made: the biases of scores, and what attention is told of them.
    NodeId bias() const { return bias_; }
    void tell(Attributes& attention) const;

  private:
    Graph& graph() { return parts_.graph(); }
    std::int64_t grid(std::int64_t pixels) const;
    SpaceId space(const char* name, SpaceId parent, std::int64_t parents, std::int64_t sequence);
    NodeId moved(const std::string& path, NodeId x, SpaceId to, bool back);

    BlockParts& parts_;
    std::int64_t width_ = 0, height_ = 0, side_ = 0, shift_ = 0, keys_ = 0;  // patches; of a row of biases
    SpaceId lines_ = none;
    NodeId bias_ = none;
};

}  // namespace linnet
