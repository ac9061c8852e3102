#include "generate/continuation.h"

#include <algorithm>
#include <array>
#include <utility>

namespace linnet {

std::string_view name(GenerateEnd end) {
    constexpr std::array<std::string_view, 5> names{"length", "end-token", "stop", "context", "interrupted"};
    return names[static_cast<std::size_t>(end)];
}

Continuation::Continuation(const Tokenizer& tokenizer, std::vector<TokenId> prompt, GenerateOptions options,
                           Emit emit)
    : tokenizer_(tokenizer),
      options_(std::move(options)),
      emit_(std::move(emit)),
      text_(std::move(prompt)),
      prompt_(text_.size()),
      sampler_(options_.sampler),
      stops_(options_.stops) {
    first_ = std::all_of(text_.begin(), text_.end(), [&](TokenId id) { return tokenizer_.is_control(id); });
    if (options_.tokens == 0) finish(GenerateEnd::length);
}

std::uint64_t Continuation::left() const {
    return options_.tokens < 0 ? UINT64_MAX : static_cast<std::uint64_t>(options_.tokens) - picks();
}

bool Continuation::ends(TokenId id) const {
    return tokenizer_.is_end(id) ||
           std::find(options_.ends.begin(), options_.ends.end(), id) != options_.ends.end();
}

bool Continuation::take(std::span<const float> logits) {
    std::optional<TokenId> id = sampler_.pick(logits, text_, picks());
    if (!id) return false;
    text_.push_back(*id);
    if (ends(*id) && !options_.ignore_end) {
        finish(GenerateEnd::end_token);
        return true;
    }
    std::string bytes;
    tokenizer_.decode(*id, first_, bytes);
    first_ = first_ && bytes.empty();
    emit_(*id, characters_.push(stops_.push(bytes)));
    if (stops_.stopped())
        finish(GenerateEnd::stop);
    else if (left() == 0)
        finish(GenerateEnd::length);
    return true;
}

void Continuation::finish(GenerateEnd why) {
    ended_ = true;
    end_ = why;
    emit_(std::nullopt, characters_.push(stops_.finish()) + characters_.finish());
}

Generated Continuation::result() const {
    return {{text_.begin() + static_cast<std::ptrdiff_t>(prompt_), text_.end()}, end_};
}

}  // namespace linnet
