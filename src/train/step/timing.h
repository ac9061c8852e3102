// How long optimizer steps of a config take on this machine: for `bench train`, and for choosing a config by
// time.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "train/step/learner.h"
#include "train/task/config.h"

namespace linnet {

/// The most that the machine makes of products in a config's precision, measured.
struct ProductsPeak {
    const char* name;  // of the numbers multiplied: "f32", "bf16"
    double flops;      // per second, of all threads
};
ProductsPeak products_peak(const std::string& precision, int threads,
                           double f32 = 0);  // f32: where it is known

struct StepTiming {
    double step_ms = 0, update_ms = 0, tokens_per_s = 0, flops_per_s = 0, loss = 0;
};

/// What is timed. What `start` stores must outlive it.
struct TimedRun {
    RunConfig config;  // with the precision that "auto" stands for
    std::int64_t vocabulary = 0;
    int threads = 1;
    LearnerStart start{};
    std::optional<Batch> batch{};  // every micro-batch; nothing: random tokens, as only decoders can read
};

/// Seconds and speed of `steps` optimizer steps: the median, after one that warms up. Ends early, after at
/// least one step, once `seconds` have passed.
StepTiming time_steps(const TimedRun& timed, int steps,
                      double seconds = std::numeric_limits<double>::infinity());

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
std::vector<StepShare> profile_steps(const TimedRun& timed, int steps);

}  // namespace linnet
