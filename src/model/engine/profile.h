// Where the time of a run goes, by op and type of weights.
#pragma once
#include <string>
#include <vector>

#include "model/engine/engine.h"

namespace linnet {

struct OpTime {
    std::string op;       // "linear"
    std::string weights;  // "q4_k"; empty: an op without a matrix
    double seconds = 0;
    double flops = 0;  // a multiply-add counts as two
    double bytes = 0;  // of matrices read, each once
};

/// Appends `tokens` to the sequence, one op after another, and adds what they took to `sums`, which has one
/// entry for each op and type of weights. Together they take longer than a run, in which an op begins where
/// others are not yet done.
void profile(Engine& engine, Sequence& sequence, std::span<const TokenId> tokens, Phase phase,
             std::vector<OpTime>& sums);

}  // namespace linnet
