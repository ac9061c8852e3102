#include "text/encode/wordpiece.h"

#include "base/utf8.h"
#include "text/encode/word_cache.h"
#include "text/naming.h"

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
    const std::size_t most = options_.max_characters;
    if (most && word.size() > most && static_cast<std::size_t>(character_count(word)) > most) return false;
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
    out.append(scratch.cache.ids_of(word, [&]() -> const std::vector<TokenId>& {
        scratch.ids.clear();
        if (pieces(word, scratch.ids)) return scratch.ids;
        if (options_.unknown < 0)
            throw TextError({.found_by = "tokenizer",
                             .expected = "words of the vocabulary",
                             .got = "'" + std::string(word.substr(0, 40)) + "'"});
        scratch.ids.assign(1, options_.unknown);
        return scratch.ids;
    }));
}

}  // namespace linnet
