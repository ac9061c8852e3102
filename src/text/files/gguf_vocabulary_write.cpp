// The vocabulary of a GGUF: tokenizer.ggml.* keys, written.
#include <algorithm>

#include "base/error.h"
#include "formats/gguf.h"
#include "text/encode/bpe.h"
#include "text/encode/pipeline.h"
#include "text/encode/unigram.h"
#include "text/encode/wordpiece.h"
#include "text/files/gguf_keys.h"
#include "text/files/spm.h"
#include "text/split/pre_names.h"
#include "text/unicode/regex.h"

namespace linnet {
using namespace gguf_keys;
namespace {

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

/// An array of bytes.
void add_bytes(GgufWriter& out, const std::string& key, std::string_view bytes) {
    std::string stored;
    auto put = [&](auto value) { stored.append(reinterpret_cast<const char*>(&value), sizeof value); };
    put(GgufKind::array), put(GgufKind::u8), put(std::uint64_t{bytes.size()});
    stored += bytes;
    out.add_stored(key, std::as_bytes(std::span(stored)));
}

/// remove_extra_whitespaces, or the step of tokenizer.json's that stands for it.
bool is_collapse(const NormalizerStep& step) {
    using Kind = NormalizerStep::Kind;
    return step.kind == Kind::collapse_spaces ||
           (step.kind == Kind::replace && step.regex && step.regex->pattern() == " {2,}" &&
            (step.content == space_mark || step.content == " "));
}

/// Whether several spaces are one.
bool collapses(const Parts& parts) {
    if (std::ranges::any_of(parts.normalizer.steps, is_collapse)) return true;
    for (const PreTokenizerStep& step : parts.pre_tokenizer.steps)
        if (step.kind == PreTokenizerStep::Kind::whitespace_split) return true;
    return false;
}

/// Whether a mark goes before a text that does not begin with one.
bool puts_mark_first(const Parts& parts) {
    return std::ranges::any_of(
               parts.normalizer.steps,
               [](const NormalizerStep& step) { return step.kind == NormalizerStep::Kind::prepend; }) ||
           std::ranges::any_of(parts.pre_tokenizer.steps, [](const PreTokenizerStep& step) {
               return step.kind == PreTokenizerStep::Kind::metaspace &&
                      step.prepend != PreTokenizerStep::Prepend::never;
           });
}

/// SentencePiece's own steps, or what tokenizer.json writes for them.
bool has_only_marks(const Parts& parts) {
    using Kind = NormalizerStep::Kind;
    for (const NormalizerStep& step : parts.normalizer.steps) {
        const bool marks = step.content == space_mark &&
                           (step.kind == Kind::prepend ||
                            (step.kind == Kind::replace && !step.regex && step.pattern == " "));
        const bool strips = step.kind == Kind::strip && collapses(parts);  // which goes for the ends, too
        if (!marks && !strips && !is_collapse(step) && step.kind != Kind::precompiled) return false;
    }
    return std::ranges::all_of(parts.pre_tokenizer.steps, [](const PreTokenizerStep& step) {
        return step.kind == PreTokenizerStep::Kind::metaspace ||
               step.kind == PreTokenizerStep::Kind::whitespace_split;
    });
}

bool has_only_bert_steps(const Parts& parts) {
    const auto& before = parts.normalizer.steps;
    const auto& words = parts.pre_tokenizer.steps;
    return before.size() == 1 && before[0].kind == NormalizerStep::Kind::bert && before[0].clean_text &&
           before[0].cjk && words.size() == 1 && words[0].kind == PreTokenizerStep::Kind::bert;
}

/// What GGUF's keys, and our own, have no word for; empty: they say all that is done to a text.
std::string_view obstacle(const Parts& parts) {
    constexpr std::string_view steps = "its own normalizer or pre-tokenizer";
    if (parts.kind == "spm" || parts.kind == "unigram") return has_only_marks(parts) ? "" : steps;
    if (parts.kind == "wordpiece") return has_only_bert_steps(parts) ? "" : steps;
    if (parts.kind != "bpe") return "";
    const BpeOptions& o = dynamic_cast<const BpeModel&>(*parts.model).options();
    if (!o.continuing_prefix.empty() || !o.end_suffix.empty())
        return "tokens that say where a word begins or ends";
    const bool known =
        o.byte_level && !parts.ggml_pre.empty() && (parts.normalizer.empty() || is_nfc(parts.normalizer));
    return known ? "" : steps;
}

void write_model(const Parts& parts, GgufWriter& out) {
    constexpr std::pair<std::string_view, const char*> models[] = {
        {"bpe", "gpt2"},  {"spm", "llama"}, {"unigram", "t5"}, {"wordpiece", "bert"},
        {"char", "rwkv"}, {"rwkv", "rwkv"}, {"byte", "gpt2"}};
    for (auto [kind, name] : models)
        if (parts.kind == kind) out.add(prefix + "model", name);
    out.add(prefix + "pre", parts.kind == "byte"     ? std::string_view("gpt-2")
                            : parts.ggml_pre.empty() ? std::string_view("default")
                                                     : std::string_view(parts.ggml_pre));
}

/// GGUF's WordPiece marks the beginnings of words (U+2581), Hugging Face's the continuations ("##").
std::string_view gguf_spelling(const Parts& parts, TokenId id, std::string& memory) {
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

void write_tokens(const Parts& parts, GgufWriter& out) {
    const Vocabulary& vocabulary = *parts.vocabulary;
    const bool bytes = parts.kind == "byte";
    for (TokenId id = 0; bytes && id < vocabulary.size(); id++)
        if (byte_of_spelling(vocabulary.spelling(id)) < 0)
            fail_input("tokenizer", "GGUF", "tokens of one byte each", quoted(vocabulary.spelling(id)));
    std::vector<std::int32_t> types;
    std::vector<float> scores;
    for (TokenId id = 0; id < vocabulary.size(); id++) {
        types.push_back(static_cast<std::int32_t>(bytes ? TokenType::normal : vocabulary.type(id)));
        scores.push_back(static_cast<float>(vocabulary.score(id)));
    }
    std::string memory;
    out.add(prefix + "tokens", types.size(),
            [&](std::size_t id) { return gguf_spelling(parts, static_cast<TokenId>(id), memory); });
    if (bytes) out.add(prefix + "merges", 0, [](std::size_t) { return std::string_view(); });
    if (parts.scores) out.add(prefix + "scores", std::span<const float>(scores));
    out.add(prefix + "token_type", std::span<const std::int32_t>(types));
    if (parts.kind != "bpe") return;
    const std::vector<MergeTable::Ranked> merges =
        dynamic_cast<const BpeModel&>(*parts.model).merges().in_order();
    out.add(prefix + "merges", merges.size(), [&](std::size_t i) -> std::string_view {
        return memory.assign(vocabulary.spelling(merges[i].left))
            .append(" ")
            .append(vocabulary.spelling(merges[i].right));
    });
}

void write_roles(const Parts& parts, GgufWriter& out) {
    for (const Role& role : roles)
        if (parts.special.*role.id)
            out.add(prefix + role.key, static_cast<std::uint32_t>(*(parts.special.*role.id)));
    auto has = [](const std::vector<TokenId>& list, std::optional<TokenId> id) {
        return id && std::find(list.begin(), list.end(), *id) != list.end();
    };
    out.add(prefix + "add_bos_token", has(parts.prefix, parts.special.bos));
    out.add(prefix + "add_eos_token", has(parts.suffix, parts.special.eos));
    out.add(prefix + "add_sep_token", has(parts.suffix, parts.special.separator));
}

/// What happens to a text before the model sees it, as far as the kind leaves a choice.
void write_steps(const Parts& parts, GgufWriter& out) {
    const bool marks = parts.kind == "spm" || parts.kind == "unigram";
    if (marks) out.add(space_prefix_key, puts_mark_first(parts));
    if (marks && collapses(parts)) out.add(collapse_key, true);
    for (const NormalizerStep& step : parts.normalizer.steps) {
        if (marks && step.kind == NormalizerStep::Kind::precompiled)
            add_bytes(out, charsmap_key, step.content);
        if (step.kind == NormalizerStep::Kind::bert) {
            out.add(prefix + "normalizer.lowercase", step.lowercase);
            out.add(prefix + "normalizer.strip_accents", step.accents);
        }
    }
    if (const auto* model = dynamic_cast<const UnigramModel*>(parts.model.get());
        model && model->options().byte_fallback)
        out.add(own_byte_fallback, true);
    if (const auto* model = dynamic_cast<const WordPieceModel*>(parts.model.get());
        model && model->options().max_characters > 0)
        out.add(own_max_characters, static_cast<std::uint32_t>(model->options().max_characters));
    if (parts.kind != "bpe") return;
    const bool ignores = dynamic_cast<const BpeModel&>(*parts.model).options().ignore_merges;
    if (ignores != find_pre_name(parts.ggml_pre, "tokenizer", "pre").ignore_merges)
        out.add(own_ignore_merges, ignores);
    if (is_nfc(parts.normalizer)) out.add(own_normalizer, "nfc");
}

}  // namespace

void Pipeline::write(GgufWriter& out) const {
    if (const std::string_view other = obstacle(parts_); !other.empty())
        fail_input("tokenizer", "GGUF", "a tokenizer that GGUF has a name for", std::string(other),
                   "tokenizer.json can hold it");
    write_model(parts_, out);
    write_tokens(parts_, out);
    write_roles(parts_, out);
    write_steps(parts_, out);
    write_flags(parts_.added, out);
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
