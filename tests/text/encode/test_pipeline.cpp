// Tokenizers as a whole: added tokens and what they take of the text beside them, and what no vocabulary can
// do.
#include <doctest/doctest.h>

#include "support.h"
#include "text/files/tokenizer_json.h"
#include "text/train/make.h"

using namespace linnet;

namespace {

using Ids = std::vector<TokenId>;

TokenizerPtr read(const std::string& json) {
    return tokenizer_from_json(json, "f.json");
}

}  // namespace

TEST_CASE("an added token takes the spaces beside it, and one that is a whole word stands in none") {
    const TokenizerPtr t = read(
        R"({"model": {"type": "BPE", "unk_token": "?", "vocab": {"?": 0, "a": 1, "b": 2, " ": 3, "\u00e9": 4}, "merges": []},
            "added_tokens": [{"id": 5, "content": "<l>", "lstrip": true, "normalized": false},
                             {"id": 6, "content": "<r>", "rstrip": true, "normalized": false},
                             {"id": 7, "content": "w", "single_word": true, "normalized": false},
                             {"id": 8, "content": "<s>", "special": true}]})");
    const std::string wide = "\xE3\x80\x80", e_acute = "\xC3\xA9";
    const std::vector<std::pair<std::string, Ids>> cases = {
        {"a  <l>b", {1, 5, 2}},     {"  <l> ", {5, 3}},       {wide + "<l>", {5}},    {"<r>  b", {6, 2}},
        {"<r>" + wide + " ", {6}},  {" <r>b", {3, 6, 2}},     {"<r> <l>", {6, 5}},    {"w", {7}},
        {"a w b", {1, 3, 7, 3, 2}}, {"aw", {1, 0}},           {"wa", {0, 1}},         {e_acute + "w", {4, 0}},
        {"w" + e_acute, {0, 4}},    {"\xFFw\xFF", {0, 7, 0}}, {"ww w", {0, 0, 3, 7}}, {"<s>", {0, 0, 0}},
    };
    for (const auto& [text, ids] : cases) {
        const auto& of_text = text;
        CAPTURE(of_text);
        CHECK(t->encode(text) == ids);
    }
    EncodeOptions special;
    special.parse_special = true;
    CHECK(t->encode("a<s>w", special) == Ids{1, 8, 7});
}

TEST_CASE("an added token of normalized text is found behind the normalizer, also in the middle of a text") {
    const TokenizerPtr t = read(
        R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, "normalizer": {"type": "Lowercase"},
            "added_tokens": [{"id": 2, "content": "X", "normalized": true}]})");
    CHECK(t->encode("AxB") == Ids{0, 2, 1});
    CHECK(t->encode("Xx") == Ids{2, 2});
    CHECK(t->encode("").empty());
}

TEST_CASE("without a normalizer, added tokens of normalized text are found in what the others leave") {
    const TokenizerPtr t = read(
        R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2}, "merges": []},
            "added_tokens": [{"id": 3, "content": "ab", "normalized": true},
                             {"id": 4, "content": "bc", "normalized": false},
                             {"id": 5, "content": "cb", "normalized": true, "special": true}]})");
    for (const auto& [text, ids] : std::vector<std::pair<std::string, Ids>>{{"abc", {0, 4}},
                                                                            {"ab", {3}},
                                                                            {"abab", {3, 3}},
                                                                            {"abbcab", {3, 4, 3}},
                                                                            {"cb", {2, 1}},
                                                                            {"cbc", {2, 4}}}) {
        const auto& of_text = text;
        CAPTURE(of_text);
        CHECK(t->encode(text) == ids);
    }
    EncodeOptions special;
    special.parse_special = true;
    CHECK(t->encode("cbcbcab", special) == Ids{2, 4, 4, 3});
    CHECK(t->encode("bccb", special) == Ids{4, 5});
    const PlainStretches plain{{{2, 4}}, {}};
    special.plain = &plain;
    CHECK(t->encode("bccbacb", special) == Ids{4, 2, 1, 0, 5});
    // A long text is cut into blocks, none of them within a token.
    std::string text;
    Ids ids;
    for (int i = 0; i < 200'000; i++) text += "abc", ids.insert(ids.end(), {0, 4});
    CHECK(t->encode(text) == ids);
}

TEST_CASE("ids that are none, and texts that a vocabulary cannot spell, are refused by name") {
    const TokenizerPtr letters = train_tokenizer("char", "ab", 0, 1);
    for (TokenId id : {-1, letters->size()}) {
        CHECK(letters->piece(id).empty());
        CHECK(!letters->is_control(id));
        CHECK(test::refusal([&] { letters->decode(Ids{id}); }) ==
              "tokens: decode: expected ids from 0 to 1, got " + std::to_string(id));
    }
    CHECK(test::refusal([&] { letters->encode("a\xFF"); }) == "text: byte 1: expected UTF-8, got <0xFF>");
    const auto pieces = [](const std::string& more) {
        return read(R"({"model": {"type": "WordPiece", "vocab": {"a": 0, "##b": 1, "?": 2})" + more + "}}");
    };
    CHECK(test::refusal([&] { pieces("")->encode("ac"); }) ==
          "text: tokenizer: expected words of the vocabulary, got 'ac'");
    CHECK(pieces(R"(, "unk_token": "?", "max_input_chars_per_word": 3)")->encode("abb") == Ids{0, 1, 1});
    CHECK(pieces(R"(, "unk_token": "?", "max_input_chars_per_word": 3)")->encode("abbb") == Ids{2});
}

TEST_CASE(
    "what cannot be spelled is told by its byte of the whole text, whatever blocks and tokens stand before "
    "it") {
    const TokenizerPtr letters = char_tokenizer("ab ", {"<s>"});
    std::string many;
    for (int i = 0; i < 250'000; i++) many += "ab ";  // several blocks
    const std::string unknown =
        ": expected a character of the vocabulary, got 'c' (a character vocabulary knows only the characters "
        "of "
        "the text that it was made from)";
    for (int threads : {1, 3}) {
        EncodeOptions options;
        options.parse_special = true;
        options.threads = threads;
        const auto line = [&](const std::string& text) {
            return test::refusal([&] { letters->encode(text, options); });
        };
        CHECK(line(many + "\xFF") == "text: byte 750000: expected UTF-8, got <0xFF>");
        CHECK(line(many + "c" + many + "c") == "text: byte 750000" + unknown);
        CHECK(line("<s><s>" + many + "<s>bac") == "text: byte 750011" + unknown);
    }
    const TokenizerPtr normalizes = read(
        R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, "normalizer": {"type": "Lowercase"},
            "added_tokens": [{"id": 2, "content": "<l>", "normalized": false}]})");
    CHECK(test::refusal([&] { normalizes->encode("AB<l>A\xFF"); }) ==
          "text: byte 6: expected UTF-8, got an invalid byte (this vocabulary's normalizer is defined on "
          "characters)");
}
