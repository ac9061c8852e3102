#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/terminal.h"
#include "text/encode/bpe.h"
#include "text/encode/plain.h"
#include "text/encode/unigram.h"
#include "text/encode/wordpiece.h"
#include "text/files/tokenizer_json.h"

namespace linnet {
namespace {

/// Spellings as Hugging Face has them: GGUF's WordPiece writes "▁word" and "piece", which is "word" and
/// "##piece".
std::vector<std::string> spellings(const Parts& parts) {
    std::vector<std::string> out;
    const Vocabulary& v = *parts.vocabulary;
    for (TokenId id = 0; id < v.size(); id++) {
        std::string s(v.spelling(id));
        const bool piece = v.type(id) == TokenType::normal || v.type(id) == TokenType::unused;
        if (parts.decoder.word_mark && piece)
            s = s.starts_with(space_mark) && s.size() > space_mark.size() ? s.substr(space_mark.size())
                                                                          : "##" + s;
        if (valid_utf8_prefix(s) != s.size())
            fail_input("tokenizer", "token " + std::to_string(id), "UTF-8, as tokenizer.json holds text",
                       linnet::quoted(std::string_view(s)));
        out.push_back(std::move(s));
    }
    return out;
}

std::string vocabulary_object(const std::vector<std::string>& tokens) {
    std::string out = "{";
    for (std::size_t id = 0; id < tokens.size(); id++)
        out += (id ? ",\n      " : "\n      ") + json_quoted(tokens[id]) + ": " + std::to_string(id);
    return out + "\n    }";
}

std::string bpe_model(const BpeModel& bpe, const std::vector<std::string>& tokens, bool has_unknown) {
    const BpeOptions& o = bpe.options();
    auto optional = [](const std::string& s) { return s.empty() ? std::string("null") : json_quoted(s); };
    std::string out = R"({
    "type": "BPE",
    "dropout": null,
    "unk_token": )";
    out += has_unknown ? json_quoted(tokens[static_cast<std::size_t>(o.unknown)]) : "null";
    out += ",\n    \"continuing_subword_prefix\": " + optional(o.continuing_prefix);
    out += ",\n    \"end_of_word_suffix\": " + optional(o.end_suffix);
    out += ",\n    \"fuse_unk\": " + boolean(o.fuse_unknown) +
           ",\n    \"byte_fallback\": " + boolean(o.byte_fallback);
    out += ",\n    \"ignore_merges\": " + boolean(o.ignore_merges);
    out += ",\n    \"vocab\": " + vocabulary_object(tokens) + ",\n    \"merges\": [";
    const TokenId size = static_cast<TokenId>(tokens.size());
    const char* separator = "\n      [";
    std::string last;
    std::uint32_t rank = 0;
    std::size_t ties = 0;
    for (const MergeTable::Ranked& merge : bpe.merges().in_order()) {
        if (merge.left >= size || merge.right >= size) continue;
        const std::string &left = tokens[static_cast<std::size_t>(merge.left)],
                          &right = tokens[static_cast<std::size_t>(merge.right)];
        out += separator + json_quoted(left) + ", " + json_quoted(right) + "]";
        separator = ",\n      [";
        if (merge.rank == rank && !last.empty() && left + right != last) ties++;
        rank = merge.rank, last = left + right;
    }
    if (ties > 0)
        note("tokenizer.json has an order of merges where this vocabulary has " + std::to_string(ties) +
             " of equal scores, the leftmost of which is first: some texts become other tokens");
    return out + "\n    ]\n  }";
}

std::string unigram_model(const UnigramModel& model, const Parts& parts,
                          const std::vector<std::string>& tokens) {
    std::string out = "{\n    \"type\": \"Unigram\",\n    \"unk_id\": ";
    out += model.options().unknown < 0 ? "null" : std::to_string(model.options().unknown);
    out += ",\n    \"byte_fallback\": " + boolean(model.options().byte_fallback) + ",\n    \"vocab\": [";
    for (std::size_t id = 0; id < tokens.size(); id++) {
        char number[40];
        auto end = std::to_chars(number, number + sizeof number,
                                 static_cast<double>(parts.vocabulary->score(static_cast<TokenId>(id))))
                       .ptr;
        out += (id ? ",\n      [" : "\n      [") + json_quoted(tokens[id]) + ", " + std::string(number, end) +
               "]";
    }
    return out + "\n    ]\n  }";
}

std::string model_object(const Parts& parts, const std::vector<std::string>& tokens) {
    if (const auto* bpe = dynamic_cast<const BpeModel*>(parts.model.get()))
        return bpe_model(*bpe, tokens, bpe->options().unknown >= 0);
    if (const auto* unigram = dynamic_cast<const UnigramModel*>(parts.model.get()))
        return unigram_model(*unigram, parts, tokens);
    if (const auto* pieces = dynamic_cast<const WordPieceModel*>(parts.model.get())) {
        const WordPieceOptions& o = pieces->options();
        return "{\n    \"type\": \"WordPiece\",\n    \"unk_token\": " +
               (o.unknown < 0 ? std::string("\"[UNK]\"")
                              : json_quoted(tokens[static_cast<std::size_t>(o.unknown)])) +
               ",\n    \"continuing_subword_prefix\": " + json_quoted(o.continuing_prefix) +
               ",\n    \"max_input_chars_per_word\": " +
               std::to_string(o.max_characters ? o.max_characters : 1000000) +
               ",\n    \"vocab\": " + vocabulary_object(tokens) + "\n  }";
    }
    // Characters and bytes: BPE without merges; bytes are what its fallback makes of characters that are no
    // token.
    BpeOptions options;
    options.byte_level = false;
    options.byte_fallback = parts.kind == "byte";
    if (parts.kind == "char") options.unknown = parts.special.unknown.value_or(-1);
    return bpe_model(BpeModel(*parts.vocabulary, MergeTable(), options), tokens, options.unknown >= 0);
}

std::string post_processor(const Parts& parts, const std::vector<std::string>& tokens) {
    if (parts.prefix.empty() && parts.suffix.empty()) return "null";
    std::string single, pair, special;
    std::vector<TokenId> seen;
    auto put = [&](TokenId id) {
        const std::string name = json_quoted(tokens[static_cast<std::size_t>(id)]);
        const std::string item = R"({"SpecialToken": {"id": )" + name + ", \"type_id\": ";
        single += (single.empty() ? "" : ", ") + item + "0}}";
        pair += (pair.empty() ? "" : ", ") + item + "0}}";
        if (std::find(seen.begin(), seen.end(), id) != seen.end()) return;
        seen.push_back(id);
        special += (special.empty() ? "" : ", ") + name + ": {\"id\": " + name + ", \"ids\": [" +
                   std::to_string(id) + "], \"tokens\": [" + name + "]}";
    };
    for (TokenId id : parts.prefix) put(id);
    const std::string text = R"({"Sequence": {"id": "A", "type_id": 0}})",
                      second = R"({"Sequence": {"id": "B", "type_id": 1}})";
    single += (single.empty() ? "" : ", ") + text;
    pair += (pair.empty() ? "" : ", ") + text + ", " + second;
    for (TokenId id : parts.suffix) put(id);
    return "{\"type\": \"TemplateProcessing\", \"single\": [" + single + "], \"pair\": [" + pair +
           "], \"special_tokens\": {" + special + "}}";
}

}  // namespace

std::string tokenizer_to_json(const Pipeline& tokenizer) {
    const Parts& parts = tokenizer.parts();
    if (dynamic_cast<const LongestModel*>(parts.model.get()))
        fail_input("tokenizer", "tokenizer.json", "a tokenizer that it can express",
                   "the longest token at each place (" + parts.kind + ")", "GGUF can hold it");
    if (std::ranges::any_of(parts.added, &AddedToken::joins))
        note(
            "tokenizer.json cannot say that added tokens stand within a text: a mark for a space goes behind "
            "them");
    const std::vector<std::string> tokens = spellings(parts);
    const auto* bpe = dynamic_cast<const BpeModel*>(parts.model.get());
    std::string out =
        "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null,\n  \"added_tokens\": [";
    for (std::size_t i = 0; i < parts.added.size(); i++) {
        const AddedToken& a = parts.added[i];
        out += (i ? ",\n    {" : "\n    {") + std::string("\"id\": ") + std::to_string(a.id) +
               ", \"content\": " + json_quoted(a.content) + ", \"single_word\": " + boolean(a.single_word) +
               ", \"lstrip\": " + boolean(a.lstrip) + ", \"rstrip\": " + boolean(a.rstrip) +
               ", \"normalized\": " + boolean(a.normalized) + ", \"special\": " + boolean(a.special) + "}";
    }
    out += parts.added.empty() ? "]" : "\n  ]";
    out += ",\n  \"normalizer\": " + normalizer_to_json(parts.normalizer);
    out += ",\n  \"pre_tokenizer\": " +
           pre_tokenizer_to_json(parts.pre_tokenizer, bpe && bpe->options().byte_level);
    out += ",\n  \"post_processor\": " + post_processor(parts, tokens);
    out += ",\n  \"decoder\": " + decoder_to_json(parts.decoder);
    out += ",\n  \"model\": " + model_object(parts, tokens);
    return out + "\n}\n";
}

}  // namespace linnet
