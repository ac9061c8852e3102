// Texts continued token by token, many at once.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generate/continuation.h"
#include "generate/draft.h"
#include "generate/source.h"

namespace linnet {

/// A prompt (not empty), how to go on after it, and what to do with what comes.
struct Request {
    std::vector<TokenId> prompt;
    GenerateOptions options;
    Emit emit;
    std::function<void(const Generated&)> done;
    EmitLogprobs emit_logprobs{};
    /// Asked when the context is full, where it is there: what is to be held instead, so that the text goes
    /// on (fewer tokens than the context has). Nothing: the text ends.
    std::function<std::vector<TokenId>(const Continuation&)> make_room{};
    /// Of an encoder–decoder: the text that the answer looks at (the prompt is what the answer begins with).
    std::vector<TokenId> source{};
};

/// What was done since the beginning.
struct GenerateTotals {
    std::int64_t read = 0, written = 0;          // tokens of prompts; tokens picked
    std::int64_t drafted = 0, accepted = 0;      // guesses; those of them that were picked
    double read_seconds = 0, write_seconds = 0;  // of runs that read; of all else
};

/// Serves requests in their order, as many at a time as the source has slots: one that ends makes room for
/// the next. A text is the same, bit for bit, whatever runs beside it. Tokens that a new prompt shares with
/// the prompt of another slot are not read again.
class Generator {
  public:
    /// Source and tokenizer must outlive it. `make_drafter`: guesses are verified (none: one token per run).
    Generator(LogitSource& source, const Tokenizer& tokenizer, MakeDrafter make_drafter = {});
    ~Generator();

    /// Reads a prompt into slot 0, for run() to find there, and returns the logits [V] after it.
    /// Error(Exit::input) where it does not fit the context, and for logits that are not finite.
    std::span<const float> read(std::span<const TokenId> prompt);
    /// Slot 0 of the source holds these tokens: they were read, and `logits` [V] followed. Before run().
    void hold(std::vector<TokenId> tokens, std::span<const float> logits);
    /// From now on a prompt finds what was written before it, too, and not only what was read: it is the
    /// next stretch of a conversation. (Writing and reading round differently.)
    void keep_written() { keeps_written_ = true; }
    /// Error(Exit::input) where a prompt does not fit the context. After a signal (base/signals.h) what has
    /// begun ends with its current token, and the rest does not begin.
    void run(const std::vector<Request>& requests);
    const GenerateTotals& totals() const { return totals_; }

  private:
    struct Slot;
    std::size_t kept_first(std::span<const TokenId> text, const GenerateOptions& options) const;
    std::vector<TokenId> fitted(std::span<const TokenId> text, const GenerateOptions& options) const;
    void serve(const std::vector<Request>& requests);
    void abandon();
    bool admit(const Request& request);
    void begin(Slot& slot, const Request& request, std::vector<TokenId> tokens);
    void place(Slot& slot, std::vector<TokenId> tokens);
    void shift_full();
    void read_planned();
    bool read(std::span<const LogitSource::Work> work);
    void go_back(Slot& slot, std::size_t wanted);
    void write_pending();
    void prepare(Slot& slot, std::size_t rows);
    void write(std::span<Slot* const> slots);
    void verify(Slot& slot, std::span<const float> logits);
    void fail_not_finite(const Slot& slot);
    void take(Slot& slot, std::span<const float> logits);
    void stop_at_signal();
    void free_ended();
    std::size_t index(const Slot& slot) const;

    LogitSource& source_;
    const Tokenizer& tokenizer_;
    MakeDrafter make_drafter_;
    bool keeps_written_ = false;
    std::vector<Slot> slots_;
    GenerateTotals totals_;
};

/// The ids of a prompt: begin token where the vocabulary asks for one; never empty (a begin or end token, or
/// a newline, stands for an empty prompt). `special`: text that spells a control token is one.
std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, std::string_view text, bool special);

/// Error(Exit::input), naming `file` and `where`, for a prompt that does not fit a context of so many tokens.
void require_room(std::size_t prompt, std::int64_t context, std::string_view file = {},
                  std::string_view where = {});

/// Continues one prompt.
Generated generate(LogitSource& source, const Tokenizer& tokenizer, std::span<const TokenId> prompt,
                   const GenerateOptions& options, const Emit& emit);

/// How the model goes on after `prompt` (which may be empty), the same each time: for the log of a training
/// run.
std::string write_sample(const std::shared_ptr<const Model>& model, const std::string& prompt,
                         std::int64_t tokens, int threads);

}  // namespace linnet
