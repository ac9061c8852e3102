#include "text/encode/unigram.h"

#include <algorithm>
#include <limits>

#include "text/encode/word_cache.h"
#include "text/naming.h"

namespace linnet {
namespace {

/// SentencePiece's kUnkPenalty: an unknown character costs this much more than the rarest token.
constexpr double unknown_penalty = 10.0;

}  // namespace

struct UnigramModel::Scratch final : ModelScratch {
    WordCache<4, 7> cache{10, 13};
    std::vector<double> best;
    std::vector<TokenId> last;          // the token that ends here on the best way; -1: an unknown character
    std::vector<std::uint32_t> origin;  // where that token begins
    std::vector<TokenId> ids;
};

UnigramModel::UnigramModel(const Vocabulary& vocabulary, UnigramOptions options)
    : vocabulary_(vocabulary), options_(options) {
    std::fill(std::begin(byte_id_), std::end(byte_id_), -1);
    double lowest = std::numeric_limits<double>::max();
    for (TokenId id = 0; id < vocabulary_.size(); id++) {
        const std::string_view spelling = vocabulary_.spelling(id);
        const TokenType type = vocabulary_.type(id);
        if (int byte = byte_of_spelling(spelling); byte >= 0 && byte_id_[byte] < 0) byte_id_[byte] = id;
        if (type == TokenType::normal) lowest = std::min(lowest, vocabulary_.score(id));
        if (type != TokenType::normal && type != TokenType::user_defined && type != TokenType::unused)
            continue;
        if (spelling.empty() || id == options_.unknown) continue;
        trie_.add(spelling, id);
        for (std::size_t at = 1; (at = spelling.find(space_mark, at)) != std::string_view::npos; at++)
            if (at < space_mark.size() ||
                spelling.substr(at - space_mark.size(), space_mark.size()) != space_mark)
                cuts_before_marks_ = false;
    }
    unknown_score_ = (lowest == std::numeric_limits<double>::max() ? 0 : lowest) - unknown_penalty;
}

std::unique_ptr<ModelScratch> UnigramModel::scratch() const {
    return std::make_unique<Scratch>();
}

void UnigramModel::encode(std::string_view word, IdSink& out, ModelScratch& base) const {
    Scratch& scratch = static_cast<Scratch&>(base);
    // Where no token reaches across the border before a mark, the best way of the whole is that of its parts.
    std::size_t begin = 0;
    if (cuts_before_marks_)
        for (std::size_t at = space_mark.size(); (at = word.find(space_mark, at)) != std::string_view::npos;
             at += space_mark.size()) {
            if (at < begin + 1 || word.substr(at - space_mark.size(), space_mark.size()) == space_mark)
                continue;
            encode_piece(word.substr(begin, at - begin), out, scratch);
            begin = at;
        }
    encode_piece(word.substr(begin), out, scratch);
}

void UnigramModel::encode_piece(std::string_view piece, IdSink& out, Scratch& scratch) const {
    if (piece.empty()) return;
    out.append(scratch.cache.ids_of(piece, [&]() -> const std::vector<TokenId>& {
        viterbi(piece, scratch);
        return scratch.ids;
    }));
}

void UnigramModel::viterbi(std::string_view piece, Scratch& scratch) const {
    const std::size_t n = piece.size();
    constexpr double unreached = -std::numeric_limits<double>::infinity();
    scratch.best.assign(n + 1, unreached);
    scratch.last.assign(n + 1, -1);
    scratch.origin.assign(n + 1, 0);
    scratch.best[0] = 0;
    const char *begin = piece.data(), *end = begin + n;
    for (std::size_t at = 0; at < n;) {
        const std::size_t size = decode_utf8(begin + at, end).size;
        bool single = false;
        auto offer = [&](std::size_t to, double score, TokenId id) {
            if (score <= scratch.best[to]) return;
            scratch.best[to] = score;
            scratch.last[to] = id;
            scratch.origin[to] = static_cast<std::uint32_t>(at);
        };
        trie_.prefixes(piece.substr(at), [&](std::size_t length, TokenId id) {
            single = single || length == size;
            // A token that was given by hand beats any way of spelling it.
            const double own = vocabulary_.type(id) == TokenType::user_defined ? 0.0 : vocabulary_.score(id);
            offer(at + length, scratch.best[at] + own, id);
        });
        if (!single) offer(at + size, scratch.best[at] + unknown_score_, -1);
        at += size;
    }
    std::vector<TokenId>& ids = scratch.ids;
    ids.clear();
    for (std::size_t at = n; at > 0; at = scratch.origin[at]) {  // backwards
        if (scratch.last[at] >= 0) {
            ids.push_back(scratch.last[at]);
            continue;
        }
        const std::string_view character = piece.substr(scratch.origin[at], at - scratch.origin[at]);
        bool bytes = options_.byte_fallback;
        for (char c : character) bytes = bytes && byte_id_[static_cast<std::uint8_t>(c)] >= 0;
        if (bytes) {
            for (std::size_t i = character.size(); i-- > 0;)
                ids.push_back(byte_id_[static_cast<std::uint8_t>(character[i])]);
        } else {
            if (options_.unknown < 0)
                throw TextError({.found_by = "tokenizer",
                                 .expected = "characters of the vocabulary",
                                 .got = "'" + std::string(character) + "'"});
            if (ids.empty() || ids.back() != options_.unknown)
                ids.push_back(options_.unknown);  // a run is one
        }
    }
    std::reverse(ids.begin(), ids.end());
}

}  // namespace linnet
