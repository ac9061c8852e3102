// What generate prints: one text as it comes, or several in their order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generate/generator.h"

namespace linnet {

/// A text that was asked for, and how it is told from the others.
struct Answer {
    std::string prompt;
    std::vector<TokenId> ids;  // of the prompt
    std::int64_t seed = 0;
    std::int64_t sample = 0, samples = 1;
    std::size_t index = 0, prompts = 0;  // of a batch file's prompts; prompts 0: there is no such file
    std::size_t line = 0;                // of that file
};

/// Takes tokens and ends as they come. What is printed is flushed at once, for the reader who watches.
class AnswerPrinter {
  public:
    virtual ~AnswerPrinter() = default;
    virtual void begin() {}
    /// Before token() of the same token, where they were asked for.
    virtual void logprobs(std::size_t answer, const TokenLogprobs& told) = 0;
    virtual void token(std::size_t answer, std::optional<TokenId> id, std::string_view text) = 0;
    virtual void end(std::size_t answer, const Generated& result, const GenerateTotals& totals) = 0;

  protected:
    void put(std::string_view text);
    char last_ = '\n';  // byte that was put
};

/// `format` is "text", "ids" or "jsonl"; `echo`: with the prompts. Answers and tokenizer must outlive the
/// printer.
std::unique_ptr<AnswerPrinter> make_printer(const std::vector<Answer>& answers, const std::string& format,
                                            bool echo, const Tokenizer& tokenizer);

}  // namespace linnet
