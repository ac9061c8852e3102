// tokenizer.json's models: where a reading that is close to Hugging Face's would give other ids.
#include <doctest/doctest.h>

#include "support.h"
#include "text/files/tokenizer_json.h"

using namespace linnet;

namespace {

using Ids = std::vector<TokenId>;

TokenizerPtr read(const std::string& json) {
    return tokenizer_from_json(json, "f.json");
}

/// The ids of a text, which are the same once the tokenizer was written and read again.
Ids ids_of(const TokenizerPtr& tokenizer, std::string_view text) {
    const Ids ids = tokenizer->encode(text);
    CHECK(read(tokenizer_to_json(dynamic_cast<const Pipeline&>(*tokenizer)))->encode(text) == ids);
    return ids;
}

}  // namespace

TEST_CASE("unigram scores of tokenizer.json keep the digits that decide between nearly equal ways") {
    // The sums of "a ! !!" and "a !! !" differ by one unit in the last place; of floats they are equal, and
    // the first one found would stay.
    const TokenizerPtr t = read(
        R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["?", 0], ["!", -5.868], ["!!", -7.896], ["a", -2.17]]}})");
    CHECK(ids_of(t, "a!!!") == Ids{3, 2, 1});
}

TEST_CASE("byte-level BPE marks the bytes of a word that its ends stand at") {
    const auto clip = [](const std::string& more, const std::string& vocab, const std::string& merges) {
        return read(
            R"({"model": {"type": "BPE", "unk_token": "?", )" + more + R"(, "vocab": {"?": 0, )" + vocab +
            R"(}, "merges": [)" + merges +
            R"(]}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
            {"type": "ByteLevel", "add_prefix_space": false}]}, "decoder": {"type": "ByteLevel"}})");
    };
    const TokenizerPtr ends =
        clip(R"("end_of_word_suffix": "</w>")",
             R"("a": 1, "b": 2, "a</w>": 3, "b</w>": 4, "ab</w>": 5, "ab": 6, "\u00c3": 7, "\u00a9</w>": 8)",
             R"("a b</w>", "a b")");
    CHECK(ids_of(ends, "ab a b") == Ids{5, 3, 4});
    CHECK(ids_of(ends, "abab") == Ids{6, 5});
    CHECK(ids_of(ends, "b\xC3\xA9") == Ids{2, 7, 8});
    CHECK(ids_of(ends,
                 "\xC3\xA9"
                 "a") == Ids{7, 0, 3});  // the second byte has a token at a word's end alone
    const TokenizerPtr goes_on = clip(R"("continuing_subword_prefix": "+")",
                                      R"("a": 1, "b": 2, "+a": 3, "+b": 4, "ab": 5)", R"("a +b")");
    CHECK(ids_of(goes_on, "ab ba") == Ids{5, 2, 3});
}

TEST_CASE("WordPiece: a word that begins with the mark of continuations may begin with such a token") {
    const TokenizerPtr t = read(
        R"({"model": {"type": "WordPiece", "unk_token": "?", "vocab": {"?": 0, "##a": 1, "b": 2, "##b": 3, "##": 4}}})");
    CHECK(ids_of(t, "##ab") == Ids{1, 3});
    CHECK(ids_of(t, "##") == Ids{4});
    CHECK(ids_of(t, "ba") == Ids{2, 1});
    CHECK(ids_of(t, "a") == Ids{0});
}

TEST_CASE("ids that tokenizer.json leaves out are unused tokens") {
    const TokenizerPtr t = read(
        R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 2}, "merges": []},
            "added_tokens": [{"id": 5, "content": "<s>", "special": true}]})");
    CHECK(t->size() == 6);
    CHECK(t->piece(1) == "<|unused_1|>");
    CHECK(t->piece(4) == "<|unused_4|>");
    CHECK(!t->is_control(4));
    CHECK(t->is_control(5));
    EncodeOptions special;
    special.parse_special = true;
    CHECK(t->encode("ab<s>", special) == Ids{0, 2, 5});
    const std::string far = R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []},
        "added_tokens": [{"id": )";
    CHECK(read(far + R"(65537, "content": "b"}]})")->size() == 65538);
    CHECK(test::refusal([&] { read(far + R"(65538, "content": "b"}]})"); }) ==
          "f.json: added_tokens[0].id: expected an id below 65538, as there are but 2 tokens, got 65538");
}
