#include "text/encode/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "text/encode/vocabulary.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

/// The start of the character that ends before `at`.
std::size_t previous_start(std::string_view text, std::size_t at) {
    do at--;
    while (at > 0 && is_tail(text[at]));
    return at;
}

bool is_space(std::string_view text, std::size_t at, std::uint8_t& size) {
    return ClassTable::get().at(text.data() + at, text.data() + text.size(), size) & char_class::space;
}

bool word_at(std::string_view text, std::size_t at) {
    Char c = decode_utf8(text.data() + at, text.data() + text.size());
    return c.valid && is_word_char(c.code);
}

bool kept_out(const AddedToken& token, const PlainStretches& plain, std::size_t begin, std::size_t end) {
    const bool special = token.special || std::find(plain.withheld.begin(), plain.withheld.end(), token.id) !=
                                              plain.withheld.end();
    return special && plain.touch(begin, end);
}

}  // namespace

bool PlainStretches::touch(std::size_t begin, std::size_t end) const {
    auto after = std::partition_point(ranges.begin(), ranges.end(),
                                      [&](const Range& range) { return range.end <= begin; });
    return after != ranges.end() && after->begin < end;
}

AddedTokens::AddedTokens(const std::vector<AddedToken>& tokens) : tokens_(tokens), nodes_(1) {
    for (std::size_t t = 0; t < tokens_.size(); t++) {
        const std::string& content = tokens_[t].content;
        if (content.empty()) continue;
        refuse_long(content);
        std::uint32_t node = 0;
        for (char c : content) {
            const std::uint8_t byte = static_cast<std::uint8_t>(c);
            std::uint32_t next = child(node, byte);
            if (!next) {
                next = static_cast<std::uint32_t>(nodes_.size());
                nodes_.emplace_back();
                auto& children = nodes_[node].children;
                children.insert(std::lower_bound(children.begin(), children.end(), std::pair{byte, 0u}),
                                {byte, next});
            }
            node = next;
        }
        if (nodes_[node].token < 0) nodes_[node].token = static_cast<std::int32_t>(t);
        first_[static_cast<std::uint8_t>(content[0])] = 1;
        any_[1][tokens_[t].normalized] = true;
        if (!tokens_[t].special) any_[0][tokens_[t].normalized] = true;
    }
    if (std::count(first_.begin(), first_.end(), 1) == 1)
        only_first_ = static_cast<int>(std::find(first_.begin(), first_.end(), 1) - first_.begin());
}

std::uint32_t AddedTokens::child(std::uint32_t node, std::uint8_t byte) const {
    const auto& children = nodes_[node].children;
    auto it = std::lower_bound(children.begin(), children.end(), std::pair{byte, 0u});
    return it != children.end() && it->first == byte ? it->second : 0;
}

AddedTokens::Match AddedTokens::next(std::string_view text, std::size_t from, bool parse_special,
                                     bool normalized, const PlainStretches* plain) const {
    if (!any(parse_special, normalized)) return {};
    for (std::size_t at = from; at < text.size(); at++) {
        if (only_first_ >= 0) {
            const void* found = std::memchr(text.data() + at, only_first_, text.size() - at);
            if (!found) return {};
            at = static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
        } else if (!first_[static_cast<std::uint8_t>(text[at])]) {
            continue;
        }
        std::int32_t best = -1;
        std::size_t best_end = 0;
        std::uint32_t node = 0;
        for (std::size_t i = at; i < text.size(); i++) {
            node = child(node, static_cast<std::uint8_t>(text[i]));
            if (!node) break;
            const std::int32_t t = nodes_[node].token;
            if (t < 0 || (tokens_[t].special && !parse_special) || tokens_[t].normalized != normalized)
                continue;
            if (plain && kept_out(tokens_[t], *plain, at, i + 1)) continue;
            best = t;
            best_end = i + 1;
        }
        if (best < 0) continue;
        const AddedToken& token = tokens_[static_cast<std::size_t>(best)];
        if (token.single_word && ((at > 0 && word_at(text, previous_start(text, at))) ||
                                  (best_end < text.size() && word_at(text, best_end)))) {
            at = best_end - 1;  // Hugging Face's search goes on behind it, too
            continue;
        }
        Match match{at, best_end, token.id, token.joins};
        std::uint8_t size;
        while (token.lstrip && match.begin > from && is_space(text, previous_start(text, match.begin), size))
            match.begin = previous_start(text, match.begin);
        while (token.rstrip && match.end < text.size() && is_space(text, match.end, size)) match.end += size;
        return match;
    }
    return {};
}

}  // namespace linnet
