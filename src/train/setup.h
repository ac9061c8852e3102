// Everything a run needs before its first step: config, vocabulary, data, folders.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "train/checkpoint.h"
#include "train/config.h"
#include "train/ladder.h"
#include "train/run_data.h"
#include "train/run_folder.h"
#include "train/task.h"
#include "train/trainer.h"

namespace linnet {

struct RunSetup {
    Clock::time_point started;          // of all, reading the data included
    double time_limit_s = 0;            // from then; 0: none
    std::unique_ptr<RunFolder> folder;  // where the run writes; null for a dry run
    RunConfig config;
    nlohmann::json config_json;  // whole, as checkpoints and provenance keep it
    bool chosen = false;         // the config is ours: none was given
    bool by_time = false;        // … and its end follows the clock
    double peak_flops = 0;       // measured already; 0: not yet
    TokenizerPtr tokenizer;
    DataOptions data;
    std::string data_hash;
    TextSize text_size;
    std::optional<WindowSampler> windows;  // none where there are examples
    std::unique_ptr<Task> task;            // of other objectives than the next token
    std::vector<std::string> labels;       // of classes or tags
    std::optional<std::string> resumed;    // the checkpoint's folder
    Checkpoint checkpoint;                 // its state, or step 0
    int threads = 1;

    std::int64_t rows() const { return config.train.batch * config.train.sequence; }
};

/// All settings, as checkpoints, provenance and config.json keep them.
nlohmann::json whole_config(RunConfig config);

/// Reads and checks it all. Error(Exit::diverged) where a resume is refused.
RunSetup set_up(const TrainingOptions& options);

/// Sequences of micro-batch m of step s, as one batch. `work` is reused.
void fill_batch(const RunSetup& setup, std::int64_t step, std::int64_t micro, Batch& work);
/// Micro-batch i of the validation windows, spread evenly over them; fewer rows at the end. False where there
/// is none.
bool fill_validation(const RunSetup& setup, std::int64_t i, std::int64_t batches, Batch& work);

/// Tokens, or where there are examples those, of a split.
std::uint64_t data_size(const RunSetup& setup, DataSplit split);

/// A line of the held-out text, for samples to begin with; empty where there is none.
std::string held_out_line(const RunSetup& setup);

}  // namespace linnet
