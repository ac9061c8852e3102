// A vocabulary and a model small enough to reason about.
#pragma once
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/signals.h"
#include "generate/generator.h"

namespace linnet::test {

/// Draws by the model's own probabilities: no sampler does anything.
inline SamplerOptions plain() {
    SamplerOptions options;
    options.temperature = 1;
    options.top_k = 0;
    options.top_p = 1;
    options.min_p = 0;
    return options;
}

/// Tokens are given strings of bytes; text is encoded by the longest match. An empty string is a control
/// token.
class FakeTokenizer : public Tokenizer {
  public:
    explicit FakeTokenizer(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {}
    std::optional<TokenId> begin, end;
    bool adds_begin = false;

    std::string_view kind() const override { return "fake"; }
    TokenId size() const override { return static_cast<TokenId>(pieces_.size()); }
    void encode(std::string_view text, std::vector<TokenId>& out,
                const EncodeOptions& options = {}) const override {
        if (options.add_special && adds_begin) out.push_back(*begin);
        while (!text.empty()) {
            std::size_t best = 0;
            TokenId id = -1;
            for (std::size_t i = 0; i < pieces_.size(); i++)
                if (pieces_[i].size() > best && text.starts_with(pieces_[i])) {
                    best = pieces_[i].size();
                    id = static_cast<TokenId>(i);
                }
            if (id < 0) throw std::runtime_error("the fake vocabulary cannot spell this");
            out.push_back(id);
            text.remove_prefix(best);
        }
    }
    using Tokenizer::decode;
    void decode(TokenId id, bool, std::string& out) const override {
        out += pieces_.at(static_cast<std::size_t>(id));
    }
    std::string_view piece(TokenId id) const override { return pieces_.at(static_cast<std::size_t>(id)); }
    bool is_control(TokenId id) const override { return pieces_.at(static_cast<std::size_t>(id)).empty(); }
    std::optional<TokenId> bos() const override { return begin; }
    std::optional<TokenId> eos() const override { return end; }
    bool add_bos() const override { return adds_begin; }
    bool is_end(TokenId id) const override { return end == id; }
    void write(GgufWriter&) const override {}

  private:
    std::vector<std::string> pieces_;
};

/// Says what comes next by a rule over all tokens that a slot holds; refuses what an engine refuses.
class FakeSource : public LogitSource {
  public:
    using Rule = std::function<TokenId(const std::vector<TokenId>&)>;
    FakeSource(std::int64_t context, TokenId vocabulary, Rule rule, std::size_t slots = 1)
        : all(slots), context_(context), rule_(std::move(rule)), vocabulary_(vocabulary) {}

    std::int64_t context() const override { return context_; }
    std::size_t slots() const override { return all.size(); }
    std::int64_t most_written() const override { return 16; }
    std::int64_t rewind(std::size_t slot, std::int64_t position) override {
        const auto holds = static_cast<std::int64_t>(all.at(slot).size());
        if (position > holds && stop_leaves == whole)
            throw std::runtime_error("rewound to more than is held");
        position = std::min(position, holds);
        rewinds += position < static_cast<std::int64_t>(all[slot].size());
        all[slot].resize(static_cast<std::size_t>(position));
        return position;
    }
    void fork(std::size_t from, std::size_t to) override {
        forks++;
        all.at(to) = all.at(from);
    }
    void run(std::span<const Work> work, Phase phase) override {
        if (runs + 1 == stops_at) stop(work);
        logits_.clear();
        std::size_t rows = 0;
        for (const Work& w : work) {
            std::vector<TokenId>& held = all.at(w.slot);
            std::vector<float>& logits = logits_.emplace_back();
            if (w.tokens.empty()) throw std::runtime_error("a run of no tokens");
            (phase == Phase::read ? read : written) += static_cast<int>(w.tokens.size());
            rows += w.tokens.size();
            for (std::size_t i = 0; i < w.tokens.size(); i++) {
                held.push_back(w.tokens[i]);
                if (!w.every && i + 1 < w.tokens.size()) continue;
                logits.resize(logits.size() + static_cast<std::size_t>(vocabulary_));
                logits.end()[rule_(held) - vocabulary_] = 9;
            }
            if (held.size() > static_cast<std::size_t>(context_))
                throw std::runtime_error("more tokens than the context holds");
        }
        if (phase == Phase::write && rows > 16) throw std::runtime_error("more rows than a write run has");
        runs++;
    }
    std::span<const float> logits(std::size_t work) const override { return logits_.at(work); }
    [[noreturn]] void fail_not_finite(const Work&, Phase) override {
        throw std::runtime_error("logits that are not finite");
    }

    std::vector<std::vector<TokenId>> all;  // of each slot
    std::vector<TokenId>& held = all[0];
    int rewinds = 0, forks = 0, runs = 0, read = 0, written = 0;  // the last two: tokens
    /// The run (from 1) that a signal ends, which comes then; 0: none. Each slot holds half of its tokens
    /// more, or of what it held before only so many: a state that cannot go back to just there.
    int stops_at = 0;
    static constexpr std::size_t whole = SIZE_MAX;
    std::size_t stop_leaves = whole;

  private:
    [[noreturn]] void stop(std::span<const Work> work) {
        for (const Work& w : work) {
            std::vector<TokenId>& held = all.at(w.slot);
            const auto half = w.tokens.first(w.tokens.size() / 2);
            if (stop_leaves == whole) held.insert(held.end(), half.begin(), half.end());
            held.resize(std::min(held.size(), stop_leaves));
        }
        stops_at = 0;
        std::raise(SIGINT);
        throw Stopped{SIGINT};
    }

    std::int64_t context_;
    Rule rule_;
    TokenId vocabulary_;
    std::vector<std::vector<float>> logits_;
};

/// Writes `text` token after token, whatever it reads.
inline FakeSource::Rule recite(std::vector<TokenId> text) {
    return [text = std::move(text), next = std::size_t{0}](const std::vector<TokenId>&) mutable {
        return text.at(next++ % text.size());
    };
}

}  // namespace linnet::test
