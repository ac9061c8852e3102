// Tokenizers made of a text.
#include "text/train/make.h"

#include "base/error.h"
#include "text/encode/bpe.h"
#include "text/encode/pipeline.h"
#include "text/encode/plain.h"
#include "text/encode/wordpiece.h"
#include "text/files/spm.h"
#include "text/naming.h"
#include "text/split/pre_names.h"

namespace linnet {

TokenizerPtr char_tokenizer(std::string_view text, const std::vector<std::string>& special) {
    const char *begin = text.data(), *end = begin + text.size();
    std::vector<bool> seen(0x110000);
    for (const char* p = begin; p < end;) {
        Char c = decode_utf8(p, end);
        if (!c.valid)
            throw TextError({.byte = static_cast<std::size_t>(p - begin),
                             .expected = "UTF-8",
                             .got = spelling_of_byte(static_cast<std::uint8_t>(*p)),
                             .hint = "a byte-level vocabulary takes any bytes"});
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
    if (parts.vocabulary->size() == 0)
        throw TextError({.expected = "at least one character", .got = "an empty text"});
    for (const std::string& name : special) {
        AddedToken added;
        added.id = parts.vocabulary->size();
        added.content = name;
        added.special = true;
        parts.vocabulary->add(name, TokenType::control);
        parts.added.push_back(added);
    }
    if (!special.empty()) parts.special.bos = parts.special.eos = parts.added[0].id;
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

std::optional<TokenId> id_of(const Parts& parts, std::string_view spelling) {
    const TokenId id = parts.vocabulary->find(spelling);
    return id < 0 ? std::nullopt : std::optional(id);
}

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
    settle_mask(parts);
    BpeOptions options;
    options.ignore_merges = name.ignore_merges;
    parts.model = std::make_unique<BpeModel>(vocabulary, std::move(table), options);
    return std::make_shared<Pipeline>(std::move(parts));
}

/// Scores as SentencePiece gives them: the earlier a token was merged the higher, characters below all
/// merges.
TokenizerPtr trained_spm(Parts parts, const TrainedVocabulary& trained) {
    auto scored = std::make_unique<Vocabulary>();
    std::vector<float> score(trained.tokens.size(), 0.0f);
    std::string joined;
    for (std::size_t i = 0; i < trained.merges.size(); i++) {
        joined = trained.tokens[static_cast<std::size_t>(trained.merges[i].first)] +
                 trained.tokens[static_cast<std::size_t>(trained.merges[i].second)];
        if (TokenId id = parts.vocabulary->find(joined); id >= 0 && score[static_cast<std::size_t>(id)] == 0)
            score[static_cast<std::size_t>(id)] = -static_cast<float>(i + 1);
    }
    float next = -static_cast<float>(trained.merges.size() + 1);
    for (TokenId id = 0; id < parts.vocabulary->size(); id++) {
        float& own = score[static_cast<std::size_t>(id)];
        if (parts.vocabulary->type(id) == TokenType::normal && own == 0) own = next--;
        scored->add(parts.vocabulary->spelling(id), parts.vocabulary->type(id), own);
    }
    parts.vocabulary = std::move(scored);
    parts.scores = true;
    parts.special.unknown = id_of(parts, "<unk>");
    parts.special.bos = id_of(parts, "<s>");
    parts.special.eos = id_of(parts, "</s>");
    if (parts.special.bos) parts.prefix.push_back(*parts.special.bos);
    use_spm_model(parts, {});
    return std::make_shared<Pipeline>(std::move(parts));
}

/// BERT's clean-up, words and matching around the pieces.
TokenizerPtr trained_wordpiece(Parts parts, bool lowercase) {
    parts.special.unknown = id_of(parts, "[UNK]");
    parts.special.cls = parts.special.bos = id_of(parts, "[CLS]");
    parts.special.separator = id_of(parts, "[SEP]");
    parts.special.padding = id_of(parts, "[PAD]");
    parts.special.mask = id_of(parts, "[MASK]");
    if (parts.special.cls) parts.prefix.push_back(*parts.special.cls);
    if (parts.special.separator) parts.suffix.push_back(*parts.special.separator);
    NormalizerStep clean;
    clean.kind = NormalizerStep::Kind::bert;
    clean.lowercase = clean.accents = lowercase;
    parts.normalizer.steps.push_back(clean);
    PreTokenizerStep split;
    split.kind = PreTokenizerStep::Kind::bert;
    parts.pre_tokenizer.steps.push_back(split);
    WordPieceOptions options;
    options.unknown = parts.special.unknown.value_or(-1);
    options.max_characters = 100;
    parts.model = std::make_unique<WordPieceModel>(*parts.vocabulary, options);
    parts.decoder.kind = Decoder::Kind::pieces;
    parts.decoder.marker = "##";
    parts.decoder.strip_first = parts.decoder.cleanup = true;
    return std::make_shared<Pipeline>(std::move(parts));
}

}  // namespace

TokenizerPtr trained_tokenizer(const TrainedVocabulary& trained, std::string_view pre, bool lowercase) {
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
        const TokenId other = parts.vocabulary->add(
            trained.kind == "bpe" && !special ? byte_alphabet::spell(token) : token, type);
        if (special && other >= 0)
            fail(Exit::usage, "", "--special", "tokens that the text does not make", quoted(token));
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
    if (trained.kind == "spm") return trained_spm(std::move(parts), trained);
    return trained_wordpiece(std::move(parts), lowercase);
}

TokenizerPtr made_tokenizer(std::string_view kind, std::string_view text, TokenId vocab_size, bool lowercase,
                            const std::vector<std::string>& special, int threads) {
    if (kind == "char") return char_tokenizer(text, special);
    if (kind == "byte") return byte_tokenizer();
    TrainOptions options;
    options.kind = std::string(kind);
    options.special = special;
    options.lowercase = lowercase && kind == "wordpiece";
    options.vocab_size = vocab_size;
    options.threads = threads;
    VocabularyTrainer trainer(options);
    trainer.add(text);
    return trained_tokenizer(trainer.finish(), "gpt-2", options.lowercase);
}

}  // namespace linnet
