#include "text/train/kinds.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/error.h"
#include "text/encode/vocabulary.h"
#include "text/split/splitter.h"
#include "text/unicode/unicode.h"

namespace linnet {
namespace {

using Piece = TrainedVocabulary::Piece;

/// Adds a word, in parts where it is overlong (cut between characters of UTF-8 where there are any).
void add_word(WordTable& table, std::string_view word) {
    while (word.size() > longest_word) {
        std::size_t cut = longest_word;
        for (int i = 0; i < 3 && is_tail(word[cut]); i++) cut--;
        table.add(word.substr(0, cut), 1);
        word.remove_prefix(cut);
    }
    if (!word.empty()) table.add(word, 1);
}

std::vector<std::string> or_default(const std::vector<std::string>& special,
                                    const std::vector<std::string>& usual) {
    return special.empty() ? usual : special;
}

/// GPT-2's order of the 256 bytes, that of the characters which spell them: the printable ones, then the
/// rest.
const std::array<std::uint8_t, 256>& byte_order() {
    static const auto order = [] {
        std::array<std::uint8_t, 256> bytes{};
        for (std::size_t b = 0; b < 256; b++) bytes[b] = static_cast<std::uint8_t>(b);
        std::sort(bytes.begin(), bytes.end(), [](std::uint8_t x, std::uint8_t y) {
            return byte_alphabet::spell(x) < byte_alphabet::spell(y);
        });
        return bytes;
    }();
    return order;
}

/// The character of UTF-8 at text[at]; U+FFFD for a byte that is no part of one.
Char character_at(std::string_view text, std::size_t at) {
    Char c = decode_utf8(text.data() + at, text.data() + text.size());
    if (!c.valid) c.code = 0xFFFD;
    return c;
}

/// Byte-level BPE: 256 bytes, merges, control tokens.
class ByteKind : public TrainKind {
  public:
    explicit ByteKind(const TrainOptions& options)
        : splitter_(options.splitter ? options.splitter : word_splitter(Split::gpt2)),
          special_(or_default(options.special, {"<|endoftext|>"})) {
        for (std::uint32_t i = 0; i < 256; i++) id_of_[byte_order()[i]] = i;
    }
    void count(std::string_view text, bool, WordTable& table) const override {
        table.ends.clear();
        splitter_(text, table.ends);
        std::uint32_t begin = 0;
        for (std::uint32_t end : table.ends) {
            add_word(table, text.substr(begin, end - begin));
            begin = end;
        }
    }
    std::vector<std::string> alphabet() override {
        std::vector<std::string> symbols;
        for (std::uint8_t byte : byte_order()) symbols.emplace_back(1, static_cast<char>(byte));
        return symbols;
    }
    std::size_t reserved() const override { return special_.size(); }
    void spell(std::string_view word, std::vector<std::uint32_t>& scratch, const Emit& emit) const override {
        scratch.clear();
        for (char c : word) scratch.push_back(id_of_[static_cast<unsigned char>(c)]);
        emit(scratch);
    }
    TrainedVocabulary assemble(const PairMerger& merger) const override {
        TrainedVocabulary v;
        v.kind = "bpe";
        v.tokens = merger.symbols();
        v.pieces.assign(v.tokens.size(), Piece::normal);
        v.merges.assign(merger.merges().begin(), merger.merges().end());
        v.tokens.insert(v.tokens.end(), special_.begin(), special_.end());
        v.pieces.resize(v.tokens.size(), Piece::control);
        return v;
    }

  private:
    WordSplitter splitter_;
    std::vector<std::string> special_;
    std::array<std::uint32_t, 256> id_of_{};
};

/// What the character kinds share: an alphabet of the characters that cover the text.
class CharacterKind : public TrainKind {
  public:
    explicit CharacterKind(const TrainOptions& options) : coverage_(options.character_coverage) {}
    void survey(std::string_view word, std::uint64_t count) override {
        for (std::size_t at = 0; at < word.size();) {
            const Char c = character_at(word, at);
            seen_[c.code] += count;
            at += c.size;
        }
    }

  protected:
    /// The most frequent characters that make up `coverage` of the text, ties to the smaller code; by code.
    std::vector<std::uint32_t> covering() const {
        std::vector<std::pair<std::uint64_t, std::uint32_t>> order;
        double total = 0, sum = 0;
        for (auto [code, count] : seen_) {
            order.emplace_back(~count, code);
            total += static_cast<double>(count);
        }
        std::sort(order.begin(), order.end());
        std::vector<std::uint32_t> kept;
        for (auto [inverse, code] : order) {
            if (sum >= total * coverage_) break;
            kept.push_back(code);
            sum += static_cast<double>(~inverse);
        }
        std::sort(kept.begin(), kept.end());
        return kept;
    }
    static std::string utf8(std::uint32_t code) {
        std::string text;
        append_utf8(text, code);
        return text;
    }

  private:
    double coverage_;
    std::unordered_map<std::uint32_t, std::uint64_t> seen_;
};

/// SentencePiece's BPE: characters, "▁" before a word, bytes for characters outside the alphabet. Ids as
/// there: control tokens, 256 bytes, merged pieces by rank, characters.
class SpmKind : public CharacterKind {
  public:
    explicit SpmKind(const TrainOptions& options)
        : CharacterKind(options), special_(or_default(options.special, {"<unk>", "<s>", "</s>"})) {}

    /// Words: an optional ▁ and a run of letters, digits or other signs; spaces beyond one are a word of
    /// their own; a line feed is left to its byte. Scripts are not told apart (SentencePiece does), classes
    /// are.
    void count(std::string_view text, bool first, WordTable& table) const override {
        std::string word(first ? space_mark : std::string_view());
        WordClass kind = WordClass::none;  // of the word's characters but ▁
        auto flush = [&] {
            add_word(table, word);
            word.clear();
            kind = WordClass::none;
        };
        for (std::size_t at = 0; at < text.size();) {
            const Char c = character_at(text, at);
            at += c.size;
            if (c.code == '\n') {
                flush();
                continue;
            }
            if (c.code == ' ') {
                bool more =
                    at < text.size() && text[at] == ' ';  // the last space of a run goes to what follows
                if (kind != WordClass::none || !more) flush();
                word += space_mark;
                continue;
            }
            const WordClass next = class_joined(c.code);
            if (kind != WordClass::none && next != kind) flush();
            kind = next;
            append_utf8(word, c.code);
        }
        flush();
    }
    std::vector<std::string> alphabet() override {
        std::vector<std::string> symbols;
        for (std::uint32_t code : covering()) {
            ids_[code] = static_cast<std::uint32_t>(symbols.size());
            symbols.push_back(utf8(code));
        }
        characters_ = symbols.size();
        return symbols;
    }
    std::size_t reserved() const override { return special_.size() + 256; }
    MergeLimits limits() const override {
        MergeLimits limits;
        limits.longest = 16;  // SentencePiece's max_sentencepiece_length
        return limits;
    }
    void spell(std::string_view word, std::vector<std::uint32_t>& scratch, const Emit& emit) const override {
        scratch.clear();
        for (std::size_t at = 0; at < word.size();) {
            const Char c = character_at(word, at);
            at += c.size;
            auto id = ids_.find(c.code);
            if (id != ids_.end()) {
                scratch.push_back(id->second);
                continue;
            }
            if (!scratch.empty()) emit(scratch);  // bytes come between: no piece spans them
            scratch.clear();
        }
        if (!scratch.empty()) emit(scratch);
    }
    TrainedVocabulary assemble(const PairMerger& merger) const override {
        TrainedVocabulary v;
        v.kind = "spm";
        auto put = [&](std::string token, Piece piece) {
            v.tokens.push_back(std::move(token));
            v.pieces.push_back(piece);
        };
        for (std::size_t i = 0; i < special_.size(); i++)
            put(special_[i], special_[i] == "<unk>" ? Piece::unknown : Piece::control);
        for (int b = 0; b < 256; b++) put(spelling_of_byte(static_cast<std::uint8_t>(b)), Piece::byte);
        const auto& symbols = merger.symbols();
        for (std::size_t i = characters_; i < symbols.size(); i++) put(symbols[i], Piece::normal);
        for (std::size_t i = 0; i < characters_; i++) put(symbols[i], Piece::normal);
        auto merged = symbols.size() - characters_;
        auto id = [&](std::uint32_t symbol) {
            return static_cast<TokenId>(reserved() +
                                        (symbol < characters_ ? merged + symbol : symbol - characters_));
        };
        for (auto [left, right] : merger.merges()) v.merges.emplace_back(id(left), id(right));
        return v;
    }

  private:
    enum class WordClass : std::uint8_t { none, letter, number, sign };

    /// Combining marks go with the letters they stand on; any space but 0x20 is a sign.
    static WordClass class_joined(char32_t code) {
        const std::uint8_t bits = ClassTable::get().of(code);
        if (bits & char_class::letter) return WordClass::letter;
        if (bits & char_class::number) return WordClass::number;
        auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
        bool mark = category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC;
        return mark ? WordClass::letter : WordClass::sign;
    }
    std::vector<std::string> special_;
    std::unordered_map<std::uint32_t, std::uint32_t> ids_;
    std::size_t characters_ = 0;
};

/// WordPiece, merged by frequency as Hugging Face's WordPieceTrainer does (Schuster and Nakajima 2012 chose
/// by likelihood). Words as BERT's basic tokenizer cuts them: cleaned, CJK and punctuation alone.
class WordPieceKind : public CharacterKind {
  public:
    explicit WordPieceKind(const TrainOptions& options)
        : CharacterKind(options),
          special_(or_default(options.special, {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"})),
          lowercase_(options.lowercase) {}

    void count(std::string_view text, bool, WordTable& table) const override {
        std::string word;
        std::size_t length = 0;
        auto flush = [&] {
            if (length <= 100)
                add_word(table, word);  // BERT's max_input_chars_per_word: longer ones are [UNK]
            word.clear();
            length = 0;
        };
        for (std::size_t at = 0; at < text.size();) {
            const Char c = character_at(text, at);
            at += c.size;
            if (is_white(c.code)) {
                flush();
                continue;
            }
            if (c.code == 0 || c.code == 0xFFFD || is_control_char(c.code)) continue;
            bool alone = is_alone(c.code);
            if (alone) flush();
            length += put(c.code, word);
            if (alone) flush();
        }
        flush();
    }
    void survey(std::string_view word, std::uint64_t count) override {
        CharacterKind::survey(word, count);
        for (std::size_t at = 0; at < word.size();) {
            const Char c = character_at(word, at);
            (at == 0 ? first_ : later_)[c.code] = 0;
            at += c.size;
        }
    }
    std::vector<std::string> alphabet() override {
        std::vector<std::string> symbols;
        auto take = [&](std::unordered_map<std::uint32_t, std::uint32_t>& ids, std::string_view prefix) {
            std::unordered_map<std::uint32_t, std::uint32_t> kept;
            for (std::uint32_t code : covering())
                if (ids.contains(code)) {
                    kept[code] = static_cast<std::uint32_t>(symbols.size());
                    symbols.push_back(std::string(prefix) + utf8(code));
                }
            ids.swap(kept);
        };
        take(first_, "");
        take(later_, "##");
        return symbols;
    }
    std::size_t reserved() const override { return special_.size(); }
    MergeLimits limits() const override {
        MergeLimits limits;
        limits.right_prefix = "##";
        return limits;
    }
    void spell(std::string_view word, std::vector<std::uint32_t>& scratch, const Emit& emit) const override {
        scratch.clear();
        for (std::size_t at = 0; at < word.size();) {
            const Char c = character_at(word, at);
            const auto& ids = at == 0 ? first_ : later_;
            auto id = ids.find(c.code);
            if (id == ids.end()) return;  // the whole word is [UNK]
            scratch.push_back(id->second);
            at += c.size;
        }
        emit(scratch);
    }
    TrainedVocabulary assemble(const PairMerger& merger) const override {
        TrainedVocabulary v;
        v.kind = "wordpiece";
        v.tokens = special_;
        for (const std::string& token : special_)
            v.pieces.push_back(token == "[UNK]" ? Piece::unknown : Piece::control);
        v.tokens.insert(v.tokens.end(), merger.symbols().begin(), merger.symbols().end());
        v.pieces.resize(v.tokens.size(), Piece::normal);
        auto shift = static_cast<std::uint32_t>(special_.size());
        for (auto [left, right] : merger.merges())
            v.merges.emplace_back(static_cast<TokenId>(left + shift), static_cast<TokenId>(right + shift));
        return v;
    }

  private:
    static utf8proc_category_t category(std::uint32_t code) {
        return utf8proc_category(static_cast<utf8proc_int32_t>(code));
    }
    static bool is_white(std::uint32_t code) {
        return code == ' ' || code == '\t' || code == '\n' || code == '\r' ||
               category(code) == UTF8PROC_CATEGORY_ZS;
    }
    /// Words of one character.
    static bool is_alone(std::uint32_t code) { return is_bert_punctuation(code) || is_cjk(code); }
    /// Appends the character, lowered and without accents where asked; how many characters that made.
    std::size_t put(std::uint32_t code, std::string& word) const {
        if (!lowercase_) {
            append_utf8(word, code);
            return 1;
        }
        if (code < 128) {
            word += static_cast<char>(code >= 'A' && code <= 'Z' ? code + 32 : code);
            return 1;
        }
        std::array<utf8proc_int32_t, 32> parts{};
        int boundary = 0;
        auto lower = utf8proc_tolower(static_cast<utf8proc_int32_t>(code));
        auto n = utf8proc_decompose_char(lower, parts.data(), static_cast<utf8proc_ssize_t>(parts.size()),
                                         UTF8PROC_DECOMPOSE, &boundary);
        std::size_t made = 0;
        for (utf8proc_ssize_t i = 0; i < n; i++) {
            auto part = parts[static_cast<std::size_t>(i)];
            if (utf8proc_category(part) == UTF8PROC_CATEGORY_MN) continue;
            append_utf8(word, static_cast<char32_t>(part));
            made++;
        }
        return made;
    }

    std::vector<std::string> special_;
    bool lowercase_;
    std::unordered_map<std::uint32_t, std::uint32_t> first_, later_;
};

}  // namespace

std::unique_ptr<TrainKind> make_train_kind(const TrainOptions& options) {
    if (options.kind == "bpe") return std::make_unique<ByteKind>(options);
    if (options.kind == "spm") return std::make_unique<SpmKind>(options);
    if (options.kind == "wordpiece") return std::make_unique<WordPieceKind>(options);
    fail(Exit::usage, "", "--kind", "bpe, spm or wordpiece", options.kind);
}

}  // namespace linnet
