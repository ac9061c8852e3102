// The vocabulary of a GGUF: tokenizer.ggml.* keys, read.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/error.h"
#include "formats/gguf.h"
#include "text/encode/bpe.h"
#include "text/encode/pipeline.h"
#include "text/encode/plain.h"
#include "text/encode/unigram.h"
#include "text/encode/wordpiece.h"
#include "text/files/gguf_keys.h"
#include "text/files/spm.h"
#include "text/split/pre_names.h"
#include "text/unicode/charsmap.h"

namespace linnet {
using namespace gguf_keys;
namespace {

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
        if (scores && std::isnan((*scores)[i]))
            fail_input(file.path(), prefix + "scores[" + std::to_string(i) + "]", "a number", "nan");
        constexpr double most = std::numeric_limits<float>::max();  // some files have infinities
        const double score = scores ? std::clamp<double>((*scores)[i], -most, most) : 0;
        const TokenId other =
            parts.vocabulary->add((*tokens)[i], type == 0 ? TokenType::normal : static_cast<TokenType>(type),
                                  static_cast<float>(score));
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

/// As the writer escapes it.
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

SpaceMarks marks_of(const Gguf& file) {
    return {file.boolean(space_prefix_key).value_or(true), file.boolean(collapse_key).value_or(false),
            bytes_of(file, charsmap_key)};
}

void read_unigram(const Gguf& file, Parts& parts) {
    if (!parts.scores) fail_input(file.path(), prefix + "scores", "an array of numbers", "nothing");
    use_unigram_model(parts, marks_of(file), file.boolean(own_byte_fallback).value_or(false), file.path(),
                      charsmap_key);
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
    options.max_characters = static_cast<std::size_t>(file.integer(own_max_characters).value_or(0));
    parts.model = std::make_unique<WordPieceModel>(*parts.vocabulary, options);
    parts.decoder.kind = Decoder::Kind::pieces;
    parts.decoder.word_mark = parts.decoder.strip_first = parts.decoder.cleanup = true;
    // BERT's [CLS] is what GGUF calls the beginning of a text.
    if (!parts.special.bos) parts.special.bos = parts.special.cls;
    read_surroundings(file, parts, true, false, true);
}

}  // namespace

static void use_marks(Parts& parts, const SpaceMarks& marks, std::string_view file, std::string_view where) {
    auto& steps = parts.normalizer.steps;
    if (!marks.charsmap.empty()) {
        NormalizerStep map;
        map.kind = NormalizerStep::Kind::precompiled;
        map.content = marks.charsmap;
        map.charsmap = std::make_shared<const CharsMap>(marks.charsmap, file, where);
        steps.push_back(map);
    }
    if (marks.collapse) {
        NormalizerStep step;
        step.kind = NormalizerStep::Kind::collapse_spaces;
        steps.push_back(step);
    }
    if (marks.prefix) steps.push_back(leading_mark());
    steps.push_back(spaces_to_marks());
    parts.decoder.kind = Decoder::Kind::marks;
    parts.decoder.strip_first = marks.prefix;
}

void use_unigram_model(Parts& parts, const SpaceMarks& marks, bool byte_fallback, std::string_view file,
                       std::string_view where) {
    use_marks(parts, marks, file, where);
    UnigramOptions options;
    options.unknown = parts.special.unknown.value_or(-1);
    options.byte_fallback = byte_fallback;
    parts.kind = "unigram";
    parts.model = std::make_unique<UnigramModel>(*parts.vocabulary, options);
}

void use_spm_model(Parts& parts, const SpaceMarks& marks, std::string_view file, std::string_view where) {
    ImpliedMerges implied = implied_merges(*parts.vocabulary, ranks_of_scores(*parts.vocabulary));
    BpeOptions options;
    options.byte_level = false;
    options.byte_fallback = options.fuse_unknown = true;  // unknown: where it has no tokens of bytes
    options.unknown = parts.special.unknown.value_or(-1);
    parts.kind = "spm";
    parts.model = std::make_unique<BpeModel>(*parts.vocabulary, std::move(implied.merges), options,
                                             std::move(implied.extra));
    use_marks(parts, marks, file, where);
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
        use_spm_model(parts, marks_of(file), file.path(), charsmap_key);
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

}  // namespace linnet
