// How long optimizer steps of a config take on this machine: for `bench train`, and for choosing a config by
// time.
#pragma once
#include <cstdint>
#include <limits>

#include "train/config.h"
#include "train/learner.h"

namespace linnet {

struct StepTiming {
    double step_ms = 0, tokens_per_s = 0, flops_per_s = 0, loss = 0;
};

/// Seconds and speed of `steps` optimizer steps on random tokens (the median, after one that warms up): no
/// data, no files. Ends early, after at least one step, once `seconds` have passed.
StepTiming time_steps(const RunConfig& config, std::int64_t vocabulary, int threads, int steps,
                      double seconds = std::numeric_limits<double>::infinity(),
                      const LearnerStart& start = {});

}  // namespace linnet
