#include "text/encode/wordpiece.h"

#include <algorithm>

#include "base/error.h"
#include "text/encode/word_cache.h"

namespace linnet {

struct WordPieceModel::Scratch final : ModelScratch {
    WordCache<4, 7> cache{10, 13};
    std::vector<TokenId> ids;
};

WordPieceModel::WordPieceModel(const Vocabulary& vocabulary, WordPieceOptions options)
    : options_(std::move(options)) {
    const std::string_view prefix =
        options_.word_mark ? space_mark : std::string_view(options_.continuing_prefix);
    for (TokenId id = 0; id < vocabulary.size(); id++) {
        std::string_view spelling = vocabulary.spelling(id);
        const TokenType type = vocabulary.type(id);
        if (type == TokenType::control || type == TokenType::unknown || spelling.empty()) continue;
        const bool marked = spelling.starts_with(prefix) && spelling.size() > prefix.size();
        // A word may itself begin with "##" (with the mark of GGUF's spelling none does).
        if (marked && !options_.word_mark) first_.add(spelling, id);
        if (marked) spelling.remove_prefix(prefix.size());
        (marked == options_.word_mark ? first_ : rest_).add(spelling, id);
    }
}

std::unique_ptr<ModelScratch> WordPieceModel::scratch() const {
    return std::make_unique<Scratch>();
}

bool WordPieceModel::pieces(std::string_view word, std::vector<TokenId>& ids) const {
    if (options_.max_characters) {
        auto starts = std::count_if(word.begin(), word.end(),
                                    [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
        if (static_cast<std::size_t>(starts) > options_.max_characters) return false;
    }
    for (std::size_t at = 0; at < word.size();) {
        std::size_t length = 0;
        TokenId best = -1;
        (at == 0 ? first_ : rest_).prefixes(word.substr(at), [&](std::size_t n, TokenId id) {
            length = n;
            best = id;
        });
        if (best < 0) return false;
        ids.push_back(best);
        at += length;
    }
    return true;
}

void WordPieceModel::encode(std::string_view word, IdSink& out, ModelScratch& base) const {
    if (word.empty()) return;
    Scratch& scratch = static_cast<Scratch&>(base);
    const bool cached = word.size() <= scratch.cache.max_bytes;
    decltype(scratch.cache)::Key key;
    if (cached) {
        key = scratch.cache.key(word.data(), word.size(), word.data() + word.size());
        if (const auto* entry = scratch.cache.find(key)) {
            out.append(scratch.cache.ids(*entry));
            return;
        }
    }
    scratch.ids.clear();
    if (!pieces(word, scratch.ids)) {
        if (options_.unknown < 0)
            fail_input("text", "tokenizer", "words of the vocabulary",
                       "'" + std::string(word.substr(0, 40)) + "'");
        scratch.ids.assign(1, options_.unknown);
    }
    if (cached) scratch.cache.put(key, scratch.ids);
    out.append(scratch.ids);
}

}  // namespace linnet
