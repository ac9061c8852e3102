// A mixture of experts in the place of a feed-forward layer (Shazeer et al. 2017; Fedus et al. 2022).
#pragma once
#include <string>

#include "model/trace/mixers.h"
#include "model/trace/trace.h"

namespace linnet {

class ExpertsTracer {
  public:
    ExpertsTracer(BlockParts& parts, TracedModel& model) : parts_(parts), model_(model) {}

    /// Another stack begins, whose rows are of another space.
    void begin() { places_ = bounds_ = none; }
    /// x [R, C] -> [R, C]: each token's experts, weighted, and the one that all tokens share; `std`: standard
    /// deviation of first weights.
    NodeId trace(const std::string& blk, NodeId x, double std);

  private:
    NodeId shared(const std::string& blk, NodeId x);

    BlockParts& parts_;
    TracedModel& model_;  // gets the routers' losses, and how experts were used
    SpaceId places_ = none, bounds_ = none;
};

}  // namespace linnet
