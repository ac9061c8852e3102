// The vocabulary of a GGUF: tokenizer.ggml.* keys, read and written.
#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>

#include "base/error.h"
#include "formats/gguf.h"
#include "text/encode/bpe.h"
#include "text/encode/pipeline.h"
#include "text/encode/plain.h"
#include "text/encode/unigram.h"
#include "text/encode/wordpiece.h"
#include "text/files/spm.h"
#include "text/split/pre_names.h"
#include "text/unicode/charsmap.h"

namespace linnet {
namespace {

const std::string prefix = "tokenizer.ggml.";

struct Role {
    const char* key;
    std::optional<TokenId> SpecialIds::*id;
};
// Keys of the roles ("seperator" is the specification's own spelling).
constexpr Role roles[] = {
    {"bos_token_id", &SpecialIds::bos},         {"eos_token_id", &SpecialIds::eos},
    {"unknown_token_id", &SpecialIds::unknown}, {"seperator_token_id", &SpecialIds::separator},
    {"padding_token_id", &SpecialIds::padding}, {"cls_token_id", &SpecialIds::cls},
    {"mask_token_id", &SpecialIds::mask},       {"eot_token_id", &SpecialIds::eot},
    {"eom_token_id", &SpecialIds::eom},
};

// What tokenizer.json can say and GGUF has no key for: other readers pass over these.
const std::string own_prefix = "linnet.tokenizer.";
const std::string own_normalizer = own_prefix + "normalizer",
                  own_ignore_merges = own_prefix + "ignore_merges";

struct Flag {
    const char* key;  // ids of the added tokens that have it
    bool AddedToken::*flag;
};
constexpr Flag flags[] = {{"lstrip", &AddedToken::lstrip},
                          {"rstrip", &AddedToken::rstrip},
                          {"single_word", &AddedToken::single_word},
                          {"normalized", &AddedToken::normalized}};

/// Phi-3's tokens take the white space behind them along, which llama.cpp knows by the model's name.
void read_phi3(const Gguf& file, Parts& parts) {
    std::string name(file.string("general.name").value_or(""));
    for (char& c : name)
        if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
    if (name.find("phi-3") == name.npos && name.find("phi3") == name.npos) return;
    for (AddedToken& token : parts.added)
        token.rstrip = token.content != "<unk>" && token.content != "<s>" && token.content != "<|endoftext|>";
}

void read_flags(const Gguf& file, Parts& parts) {
    read_phi3(file, parts);
    for (const Flag& flag : flags) {
        auto ids = file.integers(own_prefix + flag.key);
        if (!ids) continue;
        std::sort(ids->begin(), ids->end());  // a file may say as many as it likes
        for (AddedToken& token : parts.added)
            token.*flag.flag = std::binary_search(ids->begin(), ids->end(), token.id);
    }
}

void write_flags(const std::vector<AddedToken>& added, GgufWriter& out) {
    for (const Flag& flag : flags) {
        std::vector<std::int32_t> ids;
        for (const AddedToken& token : added)
            if (token.*flag.flag) ids.push_back(token.id);
        if (!ids.empty()) out.add(own_prefix + flag.key, std::span<const std::int32_t>(ids));
    }
}

bool is_nfc(const Normalizer& normalizer) {
    return normalizer.steps.size() == 1 && normalizer.steps[0].kind == NormalizerStep::Kind::nfc;
}

void read_tokens(const Gguf& file, Parts& parts) {
    const auto* tokens = file.strings(prefix + "tokens");
    if (!tokens)
        fail_input(file.path(), prefix + "tokens", "an array of strings", "nothing",
                   "the file holds no vocabulary");
    if (tokens->empty()) fail_input(file.path(), prefix + "tokens", "at least one token", "none");
    if (tokens->size() > (1u << 24))
        fail_input(file.path(), prefix + "tokens", "at most 2^24 tokens", std::to_string(tokens->size()));
    const auto types = file.integers(prefix + "token_type");
    const auto scores = file.numbers(prefix + "scores");
    auto same = [&](const auto& list, const char* key) {
        if (list && list->size() != tokens->size())
            fail_input(file.path(), prefix + key, std::to_string(tokens->size()) + " entries, one per token",
                       std::to_string(list->size()));
    };
    same(types, "token_type");
    same(scores, "scores");
    std::size_t bytes = 0;
    for (std::string_view token : *tokens) bytes += token.size();
    parts.vocabulary->reserve(tokens->size(), bytes);
    parts.scores = scores.has_value();
    for (std::size_t i = 0; i < tokens->size(); i++) {
        const std::int64_t type = types ? (*types)[i] : 1;
        if (type < 0 || type > 6)
            fail_input(file.path(), prefix + "token_type[" + std::to_string(i) + "]", "0 to 6",
                       std::to_string(type));
        const TokenId other =
            parts.vocabulary->add((*tokens)[i], type == 0 ? TokenType::normal : static_cast<TokenType>(type),
                                  scores ? static_cast<float>((*scores)[i]) : 0.0f);
        if (other >= 0 && type != 5 && type != 3)
            fail_input(
                file.path(), prefix + "tokens[" + std::to_string(i) + "]", "a spelling of its own",
                "'" + std::string((*tokens)[i]) + "', which is token " + std::to_string(other) + " too");
    }
}

void read_roles(const Gguf& file, Parts& parts) {
    for (const Role& role : roles) {
        const auto id = file.integer(prefix + role.key);
        if (!id) continue;
        // Writers put 2^32 - 1 where there is none.
        if (*id == UINT32_MAX) continue;
        if (*id >= static_cast<std::uint64_t>(parts.vocabulary->size()))
            fail_input(file.path(), prefix + role.key,
                       "an id below " + std::to_string(parts.vocabulary->size()), std::to_string(*id));
        parts.special.*role.id = static_cast<TokenId>(*id);
    }
    for (TokenId id = 0; id < parts.vocabulary->size(); id++) {
        const TokenType type = parts.vocabulary->type(id);
        if (type != TokenType::control && type != TokenType::user_defined && type != TokenType::unknown)
            continue;
        AddedToken token;
        token.id = id;
        token.content = std::string(parts.vocabulary->spelling(id));
        token.special = type != TokenType::user_defined;
        parts.added.push_back(std::move(token));
    }
}

/// Tokens put around a text; the defaults of each kind hold where the file has no key.
void read_surroundings(const Gguf& file, Parts& parts, bool bos, bool eos, bool sep) {
    auto flag = [&](const char* key, bool otherwise) {
        return file.boolean(prefix + key).value_or(otherwise);
    };
    if (flag("add_bos_token", bos) && parts.special.bos) parts.prefix.push_back(*parts.special.bos);
    if (flag("add_eos_token", eos) && parts.special.eos) parts.suffix.push_back(*parts.special.eos);
    if (flag("add_sep_token", sep) && parts.special.separator)
        parts.suffix.push_back(*parts.special.separator);
}

void read_byte_bpe(const Gguf& file, Parts& parts) {
    const auto* merges = file.strings(prefix + "merges");
    if (!merges) fail_input(file.path(), prefix + "merges", "an array of strings", "nothing");
    const Vocabulary& vocabulary = *parts.vocabulary;
    auto bad = [&](std::size_t i, const char* expected) {
        fail_input(file.path(), prefix + "merges[" + std::to_string(i) + "]", expected,
                   "'" + std::string((*merges)[i]) + "'");
    };
    const std::string name(file.string(prefix + "pre").value_or("default"));
    const PreName& pre = find_pre_name(name, file.path(), prefix + "pre");
    parts.kind = "bpe";
    parts.ggml_pre = name;
    parts.pre_tokenizer = pre_tokenizer_of(pre);
    parts.decoder.kind = Decoder::Kind::bytes;
    settle_mask(parts);
    BpeOptions options;
    options.ignore_merges = file.boolean(own_ignore_merges).value_or(pre.ignore_merges);
    if (const auto own = file.string(own_normalizer)) {
        if (*own != "nfc") fail_input(file.path(), own_normalizer, "nfc", quoted(*own));
        parts.normalizer.steps.emplace_back().kind = NormalizerStep::Kind::nfc;
    }
    MergeReader reader(vocabulary, merges->size(), {}, bad);
    for (std::size_t i = 0; i < merges->size(); i++) {
        const std::string_view line = (*merges)[i];
        const std::size_t space = line.find(' ', 1);
        if (line.size() < 3 || space == std::string_view::npos || space + 1 == line.size())
            bad(i, "two tokens with a space between");
        reader.add(line.substr(0, space), line.substr(space + 1));
    }
    parts.model = std::make_unique<BpeModel>(vocabulary, reader.take(), options);
    read_surroundings(file, parts, pre.add_bos, false, false);
}

/// A token per byte or per character, or the longest one at each place.
void use_plain_model(Parts& parts, std::string_view kind) {
    parts.kind = std::string(kind);
    parts.decoder.kind = Decoder::Kind::plain;
    if (kind == "char")
        parts.model = std::make_unique<CharModel>(*parts.vocabulary, parts.special.unknown.value_or(-1));
    else if (kind == "rwkv")
        parts.model = std::make_unique<LongestModel>(*parts.vocabulary, parts.special.unknown.value_or(-1));
    else
        parts.model = std::make_unique<ByteModel>(*parts.vocabulary);
}

// Two kinds of ours are written under names that other runtimes know, and read back as what they are:
// - bytes as "gpt2", byte-level BPE of 256 tokens without merges;
// - characters as "rwkv", the longest of the tokens at each place. (As "gpt2" only ASCII could be written,
//   and llama.cpp would take the character with id 11, its default end token, for the end of the text.)

/// `spelling` as an rwkv vocabulary writes it: as Python writes bytes. `bytes`: also those of no ASCII
/// character.
std::string rwkv_escaped(std::string_view spelling, bool bytes) {
    std::string out;
    for (char c : spelling) {
        const std::size_t at = std::string_view("\n\t\r\\").find(c);
        const auto byte = static_cast<std::uint8_t>(c);
        if (at != std::string_view::npos)
            out += std::string("\\") + "ntr\\"[at];
        else if (bytes && (byte < 0x20 || byte >= 0x7F))
            out += std::string("\\x") + "0123456789abcdef"[byte >> 4] + "0123456789abcdef"[byte & 15];
        else
            out += c;
    }
    return out;
}

std::string rwkv_unescaped(std::string_view escaped) {
    std::string out;
    for (std::size_t i = 0; i < escaped.size(); i++) {
        if (escaped[i] != '\\' || i + 1 == escaped.size()) {
            out += escaped[i];
            continue;
        }
        std::uint8_t byte = 0;
        if (escaped[++i] == 'x' && i + 2 < escaped.size() &&
            std::from_chars(&escaped[i + 1], &escaped[i + 1] + 2, byte, 16).ptr == &escaped[i + 1] + 2) {
            out += static_cast<char>(byte);
            i += 2;
            continue;
        }
        const std::size_t at = std::string_view("ntr").find(escaped[i]);
        out += at == std::string_view::npos ? escaped[i] : "\n\t\r"[at];
    }
    return out;
}

/// True where the file's BPE is 256 bytes and nothing else: `parts` then holds them as bytes, by the same
/// ids.
bool read_bytes(const Gguf& file, Parts& parts) {
    const auto* merges = file.strings(prefix + "merges");
    const Vocabulary& spelled = *parts.vocabulary;
    if (!merges || !merges->empty() || spelled.size() != 256) return false;
    for (const Role& role : roles)
        if (parts.special.*role.id) return false;
    auto bytes = std::make_unique<Vocabulary>();
    for (TokenId id = 0; id < spelled.size(); id++) {
        std::string own;
        byte_alphabet::unspell(spelled.spelling(id), own);
        if (spelled.type(id) != TokenType::normal || own.size() != 1 ||
            spelled.spelling(id) != byte_alphabet::spell(own))
            return false;
        bytes->add(spelling_of_byte(static_cast<std::uint8_t>(own[0])), TokenType::byte);
    }
    parts.vocabulary = std::move(bytes);
    use_plain_model(parts, "byte");
    return true;
}

/// An rwkv vocabulary; one of characters alone is ours, and "char".
void read_rwkv(const Gguf& file, Parts& parts) {
    auto unescaped = std::make_unique<Vocabulary>();
    bool characters = true;
    for (TokenId id = 0; id < parts.vocabulary->size(); id++) {
        const std::string own = rwkv_unescaped(parts.vocabulary->spelling(id));
        const TokenType type = parts.vocabulary->type(id);
        const Char first = decode_utf8(own.data(), own.data() + own.size());
        characters &= type != TokenType::normal || (!own.empty() && first.valid && first.size == own.size());
        if (unescaped->add(own, type) >= 0 && type == TokenType::normal)
            fail_input(file.path(), prefix + "tokens[" + std::to_string(id) + "]", "a spelling of its own",
                       quoted(own));
    }
    parts.vocabulary = std::move(unescaped);
    use_plain_model(parts, characters ? "char" : "rwkv");
    if (!characters) read_surroundings(file, parts, false, false, false);
}

std::vector<std::uint32_t> ranks_of_scores(const Vocabulary& vocabulary) {
    std::vector<TokenId> order(static_cast<std::size_t>(vocabulary.size()));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](TokenId a, TokenId b) { return vocabulary.score(a) > vocabulary.score(b); });
    std::vector<std::uint32_t> rank(order.size(), no_merge);
    std::uint32_t current = 0;
    for (std::size_t i = 0; i < order.size(); i++) {
        if (i > 0 && vocabulary.score(order[i]) < vocabulary.score(order[i - 1])) current++;
        const TokenType type = vocabulary.type(order[i]);
        if (type == TokenType::normal || type == TokenType::user_defined || type == TokenType::unused)
            rank[static_cast<std::size_t>(order[i])] = current;
    }
    return rank;
}

std::string bytes_of(const Gguf& file, const std::string& key) {
    const GgufValue* value = file.find(key);
    if (!value) return {};
    const auto* array = std::get_if<GgufArray>(value);
    if (!array || (array->kind != GgufKind::u8 && array->kind != GgufKind::i8))
        fail_input(file.path(), key, "an array of bytes", "another kind of value");
    return {reinterpret_cast<const char*>(array->bytes.data()), array->bytes.size()};
}

/// As `bytes_of` reads it.
void add_bytes(GgufWriter& out, const std::string& key, std::string_view bytes) {
    std::string stored;
    auto put = [&](auto value) { stored.append(reinterpret_cast<const char*>(&value), sizeof value); };
    put(GgufKind::array), put(GgufKind::u8), put(std::uint64_t{bytes.size()});
    stored += bytes;
    out.add_stored(key, std::as_bytes(std::span(stored)));
}

NormalizerStep spaces_to_marks() {
    NormalizerStep step;
    step.kind = NormalizerStep::Kind::replace;
    step.pattern = " ";
    step.content = space_mark;
    return step;
}

NormalizerStep leading_mark() {
    NormalizerStep step;
    step.kind = NormalizerStep::Kind::prepend;
    step.content = space_mark;
    return step;
}

void read_unigram(const Gguf& file, Parts& parts) {
    if (!parts.scores) fail_input(file.path(), prefix + "scores", "an array of numbers", "nothing");
    parts.kind = "unigram";
    parts.charsmap = bytes_of(file, prefix + "precompiled_charsmap");
    const bool space_prefix = file.boolean(prefix + "add_space_prefix").value_or(true);
    use_unigram_model(parts, space_prefix, file.boolean(prefix + "remove_extra_whitespaces").value_or(false),
                      false, file.path(), prefix + "precompiled_charsmap");
    read_surroundings(file, parts, false, true, false);
}

void read_wordpiece(const Gguf& file, Parts& parts) {
    parts.kind = "wordpiece";
    NormalizerStep clean;
    clean.kind = NormalizerStep::Kind::bert;
    clean.lowercase = file.boolean(prefix + "normalizer.lowercase").value_or(true);
    clean.accents = file.boolean(prefix + "normalizer.strip_accents").value_or(clean.lowercase);
    parts.normalizer.steps.push_back(clean);
    PreTokenizerStep split;
    split.kind = PreTokenizerStep::Kind::bert;
    parts.pre_tokenizer.steps.push_back(split);
    parts.ggml_pre = std::string(file.string(prefix + "pre").value_or("default"));
    WordPieceOptions options;
    options.word_mark = true;
    options.unknown = parts.special.unknown.value_or(-1);
    parts.model = std::make_unique<WordPieceModel>(*parts.vocabulary, options);
    parts.decoder.kind = Decoder::Kind::pieces;
    parts.decoder.word_mark = parts.decoder.strip_first = parts.decoder.cleanup = true;
    // BERT's [CLS] is what GGUF calls the beginning of a text.
    if (!parts.special.bos) parts.special.bos = parts.special.cls;
    read_surroundings(file, parts, true, false, true);
}

}  // namespace

void use_unigram_model(Parts& parts, bool space_prefix, bool collapse, bool byte_fallback,
                       std::string_view file, std::string_view where) {
    auto& steps = parts.normalizer.steps;
    if (!parts.charsmap.empty()) {
        NormalizerStep map;
        map.kind = NormalizerStep::Kind::precompiled;
        map.content = parts.charsmap;
        map.charsmap = std::make_shared<const CharsMap>(parts.charsmap, file, where);
        steps.push_back(map);
    }
    if (collapse) {
        NormalizerStep step;
        step.kind = NormalizerStep::Kind::collapse_spaces;
        steps.push_back(step);
    }
    if (space_prefix) steps.push_back(leading_mark());
    steps.push_back(spaces_to_marks());
    UnigramOptions options;
    options.unknown = parts.special.unknown.value_or(-1);
    options.byte_fallback = byte_fallback;
    parts.kind = "unigram";
    parts.model = std::make_unique<UnigramModel>(*parts.vocabulary, options);
    parts.decoder.kind = Decoder::Kind::marks;
    parts.decoder.strip_first = space_prefix;
}

void use_spm_model(Parts& parts, bool space_prefix) {
    ImpliedMerges implied = implied_merges(*parts.vocabulary, ranks_of_scores(*parts.vocabulary));
    BpeOptions options;
    options.byte_level = false;
    options.byte_fallback = true;
    options.unknown = parts.special.unknown.value_or(-1);
    parts.kind = "spm";
    parts.model = std::make_unique<BpeModel>(*parts.vocabulary, std::move(implied.merges), options,
                                             std::move(implied.extra));
    if (space_prefix) parts.normalizer.steps.push_back(leading_mark());
    parts.normalizer.steps.push_back(spaces_to_marks());
    parts.decoder.kind = Decoder::Kind::marks;
    parts.decoder.strip_first = space_prefix;
}

TokenizerPtr tokenizer_from_gguf(const Gguf& file) {
    const auto model = file.string(prefix + "model");
    if (!model)
        fail_input(file.path(), prefix + "model", "a tokenizer's kind", "nothing",
                   "the file holds no vocabulary");
    Parts parts;
    read_tokens(file, parts);
    read_roles(file, parts);
    read_flags(file, parts);
    if (*model == "gpt2") {
        if (!read_bytes(file, parts)) read_byte_bpe(file, parts);
    } else if (*model == "llama") {
        use_spm_model(parts, file.boolean(prefix + "add_space_prefix").value_or(true));
        read_surroundings(file, parts, true, false, false);
    } else if (*model == "t5") {
        read_unigram(file, parts);
    } else if (*model == "bert") {
        read_wordpiece(file, parts);
    } else if (*model == "rwkv") {
        read_rwkv(file, parts);
    } else if (*model == "char" || *model == "byte") {  // of linnet 0.1.0
        use_plain_model(parts, *model);
        read_surroundings(file, parts, false, false, false);
    } else {
        fail_input(file.path(), prefix + "model", "gpt2, llama, t5, bert or rwkv",
                   "'" + std::string(*model) + "'");
    }
    return std::make_shared<Pipeline>(std::move(parts));
}

/// GGUF's WordPiece marks the beginnings of words (U+2581), Hugging Face's the continuations ("##").
static std::string_view gguf_spelling(const Parts& parts, TokenId id, std::string& memory) {
    const std::string_view spelling = parts.vocabulary->spelling(id);
    const TokenType type = parts.vocabulary->type(id);
    if (parts.kind == "char" || parts.kind == "rwkv")
        return memory = rwkv_escaped(spelling, parts.kind == "rwkv");
    if (parts.kind == "byte")
        return byte_alphabet::spell(static_cast<std::uint8_t>(byte_of_spelling(spelling)));
    if (parts.kind != "wordpiece" || parts.decoder.word_mark ||
        (type != TokenType::normal && type != TokenType::unused))
        return spelling;
    const std::string& marker = parts.decoder.marker;
    if (spelling.starts_with(marker) && spelling.size() > marker.size())
        return spelling.substr(marker.size());
    return memory.assign(space_mark).append(spelling);
}

void Pipeline::write(GgufWriter& out) const {
    const Vocabulary& vocabulary = *parts_.vocabulary;
    const auto* characters = dynamic_cast<const BpeModel*>(parts_.model.get());
    if (parts_.kind == "bpe" && (!characters->options().byte_level || parts_.ggml_pre.empty() ||
                                 !(parts_.normalizer.empty() || is_nfc(parts_.normalizer))))
        fail_input("tokenizer", "GGUF", "a tokenizer that GGUF has a name for",
                   "its own normalizer or pre-tokenizer", "tokenizer.json can hold it");
    constexpr std::pair<std::string_view, const char*> models[] = {
        {"bpe", "gpt2"},  {"spm", "llama"}, {"unigram", "t5"}, {"wordpiece", "bert"},
        {"char", "rwkv"}, {"rwkv", "rwkv"}, {"byte", "gpt2"}};
    for (auto [kind, name] : models)
        if (parts_.kind == kind) out.add(prefix + "model", name);
    const bool bytes = parts_.kind == "byte";
    for (TokenId id = 0; bytes && id < vocabulary.size(); id++)
        if (byte_of_spelling(vocabulary.spelling(id)) < 0)
            fail_input("tokenizer", "GGUF", "tokens of one byte each", quoted(vocabulary.spelling(id)));
    out.add(prefix + "pre", bytes                     ? std::string_view("gpt-2")
                            : parts_.ggml_pre.empty() ? std::string_view("default")
                                                      : std::string_view(parts_.ggml_pre));
    std::vector<std::int32_t> types;
    std::vector<float> scores;
    for (TokenId id = 0; id < vocabulary.size(); id++) {
        types.push_back(static_cast<std::int32_t>(bytes ? TokenType::normal : vocabulary.type(id)));
        scores.push_back(vocabulary.score(id));
    }
    std::string memory;
    out.add(prefix + "tokens", types.size(),
            [&](std::size_t id) { return gguf_spelling(parts_, static_cast<TokenId>(id), memory); });
    if (bytes) out.add(prefix + "merges", 0, [](std::size_t) { return std::string_view(); });
    if (parts_.scores) out.add(prefix + "scores", std::span<const float>(scores));
    out.add(prefix + "token_type", std::span<const std::int32_t>(types));
    if (const auto* bpe = dynamic_cast<const BpeModel*>(parts_.model.get()); bpe && parts_.kind == "bpe") {
        const std::vector<MergeTable::Ranked> merges = bpe->merges().in_order();
        out.add(prefix + "merges", merges.size(), [&](std::size_t i) -> std::string_view {
            return memory.assign(vocabulary.spelling(merges[i].left))
                .append(" ")
                .append(vocabulary.spelling(merges[i].right));
        });
    }
    for (const Role& role : roles)
        if (parts_.special.*role.id)
            out.add(prefix + role.key, static_cast<std::uint32_t>(*(parts_.special.*role.id)));
    auto has = [](const std::vector<TokenId>& list, std::optional<TokenId> id) {
        return id && std::find(list.begin(), list.end(), *id) != list.end();
    };
    out.add(prefix + "add_bos_token", has(parts_.prefix, parts_.special.bos));
    out.add(prefix + "add_eos_token", has(parts_.suffix, parts_.special.eos));
    out.add(prefix + "add_sep_token", has(parts_.suffix, parts_.special.separator));
    if (parts_.kind == "spm" || parts_.kind == "unigram")
        out.add(prefix + "add_space_prefix", parts_.decoder.strip_first);
    if (parts_.kind == "unigram" && !parts_.charsmap.empty())
        add_bytes(out, prefix + "precompiled_charsmap", parts_.charsmap);
    if (parts_.kind == "bpe") {
        const bool ignores = characters->options().ignore_merges;
        if (ignores != find_pre_name(parts_.ggml_pre, "tokenizer", "pre").ignore_merges)
            out.add(own_ignore_merges, ignores);
        if (is_nfc(parts_.normalizer)) out.add(own_normalizer, "nfc");
    }
    write_flags(parts_.added, out);
    for (const NormalizerStep& step : parts_.normalizer.steps) {
        if (step.kind == NormalizerStep::Kind::collapse_spaces)
            out.add(prefix + "remove_extra_whitespaces", true);
        if (step.kind == NormalizerStep::Kind::bert) {
            out.add(prefix + "normalizer.lowercase", step.lowercase);
            out.add(prefix + "normalizer.strip_accents", step.accents);
        }
    }
}

std::string tokenizer_to_gguf(const Tokenizer& tokenizer) {
    GgufWriter writer;
    writer.add("general.architecture",
               tokenizer.kind() == "spm" || tokenizer.kind() == "unigram" ? "llama" : "gpt2");
    writer.add("general.name", "tokenizer");
    tokenizer.write(writer);
    return writer.header();
}

}  // namespace linnet
