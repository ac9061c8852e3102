// How long optimizer steps of a config take on this machine: for `bench train`, and for choosing a config by
// time.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "train/config.h"

namespace linnet {

struct StepTiming {
    double step_ms = 0, tokens_per_s = 0, flops_per_s = 0, loss = 0;
};

/// Seconds and speed of `steps` optimizer steps on random tokens (the median, after one that warms up): no
/// data, no files. Ends early, after at least one step, once `seconds` have passed.
StepTiming time_steps(const RunConfig& config, std::int64_t vocabulary, int threads, int steps,
                      double seconds = std::numeric_limits<double>::infinity());

/// What an op takes of a step, in one direction. Together they take longer than a step, in which an op begins
/// where others are not yet done.
struct OpShare {
    std::string op, direction;  // "linear", "forward"; "update", "" is the optimizer
    double seconds = 0, flops = 0;
};
/// Of one micro-batch and one update, the longest first.
std::vector<OpShare> profile_step(const RunConfig& config, std::int64_t vocabulary, int threads);

}  // namespace linnet
