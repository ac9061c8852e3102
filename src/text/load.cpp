// Any tokenizer file, told by its content; and tokenizers made of a text.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "formats/gguf.h"
#include "text/bpe.h"
#include "text/foreign.h"
#include "text/make.h"
#include "text/pipeline.h"
#include "text/plain.h"
#include "text/pre_names.h"
#include "text/tokenizer_json.h"

namespace linnet {

TokenizerPtr load_tokenizer(const std::string& path) {
    MappedFile file(path);
    if (file.text().starts_with("GGUF")) return tokenizer_from_gguf(Gguf(std::move(file)));
    std::string_view text = file.text();
    const std::size_t head = text.find_first_not_of(" \t\r\n");
    if (text.empty()) fail_input(path, "", "a tokenizer", "an empty file");
    if (looks_like_sentencepiece(text)) return tokenizer_from_sentencepiece(text, path);
    if (head != std::string_view::npos && text[head] == '{') return tokenizer_from_json(text, path);
    if (text.starts_with("\xEF\xBB\xBF{"))
        fail_input(path, "byte 0", "JSON", "a byte-order mark before it", "save the file without it");
    if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
        fail_input(path, "byte 0", "a tokenizer in UTF-8", "UTF-16");
    if (looks_like_tiktoken(text)) return tokenizer_from_tiktoken(text, path);
    fail_input(path, "", "a tokenizer (GGUF, tokenizer.json, .tiktoken ranks or SentencePiece model)",
               "another kind of file");
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

namespace {

TokenizerPtr trained_bpe(Parts parts, const TrainedVocabulary& trained, std::string_view pre) {
    const Vocabulary& vocabulary = *parts.vocabulary;
    MergeTable table;
    table.reserve(trained.merges.size());
    for (std::size_t i = 0; i < trained.merges.size(); i++) {
        auto [left, right] = trained.merges[i];
        std::string joined(vocabulary.spelling(left));
        joined += vocabulary.spelling(right);
        table.add(left, right, static_cast<std::uint32_t>(i), vocabulary.find(joined));
    }
    const PreName& name = find_pre_name(pre, "tokenizer", "pre-tokenizer");
    parts.ggml_pre = std::string(pre);
    parts.pre_tokenizer = pre_tokenizer_of(name);
    parts.decoder.kind = Decoder::Kind::bytes;
    BpeOptions options;
    options.ignore_merges = name.ignore_merges;
    parts.model = std::make_unique<BpeModel>(vocabulary, std::move(table), options);
    return std::make_shared<Pipeline>(std::move(parts));
}

}  // namespace

TokenizerPtr trained_tokenizer(const TrainedVocabulary& trained, std::string_view pre, bool) {
    Parts parts;
    parts.kind = trained.kind;
    for (std::size_t i = 0; i < trained.tokens.size(); i++) {
        using Piece = TrainedVocabulary::Piece;
        const Piece piece = trained.pieces[i];
        const bool special = piece == Piece::control || piece == Piece::unknown;
        const TokenType type = piece == Piece::control   ? TokenType::control
                               : piece == Piece::unknown ? TokenType::unknown
                               : piece == Piece::byte    ? TokenType::byte
                                                         : TokenType::normal;
        const std::string& token = trained.tokens[i];
        parts.vocabulary->add(trained.kind == "bpe" && !special ? byte_alphabet::spell(token) : token, type);
        if (!special) continue;
        AddedToken added;
        added.id = static_cast<TokenId>(i);
        added.content = token;
        added.special = true;
        parts.added.push_back(added);
    }
    if (trained.kind == "bpe") {
        // The first special token stands between documents, as <|endoftext|> does in GPT-2.
        if (!parts.added.empty()) parts.special.bos = parts.special.eos = parts.added[0].id;
        return trained_bpe(std::move(parts), trained, pre);
    }
    fail(Exit::usage, "tokenizer", "kind", "bpe", "'" + trained.kind + "'");
}

TokenizerPtr train_tokenizer(std::string_view kind, std::string_view text, TokenId vocab_size, int threads) {
    if (kind == "char") return char_tokenizer(text);
    if (kind == "byte") return byte_tokenizer();
    if (kind != "bpe")
        fail(Exit::usage, "tokenizer", "kind", "bpe, char or byte", "'" + std::string(kind) + "'");
    TrainOptions options;
    options.vocab_size = vocab_size;
    options.threads = threads;
    VocabularyTrainer trainer(options);
    trainer.add(text);
    return trained_tokenizer(trainer.finish());
}

}  // namespace linnet
