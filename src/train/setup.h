// Everything a run needs before its first step: config, vocabulary, data, folders.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/file.h"
#include "data/mixture.h"
#include "train/candidates.h"
#include "train/checkpoint.h"
#include "train/options.h"
#include "train/run_folder.h"
#include "train/start.h"
#include "train/step/ahead.h"
#include "train/task/config.h"
#include "train/task/run_texts.h"
#include "train/task/task.h"

namespace linnet {

struct RunSetup {
    Clock::time_point started;          // of all, reading the data included
    double time_limit_s = 0;            // from then; 0: none
    std::unique_ptr<RunFolder> folder;  // where the run writes; null for a dry run
    RunConfig config;
    std::string config_name;     // in errors; empty: none was given
    nlohmann::json config_json;  // whole, as checkpoints and provenance keep it
    bool chosen = false;         // the config is ours: none was given
    Choice choice;               // … and out of these; empty where the model is given
    bool by_time = false;        // the run's end follows the clock
    double peak_flops = 0;       // measured already; 0: not yet
    double step_seconds = 0;     // of a run that is chosen by time, measured
    TrainingStart start;         // of a run from a model
    TokenizerPtr tokenizer;
    DataOptions data;
    std::string data_hash;
    TextSize text_size;
    // One of these two: windows of streams of tokens and bins of packed texts, or batches of other objectives
    // than the next token.
    std::optional<WindowMixture> windows;
    std::unique_ptr<Task> task;
    std::vector<std::string> labels;     // of classes or tags
    std::optional<bool> two_texts;       // classes are of two; nothing where they are not of texts
    std::optional<std::string> resumed;  // the checkpoint's folder
    Checkpoint checkpoint;               // its state, or step 0
    int threads = 1;

    std::int64_t rows() const { return config.train.batch * config.train.sequence; }
    /// Whether a batch is prepared while the one before is learned. Those of the next token are copies of
    /// tokens, which take less than handing them over does.
    bool prepares_ahead() const { return task && task->in_memory(); }
    /// Texts that are evaluated each by itself.
    std::size_t texts() const { return task ? 1 : windows->parts(); }
    /// What the log calls text `part` of several: the same after a resume, which knows its path.
    std::string text_name(std::size_t part) const { return input_name(data.called()[part]); }
    /// Tokens that count, of all texts; or examples, where there are some.
    std::uint64_t tokens(DataSplit split) const { return task ? task->size(split) : windows->size(split); }
    /// Tokens and bytes held out of text `part`. Not where there is a task.
    std::pair<std::uint64_t, std::uint64_t> held_out(std::size_t part) const {
        constexpr DataSplit split = DataSplit::validation;
        const TokenSource& source = windows->part(part).source();
        return {source.size(split), source.bytes(split)};
    }
};

/// Nats per token of text `part`, held out, as bits per byte.
double bits_per_byte(const RunSetup& setup, std::size_t part, double nats);

/// All settings, as checkpoints, provenance and config.json keep them.
nlohmann::json whole_config(RunConfig config);

/// Reads and checks it all. Error(Exit::diverged) where a resume is refused.
RunSetup set_up(const TrainingOptions& options);

/// The sequences of a micro-batch of `step`, as one batch in the place of what `work` held.
void fill_batch(const RunSetup& setup, std::int64_t step, std::int64_t micro, Batch& work);
/// What the micro-batches of a step came to: the loss in nats per target, and their rows.
struct LearnedStep {
    double loss = 0;
    std::int64_t rows = 0;
};
/// The micro-batches of all steps. `setup` must outlive them, and keep all but the number of steps.
BatchesAhead batches_of(const RunSetup& setup);
/// Adds the gradients of all micro-batches of `step`; `batches` are the run's.
LearnedStep learn_step(const RunSetup& setup, std::int64_t step, Learner& learner, BatchesAhead& batches);
/// Micro-batch i of the validation windows of text `part`, spread evenly over them; fewer rows at the end.
/// False where there is none.
bool fill_validation(const RunSetup& setup, std::size_t part, std::int64_t i, std::int64_t batches,
                     Batch& work);

/// Of each text, after `step` steps, its weight and how many sequences were read of it: for checkpoints. Null
/// where there is one text.
nlohmann::json text_positions(const RunSetup& setup, std::int64_t step);

/// A line of the held-out text, for samples to begin with; empty where there is none.
std::string held_out_line(const RunSetup& setup);

}  // namespace linnet
