// One text as it grows: tokens picked from logits, spelled and given out, until something ends it.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generate/grammar/constraint.h"
#include "generate/sampler.h"
#include "generate/stream.h"
#include "text/tokenizer.h"

namespace linnet {

struct GenerateOptions {
    SamplerOptions sampler;
    std::int64_t tokens = 128;                   // at most so many; -1: until something else ends the text
    std::vector<std::string> stops;              // ends before the first of these
    std::vector<TokenId> ends{};                 // tokens that end it, beside the vocabulary's end tokens
    bool ignore_end = false;                     // go on after an end token
    std::shared_ptr<TokenConstraint> grammar{};  // the text fulfils it, or is cut; none: any text
    std::int64_t logprobs = -1;  // with every token its probability and the likeliest so many; -1: not
    bool shift = false;     // a full context: drop the oldest part of the text and go on, instead of ending
    std::int64_t keep = 0;  // first tokens that are never dropped (a begin token never is)
    // With shift: newest tokens to remember when older ones are dropped, a context's at least; -1: all.
    // Without a limit a text that never ends takes memory without end; samplers and guesses see what is
    // remembered.
    std::int64_t remember = -1;
};

/// grammar: it allows nothing more.
enum class GenerateEnd { length, end_token, stop, context, interrupted, grammar };
std::string_view name(GenerateEnd end);  // "length", "end-token", …

struct Generated {
    std::vector<TokenId> ids;  // without the prompt and what was forgotten; with an end token that ended it
    std::uint64_t tokens = 0;  // that were picked
    GenerateEnd end = GenerateEnd::length;
    std::optional<bool> complete;  // with a grammar: the text fulfils it, and was not cut
};

/// Called for every token, as it is picked, with the text that may leave by now (often its own, sometimes
/// none, sometimes more), and once at the end with no token and the rest. Text arrives in whole UTF-8
/// characters.
using Emit = std::function<void(std::optional<TokenId>, std::string_view text)>;

/// The ids of the `count` largest logits, the largest first; of equal ones the lower id.
std::vector<TokenId> likeliest(std::span<const float> logits, std::size_t count);

/// What the model thought of a token: natural logarithms of probabilities, by its own distribution (the
/// softmax of its logits), before any sampler.
struct TokenLogprob {
    TokenId id = 0;
    double logprob = 0;
};
struct TokenLogprobs {
    TokenLogprob token;             // that was picked
    std::vector<TokenLogprob> top;  // the likeliest, in order
};
/// Called before Emit for every token, where GenerateOptions::logprobs asks for it.
using EmitLogprobs = std::function<void(const TokenLogprobs&)>;
TokenLogprobs logprobs_of(std::span<const float> logits, TokenId picked, std::size_t top);

/// What is picked is a function of the logits, the text and the options alone. The tokenizer must outlive it.
class Continuation {
  public:
    Continuation(const Tokenizer& tokenizer, std::vector<TokenId> prompt, GenerateOptions options, Emit emit,
                 EmitLogprobs emit_logprobs = {});

    /// Picks the next token, given the logits [V] after text(); must not have ended. False, with nothing
    /// picked, where the logits are not finite numbers. Error(Exit::input) where no token of the vocabulary
    /// can begin a text of the grammar.
    bool take(std::span<const float> logits);
    /// Ends the text from outside (a full context, a signal).
    void finish(GenerateEnd why);

    bool ended() const { return ended_; }
    /// The prompt, and what was picked, but for what was forgotten: so many tokens behind the first ones.
    const std::vector<TokenId>& text() const { return text_; }
    std::uint64_t forgotten() const { return forgotten_; }
    /// Forgets all but the first `first` tokens and the newest `newest`.
    void forget(std::size_t first, std::size_t newest);
    std::size_t prompt_size() const { return prompt_; }
    std::uint64_t picks() const { return forgotten_ + text_.size() - prompt_; }
    std::uint64_t left() const;  // picks until the wanted length
    const GenerateOptions& options() const { return options_; }
    Generated result() const;
    const Sampler& sampler() const { return sampler_; }
    const Tokenizer& tokenizer() const { return tokenizer_; }
    /// Where the text is in its grammar; none: there is no grammar, or no text yet.
    std::optional<GrammarCursor> cursor() const { return first_ ? std::nullopt : cursor_; }

  private:
    bool ends(TokenId id) const;
    std::optional<TokenId> pick(std::span<const float> logits, std::string& bytes);

    const Tokenizer& tokenizer_;
    GenerateOptions options_;
    Emit emit_;
    EmitLogprobs emit_logprobs_;
    std::vector<TokenId> text_;
    std::size_t prompt_;
    std::uint64_t forgotten_ = 0;
    std::size_t kept_first_ = 0;  // tokens before the forgotten ones
    Sampler sampler_;
    std::optional<GrammarCursor> cursor_;
    StopFilter stops_;
    Utf8Stream characters_;
    bool first_, ended_ = false;  // no text was spelled yet
    GenerateEnd end_ = GenerateEnd::length;
};

}  // namespace linnet
