#include <cmath>
#include <cstring>

#include "base/error.h"
#include "text/encode/bpe.h"
#include "text/files/foreign.h"
#include "text/files/spm.h"

namespace linnet {
namespace {

/// The fields of one protocol buffer message (wire types varint, 64-bit, bytes, 32-bit).
class Message {
  public:
    Message(std::string_view bytes, const std::string& file, std::string where)
        : bytes_(bytes), file_(file), where_(std::move(where)) {}

    std::uint32_t field = 0, wire = 0;
    std::uint64_t number = 0;  // wire 0, 1, 5
    std::string_view content;  // wire 2

    /// Goes to the next field; false at the end.
    bool next() {
        if (at_ == bytes_.size()) return false;
        const std::uint64_t tag = varint();
        field = static_cast<std::uint32_t>(tag >> 3);
        wire = tag & 7;
        if (tag >> 3 == 0 || tag >> 3 > 0x1FFFFFFF) bad("a field number");
        switch (wire) {
            case 0:
                number = varint();
                break;
            case 1:
                number = fixed(8);
                break;
            case 2: {
                const std::uint64_t size = varint();
                if (size > bytes_.size() - at_)
                    bad("a field of at most " + std::to_string(bytes_.size() - at_) + " bytes");
                content = bytes_.substr(at_, size);
                at_ += size;
                break;
            }
            case 5:
                number = fixed(4);
                break;
            default:
                bad("a wire type 0, 1, 2 or 5");
        }
        return true;
    }
    void want(std::uint32_t type) {
        if (wire != type) bad("field " + std::to_string(field) + " of wire type " + std::to_string(type));
    }
    std::string_view bytes() { return want(2), content; }
    bool boolean() { return want(0), number != 0; }
    float real() {
        want(5);
        float f;
        const std::uint32_t bits = static_cast<std::uint32_t>(number);
        std::memcpy(&f, &bits, 4);
        if (!std::isfinite(f)) bad("a finite number");
        return f;
    }
    [[noreturn]] void bad(const std::string& expected) {
        fail_input(file_, where_ + ", byte " + std::to_string(at_), expected, "something else",
                   "the file is damaged or no SentencePiece model");
    }

  private:
    std::uint64_t varint() {
        std::uint64_t v = 0;
        for (int shift = 0; shift < 64; shift += 7) {
            if (at_ == bytes_.size()) bad("more bytes");
            const std::uint8_t b = static_cast<std::uint8_t>(bytes_[at_++]);
            v |= std::uint64_t{b & 0x7Fu} << shift;
            if (b < 0x80) return v;
        }
        bad("a number of at most 64 bits");
    }
    std::uint64_t fixed(std::size_t n) {
        if (bytes_.size() - at_ < n) bad("more bytes");
        std::uint64_t v = 0;
        for (std::size_t i = n; i-- > 0;) v = v << 8 | static_cast<std::uint8_t>(bytes_[at_ + i]);
        at_ += n;
        return v;
    }
    std::string_view bytes_;
    const std::string& file_;
    std::string where_;
    std::size_t at_ = 0;
};

struct Settings {
    std::uint64_t model = 1;  // 1 unigram, 2 bpe, 3 word, 4 char
    bool byte_fallback = false, whitespace_suffix = false;
    std::int64_t unknown = 0, bos = 1, eos = 2, pad = -1;
    std::string charsmap;
    bool dummy_prefix = true, collapse = true, escape = true;
};

void read_piece(std::string_view bytes, const std::string& file, Parts& parts) {
    const std::string where = "piece " + std::to_string(parts.vocabulary->size());
    Message m(bytes, file, where);
    std::string_view spelling;
    float score = 0;
    std::uint64_t type = 1;
    while (m.next()) {
        if (m.field == 1) spelling = m.bytes();
        if (m.field == 2) score = m.real();
        if (m.field == 3) m.want(0), type = m.number;
    }
    if (type < 1 || type > 6) fail_input(file, where, "a type from 1 to 6", std::to_string(type));
    if (spelling.empty()) fail_input(file, where, "a spelling", "none");
    const TokenId other = parts.vocabulary->add(spelling, static_cast<TokenType>(type), score);
    if (other >= 0)
        fail_input(file, where, "a spelling of its own",
                   "'" + std::string(spelling) + "', which is piece " + std::to_string(other) + " too");
    if (type != 3 && type != 4 && type != 2) return;
    AddedToken added;
    added.id = parts.vocabulary->size() - 1;
    added.content = spelling;
    added.special = type != 4;
    added.joins = type == 4;
    parts.added.push_back(std::move(added));
}

void read_trainer(std::string_view bytes, const std::string& file, Settings& s) {
    Message m(bytes, file, "trainer_spec");
    auto id = [&] { return m.want(0), static_cast<std::int64_t>(static_cast<std::int32_t>(m.number)); };
    while (m.next()) {
        switch (m.field) {
            case 3:
                m.want(0), s.model = m.number;
                break;
            case 24:
                s.whitespace_suffix = m.boolean();
                break;
            case 35:
                s.byte_fallback = m.boolean();
                break;
            case 40:
                s.unknown = id();
                break;
            case 41:
                s.bos = id();
                break;
            case 42:
                s.eos = id();
                break;
            case 43:
                s.pad = id();
                break;
            default:
                break;  // how it was trained
        }
    }
}

void read_normalizer(std::string_view bytes, const std::string& file, Settings& s) {
    Message m(bytes, file, "normalizer_spec");
    while (m.next()) {
        if (m.field == 2) s.charsmap = m.bytes();
        if (m.field == 3) s.dummy_prefix = m.boolean();
        if (m.field == 4) s.collapse = m.boolean();
        if (m.field == 5) s.escape = m.boolean();
    }
}

}  // namespace

bool looks_like_sentencepiece(std::string_view bytes) {
    // The first field is a piece: tag 0x0A, a length below 128, and in it a spelling: tag 0x0A again.
    return bytes.size() > 4 && bytes[0] == '\x0A' && static_cast<std::uint8_t>(bytes[1]) < 0x80 &&
           bytes[2] == '\x0A';
}

TokenizerPtr tokenizer_from_sentencepiece(std::string_view bytes, const std::string& file,
                                          const TokenizerHints& hints) {
    Parts parts;
    Settings settings;
    Message m(bytes, file, "model");
    while (m.next()) {
        if (m.field == 1) read_piece(m.bytes(), file, parts);
        if (m.field == 2) read_trainer(m.bytes(), file, settings);
        if (m.field == 3) read_normalizer(m.bytes(), file, settings);
    }
    if (parts.vocabulary->size() == 0) fail_input(file, "pieces", "at least one", "none");
    hints.fill(*parts.vocabulary, file);
    if (settings.whitespace_suffix)
        fail_input(file, "trainer_spec", "spaces before words", "treat_whitespace_as_suffix");
    if (!settings.escape) fail_input(file, "normalizer_spec", "escaped spaces", "escape_whitespaces = false");
    auto role = [&](std::int64_t id) -> std::optional<TokenId> {
        if (id < 0 || id >= parts.vocabulary->size()) return std::nullopt;
        return static_cast<TokenId>(id);
    };
    parts.special.unknown = role(settings.unknown);
    parts.special.bos = role(settings.bos);
    parts.special.eos = role(settings.eos);
    parts.special.padding = role(settings.pad);
    parts.scores = true;
    const SpaceMarks marks{settings.dummy_prefix, settings.collapse, std::move(settings.charsmap)};
    constexpr std::string_view map = "normalizer_spec.precompiled_charsmap";
    if (settings.model == 1) {
        use_unigram_model(parts, marks, settings.byte_fallback, file, map);
        if (parts.special.eos) parts.suffix.push_back(*parts.special.eos);
    } else if (settings.model == 2 || settings.model == 4) {
        use_spm_model(parts, marks, file, map);
        if (parts.special.bos) parts.prefix.push_back(*parts.special.bos);
    } else {
        fail_input(file, "trainer_spec.model_type", "1 (unigram), 2 (bpe) or 4 (char)",
                   std::to_string(settings.model));
    }
    hints.apply(parts);
    return std::make_shared<Pipeline>(std::move(parts));
}

}  // namespace linnet
