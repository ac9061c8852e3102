// Training a model from a text or a corpus folder, from the first weights to model.gguf.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/model.h"
#include "train/config.h"

namespace linnet {

struct TrainingOptions {
    std::string config_path;       // empty: chosen by the text's size; with resume, the checkpoint's own
    std::vector<std::string> set;  // "key=value"
    std::string data, out;
    bool resume = false, overwrite = false, dry_run = false, json = false;
    bool verify = false;                // all checksums of a corpus folder, not a sample of them
    std::optional<std::int64_t> steps;  // stop after this step; the schedule ends there too
    double time_limit_s = 0;            // 0: none
    int threads = 0;                    // 0: physical cores
    /// Writes a text with the model as it is, for the log. The trainer knows no samplers.
    std::function<std::string(std::shared_ptr<const Model>, std::int64_t tokens)> sample;
};

/// Trains. Returns Exit::ok, or 130 / 143 after a graceful stop on a signal; throws Error otherwise
/// (Exit::diverged where the loss is not finite or a resume is refused). Files in `out`: model.gguf,
/// checkpoints/, log.jsonl, report.html.
int train(const TrainingOptions& options);

/// Seconds and speed of optimizer steps on random tokens, for `bench train`: no data, no files.
struct StepTiming {
    double step_ms = 0, tokens_per_s = 0, flops_per_s = 0, loss = 0;
};
StepTiming time_steps(const RunConfig& config, std::int64_t vocabulary, int threads, int steps);

}  // namespace linnet
