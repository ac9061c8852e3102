#include "generate/continuation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/log_sum.h"

namespace linnet {

std::string_view name(GenerateEnd end) {
    constexpr std::array<std::string_view, 6> names{"length",  "end-token",   "stop",
                                                    "context", "interrupted", "grammar"};
    return names[static_cast<std::size_t>(end)];
}

std::vector<TokenId> likeliest(std::span<const float> logits, std::size_t count) {
    std::vector<TokenId> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    auto before = [&](TokenId a, TokenId b) {
        const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
        return x > y || (x == y && a < b);
    };
    count = std::min(count, ids.size());
    std::partial_sort(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(), before);
    ids.resize(count);
    return ids;
}

TokenLogprobs logprobs_of(std::span<const float> logits, TokenId picked, std::size_t top) {
    const double whole = log_sum(logits);
    auto entry = [&](TokenId id) {
        return TokenLogprob{id, static_cast<double>(logits[static_cast<std::size_t>(id)]) - whole};
    };
    TokenLogprobs told{entry(picked), {}};
    for (TokenId id : likeliest(logits, top)) told.top.push_back(entry(id));
    return told;
}

Continuation::Continuation(const Tokenizer& tokenizer, std::vector<TokenId> prompt, GenerateOptions options,
                           Emit emit, EmitLogprobs emit_logprobs)
    : tokenizer_(tokenizer),
      options_(std::move(options)),
      emit_(std::move(emit)),
      emit_logprobs_(std::move(emit_logprobs)),
      text_(std::move(prompt)),
      prompt_(text_.size()),
      sampler_(options_.sampler, &tokenizer),
      stops_(options_.stops) {
    first_ = std::all_of(text_.begin(), text_.end(), [&](TokenId id) { return tokenizer_.is_control(id); });
    if (options_.grammar) cursor_.emplace(options_.grammar, !options_.ignore_end);
    if (options_.tokens == 0)
        finish(GenerateEnd::length);
    else if (cursor_ && cursor_->must_end())
        finish(GenerateEnd::grammar);
}

/// The next token and its bytes. A grammar of very many readings at a time forgets some of them, so that a
/// token which seemed allowed may turn out not to be: then the next pick does without it.
std::optional<TokenId> Continuation::pick(std::span<const float> logits, std::string& bytes) {
    const TokenMask* mask = cursor_ ? &cursor_->mask(first_) : nullptr;
    std::optional<TokenMask> reduced;
    for (const Sampler::State before = sampler_.state();; sampler_.set_state(before)) {
        if (mask && mask->count() == 0)
            fail_input("", "grammar", "a token that may come next", "none in the model's vocabulary");
        const std::optional<TokenId> id = sampler_.pick(logits, text_, picks(), mask);
        if (!id || (ends(*id) && !options_.ignore_end)) return id;
        bytes.clear();
        tokenizer_.decode(*id, first_, bytes);
        if (!cursor_ || cursor_->advance(bytes)) return id;
        if (!reduced) mask = &reduced.emplace(*mask);
        reduced->remove(static_cast<std::size_t>(*id));
    }
}

std::uint64_t Continuation::left() const {
    return options_.tokens < 0 ? UINT64_MAX : static_cast<std::uint64_t>(options_.tokens) - picks();
}

bool Continuation::ends(TokenId id) const {
    return tokenizer_.is_end(id) ||
           std::find(options_.ends.begin(), options_.ends.end(), id) != options_.ends.end();
}

bool Continuation::take(std::span<const float> logits) {
    std::string bytes;
    const std::optional<TokenId> id = pick(logits, bytes);
    if (!id) return false;
    text_.push_back(*id);
    if (options_.logprobs >= 0 && emit_logprobs_)
        emit_logprobs_(logprobs_of(logits, *id, static_cast<std::size_t>(options_.logprobs)));
    if (ends(*id) && !options_.ignore_end) {
        emit_(*id, "");
        finish(GenerateEnd::end_token);
        return true;
    }
    first_ = first_ && bytes.empty();
    emit_(*id, characters_.push(stops_.push(bytes)));
    if (stops_.stopped())
        finish(GenerateEnd::stop);
    else if (cursor_ && cursor_->must_end())
        finish(GenerateEnd::grammar);
    else if (left() == 0)
        finish(GenerateEnd::length);
    return true;
}

void Continuation::finish(GenerateEnd why) {
    ended_ = true;
    end_ = why;
    std::string rest = characters_.push(stops_.finish());
    rest += characters_.finish();
    emit_(std::nullopt, rest);
}

void Continuation::forget(std::size_t first, std::size_t newest) {
    if (text_.size() <= first + newest) return;
    forgotten_ += text_.size() - first - newest;
    kept_first_ = first;
    text_.erase(text_.begin() + static_cast<std::ptrdiff_t>(first),
                text_.end() - static_cast<std::ptrdiff_t>(newest));
}

Generated Continuation::result() const {
    const std::size_t remembered = text_.size() - (forgotten_ > 0 ? kept_first_ : prompt_);
    const auto newest = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(remembered, picks()));
    Generated result{{text_.end() - newest, text_.end()}, picks(), end_, {}};
    if (cursor_) result.complete = cursor_->may_end() && end_ != GenerateEnd::stop;
    return result;
}

}  // namespace linnet
