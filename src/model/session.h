// Running a model: tokens in, logits out, with a cache of keys and values.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "model/config.h"
#include "text/tokenizer.h"

namespace linnet {

struct TracedModel;
struct Tensor;

/// A model file opened for use: mapped weights, config, vocabulary. Immutable; may serve many sessions.
class Model {
  public:
    /// Opens a GGUF file; an empty path is the model built into the program. Errors: Error(Exit::input /
    /// Exit::io) naming file, place, expected, found.
    static std::shared_ptr<const Model> open(const std::string& path);
    /// A model whose parameters stand in memory and outlive it (one in training).
    static std::shared_ptr<const Model> view(const ModelConfig& config, TokenizerPtr tokenizer,
                                             std::vector<Tensor> parameters);
    ~Model();

    const std::string& path() const;  // "built-in model" for that
    const Gguf* file() const;         // null for a view
    const ModelConfig& config() const;
    const Tokenizer& tokenizer() const;
    TokenizerPtr shared_tokenizer() const;
    const TracedModel& traced() const;
    const std::vector<Tensor>& parameters() const;  // in the order of traced().graph.parameters()
    std::int64_t parameter_count() const;

  private:
    struct Impl;
    explicit Model(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> impl_;
};

struct SessionOptions {
    std::int64_t context = 0;  // positions; 0: the model's own; more than the model's is an Error
    int threads = 0;           // 0: physical cores
    std::int64_t batch = 512;  // rows of a prompt run at once
};

/// One sequence being read or written.
class Session {
  public:
    Session(std::shared_ptr<const Model> model, const SessionOptions& options);
    ~Session();

    std::int64_t context() const;   // positions there is room for
    std::int64_t position() const;  // tokens held
    /// Forgets all after the first `position` tokens (0: everything).
    void rewind(std::int64_t position);
    /// Appends tokens (at least one) and returns the logits [V] after the last one, valid until the next
    /// call. Error(Exit::input) for an id outside [0, V) and where the context is full.
    std::span<const float> append(std::span<const TokenId> tokens);
    /// Appends tokens and returns the summed negative log-likelihood, in nats, of tokens[1..] given those
    /// before.
    double append_nll(std::span<const TokenId> tokens);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace linnet
