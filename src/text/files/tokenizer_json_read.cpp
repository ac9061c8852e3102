#include <algorithm>

#include "base/error.h"
#include "text/encode/bpe.h"
#include "text/encode/plain.h"
#include "text/encode/unigram.h"
#include "text/encode/wordpiece.h"
#include "text/files/tokenizer_json.h"
#include "text/split/pre_names.h"

namespace linnet {
namespace {

using Value = Json::Value;

/// The tokens by id while they are collected; ids come in any order and from two lists.
struct Collected {
    struct Entry {
        std::string_view spelling;
        double score = 0;
        bool there = false;
    };
    std::vector<Entry> entries;
    std::size_t listed = 0;  // tokens of the file

    /// Ids may have gaps (GPT-4's do), which cost room: as many as there are tokens, and some more.
    std::size_t most() const { return listed + std::max<std::size_t>(listed, 1 << 16); }
    void put(Value value, std::int64_t id, std::string_view spelling, double score = 0) {
        if (id >= static_cast<std::int64_t>(most()))
            value.fail("an id below " + std::to_string(most()) + ", as there are but " +
                           std::to_string(listed) + " tokens",
                       std::to_string(id));
        if (id >= static_cast<std::int64_t>(entries.size())) entries.resize(static_cast<std::size_t>(id) + 1);
        Entry& entry = entries[static_cast<std::size_t>(id)];
        if (entry.there && entry.spelling != spelling)
            value.fail("an id of its own",
                       std::to_string(id) + ", which is '" + std::string(entry.spelling) + "' too");
        entry = {spelling, score, true};
    }
};

constexpr std::int64_t max_id = (1 << 24) - 1;

void read_vocabulary(Value model, std::string_view type, Collected& tokens) {
    Value vocab = model["vocab"];
    if (vocab.is_null()) model.fail("a vocab", "none");
    tokens.entries.reserve(vocab.size() + 1024);
    if (type != "Unigram") {
        vocab.members([&](std::string_view key, Value id) { tokens.put(id, id.integer(0, max_id), key); });
        return;
    }
    std::int64_t id = 0;
    vocab.elements([&](Value entry) {
        int i = 0;
        std::string_view spelling;
        double score = 0;
        entry.elements([&](Value v) {
            if (i == 0) spelling = v.string();
            if (i == 1) score = v.number();
            i++;
        });
        if (i != 2) entry.fail("a token and its score", std::to_string(i) + " elements");
        tokens.put(entry, id++, spelling, score);
    });
}

std::vector<AddedToken> read_added(Value list, Collected& tokens) {
    std::vector<AddedToken> added;
    if (list.is_null()) return added;
    list.elements([&](Value v) {
        AddedToken token = added_token_from_json(v, static_cast<TokenId>(v["id"].integer(0, max_id)));
        tokens.put(v["id"], token.id, v["content"].string());
        added.push_back(std::move(token));
    });
    return added;
}

[[noreturn]] void fail_merge(Value list, std::size_t index, const char* expected) {
    std::size_t i = 0;
    list.elements([&](Value v) {
        if (i++ != index) return;
        std::string got;
        if (v.is(Json::Kind::string))
            got = v.string();
        else
            v.elements([&](Value part) { got += (got.empty() ? "" : " ") + std::string(part.string()); });
        v.fail(expected, "'" + got + "'");
    });
    list.fail(expected, "nothing");
}

void add_merges(Value list, MergeReader& reader) {
    list.elements([&](Value v) {
        if (v.is(Json::Kind::string)) {
            const std::string_view line = v.string();
            const std::size_t space = line.find(' ');
            if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
                line.find(' ', space + 1) != std::string_view::npos)
                v.fail("two tokens with a space between", "'" + std::string(line) + "'");
            reader.add(line.substr(0, space), line.substr(space + 1));
            return;
        }
        std::string_view left, right;
        if (!v.is_pair(left, right)) {
            v.elements([](Value part) { part.string(); });
            v.fail("two tokens", std::to_string(v.size()));
        }
        reader.add(left, right);
    });
}

TokenId named_token(Value value, const Vocabulary& vocabulary) {
    if (value.is_null()) return -1;
    const TokenId id = vocabulary.find(value.string());
    if (id < 0) value.fail("a token of the vocabulary", "'" + std::string(value.string()) + "'");
    return id;
}

void read_model(Value model, std::string_view type, bool byte_level, Parts& parts) {
    Vocabulary& vocabulary = *parts.vocabulary;
    auto flag = [&](std::string_view key) { return !model[key].is_null() && model[key].boolean(); };
    auto text = [&](std::string_view key) {
        return model[key].is_null() ? std::string() : std::string(model[key].string());
    };
    TokenId unknown = -1;
    if (type == "BPE") {
        if (Value d = model["dropout"]; !d.is_null() && d.number() != 0) d.fail("no dropout", "some");
        BpeOptions options;
        options.byte_level = byte_level;
        options.ignore_merges = flag("ignore_merges");
        options.byte_fallback = flag("byte_fallback");
        options.fuse_unknown = flag("fuse_unk");
        options.continuing_prefix = text("continuing_subword_prefix");
        options.end_suffix = text("end_of_word_suffix");
        options.unknown = unknown = named_token(model["unk_token"], vocabulary);
        parts.kind = "bpe";
        const Value merges = model["merges"];
        MergeReader reader(
            vocabulary, merges.size(), options.continuing_prefix,
            [&](std::size_t index, const char* expected) { fail_merge(merges, index, expected); });
        if (!merges.is_null()) add_merges(merges, reader);
        parts.model = std::make_unique<BpeModel>(vocabulary, reader.take(), options);
    } else if (type == "WordPiece") {
        WordPieceOptions options;
        options.unknown = unknown = named_token(model["unk_token"], vocabulary);
        if (!model["continuing_subword_prefix"].is_null())
            options.continuing_prefix = text("continuing_subword_prefix");
        options.max_characters =
            model["max_input_chars_per_word"].is_null()
                ? 100
                : static_cast<std::size_t>(model["max_input_chars_per_word"].integer(0, INT32_MAX));
        parts.kind = "wordpiece";
        parts.model = std::make_unique<WordPieceModel>(vocabulary, options);
    } else {
        UnigramOptions options;
        if (Value id = model["unk_id"]; !id.is_null())
            options.unknown = unknown = static_cast<TokenId>(id.integer(0, vocabulary.size() - 1));
        options.byte_fallback = flag("byte_fallback");
        parts.kind = "unigram";
        parts.scores = true;
        if (unknown >= 0) vocabulary.set_type(unknown, TokenType::unknown);
        parts.model = std::make_unique<UnigramModel>(vocabulary, options);
    }
    if (unknown >= 0) {
        parts.special.unknown = unknown;
        vocabulary.set_type(unknown, TokenType::unknown);
    }
}

/// A tokenizer.json does not say which tokens begin and end a text; these are the spellings in use.
void guess_roles(Parts& parts) {
    auto first_of = [&](std::initializer_list<std::string_view> spellings) {
        std::optional<TokenId> found;
        for (std::string_view s : spellings)
            if (TokenId id = parts.vocabulary->find(s);
                id >= 0 && !found && parts.vocabulary->type(id) == TokenType::control)
                found = id;
        return found;
    };
    SpecialIds& s = parts.special;
    s.eos = first_of(
        {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|im_end|>", "<｜end▁of▁sentence｜>"});
    s.bos = parts.prefix.empty()
                ? first_of({"<|begin_of_text|>", "<s>", "<bos>", "<|endoftext|>", "<｜begin▁of▁sentence｜>"})
                : std::optional(parts.prefix[0]);
    s.cls = first_of({"[CLS]"});
    s.separator = first_of({"[SEP]"});
    s.padding = first_of({"[PAD]", "<pad>", "<|pad|>"});
    s.mask = first_of({"[MASK]", "<mask>"});
}

/// A BPE over characters with byte fallback and marks for spaces is SentencePiece's, exported: the merges'
/// order is that of the scores (earlier is higher; characters come after all merges), which is how GGUF keeps
/// it.
void use_scores(Parts& parts) {
    const auto& bpe = static_cast<const BpeModel&>(*parts.model);
    const bool marks =
        std::any_of(parts.normalizer.steps.begin(), parts.normalizer.steps.end(), [](const auto& step) {
            return step.kind == NormalizerStep::Kind::replace && step.pattern == " " &&
                   step.content == space_mark;
        });
    if (bpe.options().byte_level || !bpe.options().byte_fallback || !marks ||
        !parts.pre_tokenizer.steps.empty())
        return;
    Vocabulary& vocabulary = *parts.vocabulary;
    bpe.merges().each([&](TokenId, TokenId, std::uint32_t rank, TokenId joined) {
        const double score = -static_cast<double>(rank + 1);
        if (vocabulary.score(joined) == 0 || vocabulary.score(joined) < score)
            vocabulary.set_score(joined, score);
    });
    double next = -static_cast<double>(bpe.merges().size() + 1);
    for (TokenId id = 0; id < vocabulary.size(); id++)
        if (vocabulary.type(id) == TokenType::normal && vocabulary.score(id) == 0)
            vocabulary.set_score(id, next--);
    parts.kind = "spm";
    parts.scores = true;
}

/// Characters and bytes are written as a BPE without merges over the text as it stands; read as what they
/// are, they have names in GGUF.
void use_plain(Parts& parts) {
    const BpeOptions& o = static_cast<const BpeModel&>(*parts.model).options();
    const Vocabulary& v = *parts.vocabulary;
    if (static_cast<const BpeModel&>(*parts.model).merges().size() > 0 || o.byte_level || o.fuse_unknown ||
        !(o.continuing_prefix + o.end_suffix).empty() || !parts.normalizer.empty() ||
        !parts.pre_tokenizer.steps.empty() || parts.decoder.kind != Decoder::Kind::plain)
        return;
    bool characters = !o.byte_fallback, bytes = o.byte_fallback && v.size() == 256, some = false;
    for (TokenId id = 0; id < v.size(); id++) {
        bytes &= v.type(id) == TokenType::byte;
        if (v.type(id) != TokenType::normal) continue;
        const std::string_view s = v.spelling(id);
        const Char c = decode_utf8(s.data(), s.data() + s.size());
        characters &= !s.empty() && c.valid && c.size == s.size();
        some = true;
    }
    if (bytes) {
        parts.kind = "byte";
        parts.model = std::make_unique<ByteModel>(v);
    } else if (characters && some) {
        parts.kind = "char";
        parts.model = std::make_unique<CharModel>(v, o.unknown);
    }
}

std::string_view type_of(Value model) {
    if (!model["type"].is_null()) return model["type"].string();
    if (!model["merges"].is_null()) return "BPE";
    return model["vocab"].is(Json::Kind::array) ? "Unigram" : "WordPiece";
}

}  // namespace

AddedToken added_token_from_json(Value value, TokenId id) {
    AddedToken token;
    token.id = id;
    token.content = value["content"].string();
    auto flag = [&](std::string_view key, bool otherwise) {
        return value[key].is_null() ? otherwise : value[key].boolean();
    };
    token.special = flag("special", false);
    token.single_word = flag("single_word", false);
    token.lstrip = flag("lstrip", false);
    token.rstrip = flag("rstrip", false);
    token.normalized = flag("normalized", !token.special);
    return token;
}

TokenizerPtr tokenizer_from_json(std::string_view text, const std::string& file,
                                 const TokenizerHints& hints) {
    const Json json(text, file);
    const Value root = json.root(), model = root["model"];
    if (model.is_null()) fail_input(file, "model", "an object", "nothing", "this is no tokenizer.json");
    const std::string_view type = type_of(model);
    if (type != "BPE" && type != "WordPiece" && type != "Unigram")
        fail_input(file, "model.type", "BPE, WordPiece or Unigram", "'" + std::string(type) + "'");
    Parts parts;
    bool byte_level = false;
    parts.normalizer = normalizer_from_json(root["normalizer"], byte_level);
    parts.pre_tokenizer = pre_tokenizer_from_json(root["pre_tokenizer"], byte_level);
    parts.decoder = decoder_from_json(root["decoder"]);
    Collected tokens;
    tokens.listed = model["vocab"].size() + root["added_tokens"].size();
    read_vocabulary(model, type, tokens);
    parts.added = read_added(root["added_tokens"], tokens);
    std::size_t bytes = 0;
    for (const auto& entry : tokens.entries) bytes += entry.spelling.size();
    parts.vocabulary->reserve(tokens.entries.size(), bytes);
    const bool fallback = !model["byte_fallback"].is_null() && model["byte_fallback"].boolean();
    for (std::size_t id = 0; id < tokens.entries.size(); id++) {
        const auto& entry = tokens.entries[id];
        if (!entry.there) {
            parts.vocabulary->add("<|unused_" + std::to_string(id) + "|>", TokenType::unused);
            continue;
        }
        const bool byte = fallback && byte_of_spelling(entry.spelling) >= 0;
        if (TokenId other = parts.vocabulary->add(entry.spelling, byte ? TokenType::byte : TokenType::normal,
                                                  entry.score);
            other >= 0)
            fail_input(file, "added_tokens", "one id for '" + std::string(entry.spelling) + "'",
                       std::to_string(other) + " and " + std::to_string(id));
    }
    hints.fill(*parts.vocabulary, file);
    for (const AddedToken& token : parts.added)
        parts.vocabulary->set_type(token.id, token.special ? TokenType::control : TokenType::user_defined);
    read_model(model, type, byte_level, parts);
    post_processor_from_json(root["post_processor"], parts);
    guess_roles(parts);
    hints.apply(parts);
    if (type == "BPE") use_scores(parts);
    if (type == "BPE") use_plain(parts);
    if (byte_level && type == "BPE") {
        const auto& options = static_cast<const BpeModel&>(*parts.model).options();
        parts.ggml_pre = std::string(pre_name_of(parts.pre_tokenizer, options.ignore_merges));
    }
    return std::make_shared<Pipeline>(std::move(parts));
}

}  // namespace linnet
