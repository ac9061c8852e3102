// Any tokenizer file, told by its content; and tokenizers made of a text.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "formats/gguf.h"
#include "text/bpe.h"
#include "text/make.h"
#include "text/pipeline.h"
#include "text/plain.h"

namespace linnet {

TokenizerPtr load_tokenizer(const std::string& path) {
    MappedFile file(path);
    if (file.text().starts_with("GGUF")) return tokenizer_from_gguf(Gguf(std::move(file)));
    fail_input(path, "", "a tokenizer (GGUF, tokenizer.json, .tiktoken or SentencePiece model)",
               "something else");
}

TokenizerPtr char_tokenizer(std::string_view text) {
    std::set<char32_t> characters;
    const char *begin = text.data(), *end = begin + text.size();
    std::vector<bool> seen(0x110000);
    for (const char* p = begin; p < end;) {
        Char c = decode_utf8(p, end);
        if (!c.valid)
            fail_input("text", "byte " + std::to_string(p - begin), "UTF-8",
                       spelling_of_byte(static_cast<std::uint8_t>(*p)),
                       "a byte-level vocabulary takes any bytes");
        seen[c.code] = true;
        p += c.size;
    }
    Parts parts;
    for (char32_t code = 0; code < seen.size(); code++) {
        if (!seen[code]) continue;
        std::string spelling;
        append_utf8(spelling, code);
        parts.vocabulary->add(spelling);
    }
    if (parts.vocabulary->size() == 0) fail_input("text", "", "at least one character", "an empty text");
    parts.kind = "char";
    parts.model = std::make_unique<CharModel>(*parts.vocabulary);
    parts.decoder.kind = Decoder::Kind::plain;
    return std::make_shared<Pipeline>(std::move(parts));
}

TokenizerPtr byte_tokenizer() {
    Parts parts;
    for (int b = 0; b < 256; b++)
        parts.vocabulary->add(spelling_of_byte(static_cast<std::uint8_t>(b)), TokenType::byte);
    parts.kind = "byte";
    parts.model = std::make_unique<ByteModel>(*parts.vocabulary);
    parts.decoder.kind = Decoder::Kind::plain;
    return std::make_shared<Pipeline>(std::move(parts));
}

TokenizerPtr byte_bpe_tokenizer(const std::vector<std::pair<TokenId, TokenId>>& merges,
                                const std::vector<std::string>& special, std::string_view pre) {
    Parts parts;
    Vocabulary& vocabulary = *parts.vocabulary;
    for (int b = 0; b < 256; b++) vocabulary.add(byte_alphabet::spell(static_cast<std::uint8_t>(b)));
    MergeTable table;
    table.reserve(merges.size());
    for (std::size_t i = 0; i < merges.size(); i++) {
        auto [left, right] = merges[i];
        std::string joined(vocabulary.spelling(left));
        joined += vocabulary.spelling(right);
        const TokenId id = vocabulary.size();
        vocabulary.add(joined);
        table.add(left, right, static_cast<std::uint32_t>(i), id);
    }
    for (const std::string& spelling : special) {
        AddedToken token;
        token.id = vocabulary.size();
        token.content = spelling;
        token.special = true;
        vocabulary.add(spelling, TokenType::control);
        parts.added.push_back(token);
    }
    if (!special.empty()) {
        parts.special.eos = parts.added[0].id;
        parts.special.bos = parts.added[0].id;
    }
    const PreName& name = find_pre_name(pre, "tokenizer", "pre-tokenizer");
    parts.kind = "bpe";
    parts.ggml_pre = std::string(pre);
    parts.pre_tokenizer = pre_tokenizer_of(name);
    parts.decoder.kind = Decoder::Kind::bytes;
    BpeOptions options;
    options.ignore_merges = name.ignore_merges;
    parts.model = std::make_unique<BpeModel>(vocabulary, std::move(table), options);
    return std::make_shared<Pipeline>(std::move(parts));
}

TokenizerPtr train_tokenizer(std::string_view kind, std::string_view text, TokenId, int) {
    if (kind == "char") return char_tokenizer(text);
    if (kind == "byte") return byte_tokenizer();
    fail(Exit::usage, "tokenizer", "kind", "bpe, char or byte", "'" + std::string(kind) + "'");
}

}  // namespace linnet
