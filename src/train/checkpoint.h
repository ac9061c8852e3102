// A training checkpoint: a folder "step-N" of model.gguf (float32, usable by itself; of a run that trains an
// adapter: adapter.gguf), optimizer.bin (what the optimizer keeps), generator.bin (of the objective replaced:
// what stands beside the model), best.gguf (the best model so far, a hard link) and manifest.json (step,
// config, checksums). It is written beside the others and renamed into place; two are kept.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "train/best_loss.h"
#include "train/outliers.h"
#include "train/start.h"
#include "train/step/learner.h"
#include "train/task/run_data.h"

namespace linnet {

struct Checkpoint {
    std::int64_t step = 0;        // optimizer steps done
    std::string name;             // of the run's models; empty in checkpoints that do not say
    nlohmann::json config;        // of the run, whole
    std::string data;             // sha256 of the text or of the corpus index
    std::uint64_t log_bytes = 0;  // length of log.jsonl then
    double seconds = 0;           // of training so far
    std::string base;             // fingerprint of the model that the run began from; empty: of none
    std::string isa;              // the kernels' instruction set; empty in checkpoints that do not say
    DataOptions inputs;           // where the text was read from; empty in checkpoints of older versions
    BestLoss best_loss;           // the evaluations so far
    nlohmann::json texts;         // where each of several texts is read next (setup.h); null: one text
    OutlierGate outliers;         // the last gradient norms, where train.skip_outliers asks for them
    std::string best;             // to save: the file of the best model so far; empty: none
    std::string best_sha256;      // of that file
    bool early_stop = true;       // false: the run was begun, or gone on with, by --no-early-stop
    bool overfitted = false;      // the run has ended early
};

/// Writes `folder`/step-N and removes all but the newest two. At every instant the folder holds a whole
/// checkpoint, if it held one before: a step that is there already is exchanged for the new one.
void save_checkpoint(const std::string& folder, const Checkpoint& state, Learner& learner,
                     const TrainedModel& model, const Provenance& provenance);

/// The newest checkpoint's folder, or nothing.
std::optional<std::string> newest_checkpoint(const std::string& folder);

/// Removes, or ends, what an interrupted save_checkpoint left. Only for who may write into `folder`.
void remove_partial_checkpoints(const std::string& folder);

/// The newest checkpoint that is whole, and what it is of; a damaged one is said, and the one before it
/// taken. The newest one's error where none is whole. Call it where newest_checkpoint() has found one.
Checkpoint read_newest_checkpoint(const std::string& folder, std::string& path);

/// What a checkpoint is of, checksums verified. Error(Exit::input) for a damaged one.
Checkpoint read_checkpoint(const std::string& folder);

/// Makes `to` the file that `from` is, in one step; the same file on the disk where the file system can.
void link_or_copy(const std::string& from, const std::string& to);

/// Puts parameters and what the optimizer keeps back.
void load_checkpoint(const std::string& folder, Learner& learner, const TrainingStart& start);

}  // namespace linnet
