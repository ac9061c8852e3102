#include "text/encode/plain.h"

#include "base/error.h"
#include "text/naming.h"
#include "text/unicode/unicode.h"

namespace linnet {

void WordModel::encode_words(std::string_view text, Split split, IdSink& out, ModelScratch& scratch) const {
    const ClassTable& table = ClassTable::get();
    const char *p = text.data(), *end = p + text.size();
    splitting::with_splitter(split, [&]<class S>() {
        while (p < end) {
            const char* q = S::next(p, end, table);
            encode({p, static_cast<std::size_t>(q - p)}, out, scratch);
            p = q;
        }
    });
}

CharModel::CharModel(const Vocabulary& vocabulary, TokenId unknown) : unknown_(unknown) {
    for (TokenId id = 0; id < vocabulary.size(); id++) {
        const std::string_view s = vocabulary.spelling(id);
        if (s.empty() || vocabulary.type(id) != TokenType::normal) continue;
        Char c = decode_utf8(s.data(), s.data() + s.size());
        if (!c.valid || c.size != s.size()) continue;
        if (c.code >= id_of_.size()) id_of_.resize(c.code + 1, -1);
        id_of_[c.code] = id;
    }
}

void CharModel::encode(std::string_view word, IdSink& out, ModelScratch&) const {
    const char *begin = word.data(), *end = begin + word.size();
    for (const char* p = begin; p < end;) {
        Char c = decode_utf8(p, end);
        TokenId id = c.valid && c.code < id_of_.size() ? id_of_[c.code] : -1;
        if (id < 0) id = unknown_;
        if (id < 0) {
            const auto at = static_cast<std::size_t>(p - begin);
            if (!c.valid)
                throw TextError({.byte = at,
                                 .expected = "UTF-8",
                                 .got = spelling_of_byte(static_cast<std::uint8_t>(*p))});
            throw TextError({.byte = at,
                             .expected = "a character of the vocabulary",
                             .got = quoted(std::string_view(p, c.size)),
                             .hint = "a character vocabulary knows only the characters of the text that it "
                                     "was made from"});
        }
        out.push(id);
        p += c.size;
    }
}

ByteModel::ByteModel(const Vocabulary& vocabulary) {
    for (TokenId& id : id_of_) id = -1;
    for (TokenId id = 0; id < vocabulary.size(); id++)
        if (int byte = byte_of_spelling(vocabulary.spelling(id)); byte >= 0) id_of_[byte] = id;
}

void ByteModel::encode(std::string_view word, IdSink& out, ModelScratch&) const {
    for (char c : word) {
        const TokenId id = id_of_[static_cast<std::uint8_t>(c)];
        if (id < 0)
            throw TextError({.found_by = "tokenizer",
                             .expected = "a byte of the vocabulary",
                             .got = spelling_of_byte(static_cast<std::uint8_t>(c))});
        out.push(id);
    }
}

LongestModel::LongestModel(const Vocabulary& vocabulary, TokenId unknown) : unknown_(unknown) {
    for (TokenId id = 0; id < vocabulary.size(); id++)
        if (vocabulary.type(id) == TokenType::normal && !vocabulary.spelling(id).empty())
            tokens_.add(vocabulary.spelling(id), id);
}

void LongestModel::encode(std::string_view word, IdSink& out, ModelScratch&) const {
    for (std::size_t at = 0; at < word.size();) {
        std::size_t length = 1;
        TokenId best = unknown_;
        tokens_.prefixes(word.substr(at), [&](std::size_t n, TokenId id) { length = n, best = id; });
        if (best < 0)
            throw TextError({.byte = at,
                             .expected = "a token of the vocabulary",
                             .got = spelling_of_byte(static_cast<std::uint8_t>(word[at]))});
        out.push(best);
        at += length;
    }
}

}  // namespace linnet
