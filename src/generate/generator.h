// A text continued token by token.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generate/sampler.h"
#include "model/engine.h"
#include "text/tokenizer.h"

namespace linnet {

/// Where logits come from: a sequence of an engine, or anything else that keeps one sequence (a test's own).
/// The members are Sequence's.
class LogitSource {
  public:
    virtual ~LogitSource() = default;
    virtual std::int64_t context() const = 0;
    virtual std::int64_t position() const = 0;
    virtual std::int64_t rewind(std::int64_t position) = 0;
    virtual std::span<const float> append(std::span<const TokenId> tokens, Phase phase) = 0;
};

/// An engine with one sequence.
class SequenceSource : public LogitSource {
  public:
    SequenceSource(std::shared_ptr<const Model> model, const EngineOptions& options)
        : engine_(std::move(model), options), sequence_(engine_.start()) {}
    std::int64_t context() const override { return sequence_.context(); }
    std::int64_t position() const override { return sequence_.position(); }
    std::int64_t rewind(std::int64_t position) override { return sequence_.rewind(position); }
    std::span<const float> append(std::span<const TokenId> tokens, Phase phase) override {
        return sequence_.append(tokens, phase);
    }

  private:
    Engine engine_;
    Sequence sequence_;
};

struct GenerateOptions {
    SamplerOptions sampler;
    std::int64_t tokens = 128;       // at most so many; -1: until something else ends the text
    std::vector<std::string> stops;  // ends before the first of these
    bool ignore_end = false;         // go on after an end token
    bool slide = false;              // a full context: keep its newer half and go on, instead of ending
};

enum class GenerateEnd { length, end_token, stop, context, interrupted };
std::string_view name(GenerateEnd end);  // "length", "end-token", …

struct Generated {
    std::vector<TokenId> ids;  // without the prompt; with the end token, where one ended the text
    GenerateEnd end = GenerateEnd::length;
    double prompt_seconds = 0, seconds = 0;  // reading the prompt; all after it
};

/// Called for every token, as it is picked, with the text that may leave by now (often its own, sometimes
/// none, sometimes more), and once at the end with no token and the rest. Text arrives in whole UTF-8
/// characters.
using Emit = std::function<void(std::optional<TokenId>, std::string_view text)>;

/// The ids of a prompt: begin token where the vocabulary asks for one; never empty (a begin or end token, or
/// a newline, stands for an empty prompt). `special`: text that spells a control token is one.
std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, std::string_view text, bool special);

/// Reads `prompt` (not empty) and gives the logits after it. Error(Exit::input) where it does not fit the
/// context.
std::span<const float> read_prompt(LogitSource& source, std::span<const TokenId> prompt);

/// Continues `prompt` (not empty). Error(Exit::input) where it does not fit the context with room for one
/// token. Ends after the current token once a signal arrives (base/signals.h).
Generated generate(LogitSource& source, const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                   const GenerateOptions& options, const Emit& emit);

/// How the model goes on after `prompt` (which may be empty), the same each time: for the log of a training
/// run.
std::string write_sample(const std::shared_ptr<const Model>& model, const std::string& prompt,
                         std::int64_t tokens, int threads);

}  // namespace linnet
