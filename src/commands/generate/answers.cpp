#include "commands/generate/answers.h"

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json_line.h"
#include "base/terminal.h"
#include "commands/terminal_text.h"
#include "generate/stream.h"

namespace linnet {
namespace {

using Record = nlohmann::ordered_json;

/// The model's probabilities as they stand in a record: of the token that was picked, and the likeliest.
struct LogprobRecord {
    const Tokenizer& tokenizer;
    Record entry(const TokenLogprob& t) const {
        std::string text;
        tokenizer.decode(t.id, false, text);
        return {{"id", t.id}, {"text", text}, {"logprob", t.logprob}};
    }
    Record top(const TokenLogprobs& told) const {
        Record list = Record::array();
        for (const TokenLogprob& t : told.top) list.push_back(entry(t));
        return list;
    }
};

std::string shown_prompt(const std::string& prompt, TerminalText& terminal) {
    Utf8Stream whole;
    std::string shown = terminal.push(whole.push(prompt));
    return stdout_colours() ? "\x1b[1m" + shown + "\x1b[0m" : shown;
}

std::string joined(const std::vector<TokenId>& ids) {
    std::string line;
    for (TokenId id : ids) line += (line.empty() ? "" : " ") + std::to_string(id);
    return line;
}

/// One answer, token by token.
class StreamPrinter : public AnswerPrinter {
  public:
    StreamPrinter(const Answer& answer, const std::string& format, bool echo, const Tokenizer& tokenizer)
        : answer_(answer), format_(format), echo_(echo), logprobs_{tokenizer} {}

    void begin() override {
        if (!echo_) return;
        if (format_ == "text")
            put(shown_prompt(answer_.prompt, terminal_));
        else if (format_ == "ids")
            put(joined(answer_.ids)), any_ = !answer_.ids.empty();
        else
            put(json_line(Record{{"prompt", answer_.prompt}, {"ids", answer_.ids}}));
    }

    void logprobs(std::size_t, const TokenLogprobs& told) override { told_ = told; }

    void token(std::size_t, std::optional<TokenId> id, std::string_view text) override {
        if (format_ == "text") {
            put(terminal_.push(text));
        } else if (format_ == "ids") {
            if (id) put((any_ ? " " : "") + std::to_string(*id)), any_ = true;
        } else if (id || !text.empty()) {
            Record line;
            if (id) line["id"] = *id;
            line["text"] = text;
            if (id && told_) line["logprob"] = told_->token.logprob, line["top"] = logprobs_.top(*told_);
            put(json_line(line));
        }
    }

    void end(std::size_t, const Generated& result, const GenerateTotals& totals) override {
        if (format_ != "jsonl") {
            if (format_ == "ids" || last_ != '\n') put("\n");
            return;
        }
        Record line{{"end", name(result.end)},         {"prompt_tokens", answer_.ids.size()},
                    {"tokens", result.tokens},         {"prompt_seconds", totals.read_seconds},
                    {"seconds", totals.write_seconds}, {"seed", answer_.seed}};
        if (result.complete) line["complete"] = *result.complete;
        if (totals.drafted > 0) line["drafted"] = totals.drafted, line["accepted"] = totals.accepted;
        put(json_line(line));
    }

  private:
    const Answer& answer_;
    std::string format_;
    bool echo_, any_ = false;
    TerminalText terminal_;
    LogprobRecord logprobs_;
    std::optional<TokenLogprobs> told_;  // of the token that comes next
};

/// Several answers. As text each has a line before it that tells which one it is, and the one whose turn it
/// is comes as it is written.
class OrderedPrinter : public AnswerPrinter {
  public:
    OrderedPrinter(const std::vector<Answer>& answers, const std::string& format, bool echo,
                   const Tokenizer& tokenizer)
        : answers_(answers), format_(format), echo_(echo), logprobs_{tokenizer}, waiting_(answers.size()) {}

    void begin() override {
        if (format_ != "text" || begun_) return;
        begun_ = true;
        put(heading());
    }

    void logprobs(std::size_t answer, const TokenLogprobs& told) override {
        Record entry = logprobs_.entry(told.token);
        entry["top"] = logprobs_.top(told);
        waiting_[answer].logprobs.push_back(entry);
    }

    void token(std::size_t answer, std::optional<TokenId>, std::string_view text) override {
        waiting_[answer].text += text;
        if (format_ == "text" && answer == next_) begin(), put_text();
    }

    void end(std::size_t answer, const Generated& result, const GenerateTotals&) override {
        waiting_[answer].result = result;
        while (next_ < answers_.size() && waiting_[next_].result) {
            if (format_ == "text")
                begin(), put_text(), put(last_ == '\n' ? "" : "\n");
            else
                put(format_ == "ids" ? ids() + "\n" : json_line(record()));
            waiting_[next_] = {};
            next_++;
            terminal_ = {};
            begun_ = false;
            // What was written of the next one meanwhile; one that a signal kept from beginning has no
            // heading.
            if (format_ == "text" && next_ < answers_.size() && !waiting_[next_].text.empty())
                begin(), put_text();
        }
    }

  private:
    struct Waiting {
        std::string text;
        Record logprobs = Record::array();
        std::optional<Generated> result;
    };
    std::string heading() {
        const Answer& a = answers_[next_];
        auto place = [](const char* what, auto at, auto of) {
            return what + std::to_string(at + 1) + " of " + std::to_string(of);
        };
        std::string line = "==> ";
        if (a.prompts > 0) line += place("prompt ", a.index, a.prompts);
        if (a.samples > 1) line += place(a.prompts > 0 ? ", sample " : "sample ", a.sample, a.samples);
        return line + " <==\n" + (echo_ ? shown_prompt(a.prompt, terminal_) : "");
    }
    void put_text() { put(terminal_.push(std::exchange(waiting_[next_].text, {}))); }
    std::string ids() const {
        std::vector<TokenId> all = echo_ ? answers_[next_].ids : std::vector<TokenId>();
        const std::vector<TokenId>& made = waiting_[next_].result->ids;
        all.insert(all.end(), made.begin(), made.end());
        return joined(all);
    }
    Record record() const {
        const Answer& a = answers_[next_];
        const Generated& result = *waiting_[next_].result;
        Record line;
        if (a.prompts > 0) line["index"] = a.index;
        if (a.samples > 1) line["sample"] = a.sample;
        if (echo_) line["prompt"] = a.prompt;
        line["text"] = waiting_[next_].text;
        line["ids"] = result.ids;
        line["end"] = name(result.end);
        if (result.complete) line["complete"] = *result.complete;
        line["prompt_tokens"] = a.ids.size();
        line["tokens"] = result.tokens;
        line["seed"] = a.seed;
        if (!waiting_[next_].logprobs.empty()) line["logprobs"] = waiting_[next_].logprobs;
        return line;
    }

    const std::vector<Answer>& answers_;
    std::string format_;
    bool echo_;
    LogprobRecord logprobs_;
    std::vector<Waiting> waiting_;
    std::size_t next_ = 0;
    bool begun_ = false;  // its heading stands
    TerminalText terminal_;
};

}  // namespace

void AnswerPrinter::put(std::string_view text) {
    if (text.empty()) return;
    write_stdout(text);
    flush_stdout();
    last_ = text.back();
}

std::unique_ptr<AnswerPrinter> make_printer(const std::vector<Answer>& answers, const std::string& format,
                                            bool echo, const Tokenizer& tokenizer) {
    if (answers.size() == 1 && answers[0].prompts == 0)
        return std::make_unique<StreamPrinter>(answers[0], format, echo, tokenizer);
    return std::make_unique<OrderedPrinter>(answers, format, echo, tokenizer);
}

}  // namespace linnet
