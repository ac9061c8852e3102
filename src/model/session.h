// Running a model: tokens in, logits out, with a cache of keys and values.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "model/config.h"
#include "text/tokenizer.h"

namespace linnet {

/// A model file opened for use: mapped weights, config, vocabulary. Immutable; may serve many sessions.
class Model {
  public:
    /// Opens a GGUF file. Errors: Error(Exit::input / Exit::io) naming file, place, expected, found.
    static std::shared_ptr<const Model> open(const std::string& path);
    ~Model();

    const std::string& path() const;
    const ModelConfig& config() const;
    const Tokenizer& tokenizer() const;
    std::int64_t parameters() const;

    struct Impl;
    explicit Model(std::unique_ptr<Impl> impl);
    const Impl& impl() const { return *impl_; }

  private:
    std::unique_ptr<Impl> impl_;
};

struct SessionOptions {
    std::int64_t context = 0;  // 0: the model's own; more than the model's is an Error
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
    /// Appends tokens and returns the logits [V] after the last one (valid until the next call).
    /// Error(Exit::input) for an id outside [0, V) and where the context is full.
    std::span<const float> append(std::span<const TokenId> tokens);
    /// Appends tokens and returns the summed negative log-likelihood, in nats, of tokens[1..] given those before.
    double append_nll(std::span<const TokenId> tokens);

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace linnet
