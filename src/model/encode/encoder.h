// Running an encoder: whole texts or pictures in, their rows, vectors or logits out.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/model.h"
#include "ops/batch.h"
#include "ops/pool.h"

namespace linnet {

/// Of one sequence: its tokens, or where the model reads pictures its patches [rows, patch²·channels].
struct EncoderInput {
    std::vector<TokenId> tokens;
    std::vector<std::int32_t> segments;  // of each token; empty: all 0
    std::vector<float> patches;
    std::vector<std::int32_t> wanted;  // rows whose logits are asked for (classes: none need be named)
};

/// One encoder. Sequences run side by side without padding; each gets the bits that it gets alone, for any
/// number of threads. Not for use by several threads at once.
class Encoder {
  public:
    /// Error(Exit::input) where the model is none. `rows`: most rows of a run (at least a context).
    Encoder(std::shared_ptr<const Model> model, int threads, std::int64_t rows = 1024);
    ~Encoder();

    const Model& model() const;
    /// So many first inputs that fit one run together, at least one.
    std::size_t fitting(std::span<const EncoderInput> inputs) const;
    /// One vector [C] for each input: [inputs, C], valid until the next run. Inputs must fit (fitting()).
    /// Error(Exit::input) for one that is empty, longer than the context, or has an id outside [0, V).
    std::span<const float> vectors(std::span<const EncoderInput> inputs, Pooling pooling);
    /// Logits of the wanted rows, or of each input where the model tells classes: [rows, V or classes].
    std::span<const float> logits(std::span<const EncoderInput> inputs);
    /// Of each input, where the model tells (model.head.next) whether its second text follows its first:
    /// logits [inputs, next_classes].
    std::span<const float> follows(std::span<const EncoderInput> inputs);
    /// Of one row of logits.
    std::int64_t classes() const;

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Adds an input's rows to a batch, behind what it holds; for training, too.
void add_to_batch(const ModelConfig& config, const EncoderInput& input, Batch& batch);

}  // namespace linnet
