// What a run learns from its data where that is not the next token: the batches of an objective.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/batches.h"
#include "ops/batch.h"
#include "train/task/config.h"

namespace linnet {

/// One objective over one run's data. A batch depends on (config, data, step) alone.
class Task {
  public:
    virtual ~Task() = default;

    /// Adds example number `index` of a split to the batch: in training the count goes on for ever, held out
    /// ones are [0, held_out()). Safe from many threads.
    virtual void add(DataSplit split, std::uint64_t index, Batch& work) const = 0;
    virtual std::uint64_t held_out() const = 0;
    /// Whether its examples lie in memory. A page of a mapped file that is lost ends the program there and
    /// then, and must not while the step before is learned.
    virtual bool in_memory() const { return true; }
    /// Rows that have a loss in the `examples` of a step, at least 1: makes them all.
    std::int64_t targets(std::int64_t step, std::int64_t examples) const;

    /// Tokens (of windows) or examples of a split.
    virtual std::uint64_t size(DataSplit split) const = 0;
    /// A text for samples to begin with: a source that was held out; empty where samples mean nothing.
    virtual std::string sample_source() const { return {}; }

  protected:
    explicit Task(const RunConfig& config) : config_(config) {}
    const RunConfig& config() const { return config_; }

  private:
    RunConfig config_;
};

/// Rows of a batch that have a loss.
std::int64_t target_count(const Batch& batch);

/// Adds a source and the answer to it (with its end token) to a batch of an encoder–decoder.
void add_pair(const std::vector<std::int32_t>& source, const std::vector<std::int32_t>& answer, TokenId start,
              Batch& work);

/// Masked or replaced tokens (an encoder) or spans (an encoder–decoder) of windows of text.
/// Error(Exit::input) naming `tokenizer_name` where the vocabulary lacks a mask token, sentinels or an end.
std::unique_ptr<Task> window_task(const RunConfig& config, WindowSampler windows,
                                  const TokenizerPtr& tokenizer, const std::string& tokenizer_name);

}  // namespace linnet
