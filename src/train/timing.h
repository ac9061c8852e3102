// How long optimizer steps of a config take on this machine: for `bench train`, and for choosing a config by
// time.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "train/learner.h"
#include "train/task/config.h"

namespace linnet {

struct StepTiming {
    double step_ms = 0, update_ms = 0, tokens_per_s = 0, flops_per_s = 0, loss = 0;
};

/// Seconds and speed of `steps` optimizer steps (the median, after one that warms up) on `batch`; nothing: on
/// random tokens, as only decoders can read. Ends early, after at least one step, once `seconds` have passed.
StepTiming time_steps(const RunConfig& config, std::int64_t vocabulary, int threads, int steps,
                      double seconds = std::numeric_limits<double>::infinity(),
                      const LearnerStart& start = {}, const std::optional<Batch>& batch = {});

/// Seconds of an optimizer step of a decoder, of steps of at most some thousand tokens that take about
/// `seconds` together: a step of more takes as many times as long.
double seconds_of_step(const RunConfig& config, std::int64_t vocabulary, int threads, double seconds);

/// Where the time of a step goes: an op, or the optimizer.
struct StepShare {
    std::string op, direction;  // "linear", "backward"; of the loss "both", of the optimizer "update"
    double seconds = 0;         // of one optimizer step
    double flops = 0;           // likewise; backward counts twice forward
};

/// The same steps, one op after another, the longest first: together they take longer than a step does, in
/// which an op begins where others are not yet done.
std::vector<StepShare> profile_steps(const RunConfig& config, std::int64_t vocabulary, int threads,
                                     int steps);

}  // namespace linnet
