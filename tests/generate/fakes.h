// A vocabulary and a model small enough to reason about.
#pragma once
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "generate/generator.h"

namespace linnet::test {

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

/// Says what comes next by a rule over all tokens held; refuses what a Sequence refuses.
class FakeSource : public LogitSource {
  public:
    using Rule = std::function<TokenId(const std::vector<TokenId>&)>;
    FakeSource(std::int64_t context, TokenId vocabulary, Rule rule)
        : context_(context), rule_(std::move(rule)), logits_(static_cast<std::size_t>(vocabulary)) {}

    std::int64_t context() const override { return context_; }
    std::int64_t position() const override { return static_cast<std::int64_t>(held.size()); }
    std::int64_t rewind(std::int64_t position) override {
        rewinds++;
        held.resize(static_cast<std::size_t>(position));
        return position;
    }
    std::span<const float> append(std::span<const TokenId> tokens, Phase) override {
        held.insert(held.end(), tokens.begin(), tokens.end());
        if (position() > context_) throw std::runtime_error("more tokens than the context holds");
        std::fill(logits_.begin(), logits_.end(), 0.f);
        logits_.at(static_cast<std::size_t>(rule_(held))) = 9;
        return logits_;
    }
    std::vector<TokenId> held;
    int rewinds = 0;

  private:
    std::int64_t context_;
    Rule rule_;
    std::vector<float> logits_;
};

/// Writes `text` token after token, whatever it reads.
inline FakeSource::Rule recite(std::vector<TokenId> text) {
    return [text = std::move(text), next = std::size_t{0}](const std::vector<TokenId>&) mutable {
        return text.at(next++ % text.size());
    };
}

}  // namespace linnet::test
