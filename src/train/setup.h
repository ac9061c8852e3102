// Everything a run needs before its first step: config, vocabulary, data, folders.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "data/batches.h"
#include "train/checkpoint.h"
#include "train/config.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace linnet {

struct RunSetup {
    std::unique_ptr<RunFolder> folder;  // where the run writes; null for a dry run
    RunConfig config;
    nlohmann::json config_json;  // whole, as checkpoints and provenance keep it
    TokenizerPtr tokenizer;
    std::string data_hash;
    std::optional<WindowSampler> windows;
    std::optional<std::string> resumed;  // the checkpoint's folder
    Checkpoint checkpoint;               // its state, or step 0
    int threads = 1;

    std::int64_t rows() const { return config.train.batch * config.train.sequence; }
};

/// Reads and checks it all. Error(Exit::diverged) where a resume is refused.
RunSetup set_up(const TrainingOptions& options);

/// Sequences of micro-batch m of step s, as one batch. `work` is reused.
void fill_batch(const RunSetup& setup, std::int64_t step, std::int64_t micro, Batch& work);
/// Micro-batch i of the validation windows, spread evenly over them; fewer rows at the end. False where there
/// is none.
bool fill_validation(const RunSetup& setup, std::int64_t i, std::int64_t batches, Batch& work);

}  // namespace linnet
