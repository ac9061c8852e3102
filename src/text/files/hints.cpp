#include "text/files/hints.h"

#include <algorithm>

#include "base/error.h"

namespace linnet {

/// "[PAD32000]", as llama.cpp names rows of the embedding that no token has.
static void pad(Vocabulary& vocabulary, TokenId size) {
    for (TokenId id = vocabulary.size(); id < size; id++)
        vocabulary.add("[PAD" + std::to_string(id) + "]", TokenType::unused);
}

void TokenizerHints::fill(Vocabulary& vocabulary, const std::string& file) const {
    constexpr TokenId most_between = 1 << 20;
    for (const AddedToken& token : added) {  // in the order of their ids
        if (token.id < vocabulary.size()) continue;
        if (token.id - vocabulary.size() > most_between || (size > 0 && token.id >= size))
            fail_input(file, "added token " + quoted(token.content),
                       "an id below " + std::to_string(size > 0 ? size : vocabulary.size() + most_between),
                       std::to_string(token.id));
        pad(vocabulary, token.id);
        if (vocabulary.add(token.content, token.special ? TokenType::control : TokenType::user_defined) >= 0)
            fail_input(file, "added token " + std::to_string(token.id), "a spelling of its own",
                       quoted(token.content));
    }
    if (size == 0) return;
    if (vocabulary.size() > size)
        fail_input(file, "vocabulary",
                   "at most " + std::to_string(size) + " tokens, as many as the embedding has rows",
                   std::to_string(vocabulary.size()));
    pad(vocabulary, size);
}

void TokenizerHints::apply(Parts& parts) const {
    for (const AddedToken& token : added) {
        const bool known = std::any_of(parts.added.begin(), parts.added.end(),
                                       [&](const AddedToken& other) { return other.id == token.id; });
        if (!known) parts.added.push_back(token);
    }
    auto role = [&](std::optional<TokenId>& id, const std::optional<std::string>& spelling) {
        if (!spelling) return;
        const TokenId found = parts.vocabulary->find(*spelling);
        if (found >= 0) id = found;
    };
    SpecialIds& s = parts.special;
    role(s.bos, bos), role(s.eos, eos), role(s.padding, padding), role(s.unknown, unknown);
    for (TokenId id : ends)
        if (!parts.vocabulary->valid(id))
            fail_input(ends_file, "eos_token_id", "ids below " + std::to_string(parts.vocabulary->size()),
                       std::to_string(id));
    // What the tokenizer calls its end stands first; other ends are those of turns and messages.
    for (TokenId id : ends) {
        if (!s.eos) s.eos = id;
        if (id == s.eos) continue;
        if (!s.eot) s.eot = id;
        if (id != s.eot && !s.eom) s.eom = id;
    }
    auto put = [](std::vector<TokenId>& list, std::optional<TokenId> id, std::optional<bool> wanted,
                  bool front) {
        if (!id || !wanted) return;
        const auto at = std::find(list.begin(), list.end(), *id);
        if (*wanted && at == list.end()) list.insert(front ? list.begin() : list.end(), *id);
        if (!*wanted && at != list.end()) list.erase(at);
    };
    put(parts.prefix, s.bos, add_bos, true);
    put(parts.suffix, s.eos, add_eos, false);
}

}  // namespace linnet
