// Where the time of a run goes, by op and type of weights.
#pragma once
#include <string>
#include <vector>

#include "model/engine.h"

namespace linnet {

struct OpTime {
    std::string op;       // "linear"
    std::string weights;  // "q4_k"; empty: an op without a matrix
    double seconds = 0;
    double flops = 0;  // a multiply-add counts as two
    double bytes = 0;  // of matrices read, each once
};

/// Appends `tokens` to the sequence, one op after another, and adds up what they took; the longest first.
/// Together they take longer than a run, in which an op begins where others are not yet done.
std::vector<OpTime> profile(Engine& engine, Sequence& sequence, std::span<const TokenId> tokens, Phase phase);

}  // namespace linnet
