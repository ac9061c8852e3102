// Vocabularies made to cost time or memory without bound are refused, or cost no more than their size.
#include <doctest/doctest.h>

#include "base/error.h"
#include "formats/gguf.h"
#include "support.h"
#include "text/files/foreign.h"
#include "text/files/tokenizer_json.h"

using namespace linnet;
using linnet::test::has;

namespace {

/// The error of loading the file and encoding the text with it, or "accepted".
std::string message_of(const std::string& json, std::string_view text = "some text") {
    return test::refusal([&] { tokenizer_from_json(json, "f.json")->encode(text); });
}

std::string with(const std::string& rest, const std::string& vocab = R"({"?": 0, "a": 1})") {
    return R"({"model": {"type": "BPE", "unk_token": "?", "vocab": )" + vocab + R"(, "merges": []}, )" +
           rest + "}";
}

std::string split_by(const std::string& pattern) {
    return with(R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": ")" + pattern +
                R"("}, "behavior": "Isolated"})");
}

}  // namespace

TEST_CASE(
    "expressions whose matches go backwards or end within a character, and PCRE2's verbs, are refused by "
    "name") {
    for (const char* pattern : {R"((?<=a\\Kb))", R"(a\\K)", R"((?<=(?1))(a\\K))"})
        CHECK(has(message_of(split_by(pattern), "aaaa"), "a regular expression without '\\K'"));
    CHECK(has(message_of(split_by(R"(\\Ga)"), "aaaa"), "a regular expression without '\\G'"));
    CHECK(has(message_of(split_by(R"(a\\C)"), "aaaa"), "a regular expression without '\\C'"));
    for (const char* pattern : {"(*NO_JIT)a", "(*LIMIT_MATCH=1)a", "a(*ACCEPT)"})
        CHECK(has(message_of(split_by(pattern), "aaaa"), "a regular expression without '(*'"));
    CHECK(message_of(split_by("[(*]+"), "a(*") == "accepted");
    CHECK(message_of(split_by(R"(\\(*)"), "a((") == "accepted");
    CHECK(has(message_of(split_by("(a|aa)+$"), std::string(60, 'a') + "!"), "backtracks without end"));
}

TEST_CASE("a chain of replacements, and what is put before a text, may not make it grow without bound") {
    std::string chain;
    for (int i = 0; i < 40; i++)
        chain +=
            std::string(i ? "," : "") + R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aa"})";
    const std::string doubled = with(R"("normalizer": {"type": "Sequence", "normalizers": [)" + chain + "]}");
    CHECK(has(message_of(doubled, "aaaa"), "at most 4224 bytes from this text"));
    CHECK(message_of(doubled, "b") == "accepted");
    const std::string before =
        R"("normalizer": {"type": "Prepend", "prepend": ")" + std::string(9000, 'a') + "\"}";
    CHECK(has(message_of(with(before), "a"), "make it grow"));
    const std::string mark = R"("pre_tokenizer": {"type": "Metaspace", "replacement": ")";
    CHECK(has(message_of(with(mark + std::string(5000, 'a') + "\"}")),
              "pre_tokenizer.replacement: expected one character"));
    CHECK(message_of(with(mark + "\xE2\x96\x81\"}")) == "accepted");
}

TEST_CASE("a text is searched for no string that is longer than tokens may be") {
    for (const std::size_t size : {1024, 1025}) {
        const std::string pattern = std::string(size, 'a') + R"("}, "content": "b"})";
        const std::string said =
            message_of(with(R"("normalizer": {"type": "Replace", "pattern": {"String": ")" + pattern), "a");
        CAPTURE(said);
        CHECK((size <= 1024
                   ? said == "accepted"
                   : has(said, "normalizer.pattern.String: expected a string of at most 1024 bytes")));
    }
}

TEST_CASE("tokens around a text are bounded") {
    std::string items, ids;
    for (int i = 0; i < 60; i++) {
        items += std::string(i ? "," : "") + R"({"SpecialToken": {"id": "x", "type_id": 0}})";
        ids += i ? ",1" : "1";
    }
    const std::string many = R"("post_processor": {"type": "TemplateProcessing", "single": [)" + items +
                             R"(], "pair": [], "special_tokens": {"x": {"id": "x", "ids": [)" + ids +
                             R"(], "tokens": []}}})";
    CHECK(has(message_of(with(many)), "at most 1024 tokens around a text"));
}

TEST_CASE("an id far beyond the number of tokens is refused before room is made for it") {
    CHECK(has(message_of(with(R"("added_tokens": [])", R"({"?": 0, "a": 16777215})")),
              "model.vocab.a: expected an id below 65538, as there are but 2 tokens"));
    CHECK(has(message_of(with(R"("added_tokens": [{"id": 16777215, "content": "b"}])")),
              "added_tokens[0].id: expected an id below 65539, as there are but 3 tokens"));
}

TEST_CASE("tokens that are searched for at every place of a text are of bounded length") {
    const std::string longest(1024, 'a'), longer(1025, 'a');
    auto added = [&](const std::string& token) {
        return with(R"("added_tokens": [{"id": 2, "content": ")" + token + R"(", "special": true}])");
    };
    CHECK(message_of(added(longest)) == "accepted");
    CHECK(has(message_of(added(longer)), "tokens of at most 1024 bytes"));
    for (const char* kind : {"WordPiece", "Unigram"}) {
        const bool is_unigram = std::string(kind) == "Unigram";
        auto model = [&](const std::string& token) {
            const std::string vocab =
                is_unigram ? R"([["?", 0], [")" + token + R"(", -1]])" : R"({"?": 0, ")" + token + R"(": 1})";
            return std::string(R"({"model": {"type": ")") + kind +
                   R"(", "unk_id": 0, "unk_token": "?", "vocab": )" + vocab + "}}";
        };
        CHECK(message_of(model(longest)) == "accepted");
        CHECK(has(message_of(model(longer)), "tokens of at most 1024 bytes"));
    }
    // A byte-level model does not search, and takes any.
    CHECK(message_of(with(R"("pre_tokenizer": {"type": "ByteLevel"})",
                          R"({"?": 0, ")" + longer + R"(": 1})")) == "accepted");
}

TEST_CASE("a GGUF with one very long token is refused at once, whatever the token's type") {
    test::Scratch scratch;
    for (int type : {1, 3, 4}) {
        GgufWriter writer;
        const std::string giant(std::size_t{4} << 20, 'a');
        const std::vector<std::int32_t> types{1, type};
        const std::vector<float> scores{0, -1};
        writer.add("general.architecture", "llama");
        writer.add("tokenizer.ggml.model", "llama");
        writer.add("tokenizer.ggml.tokens", 2,
                   [&](std::size_t i) -> std::string_view { return i ? std::string_view(giant) : "a"; });
        writer.add("tokenizer.ggml.scores", std::span<const float>(scores));
        writer.add("tokenizer.ggml.token_type", std::span<const std::int32_t>(types));
        test::write_text(scratch / "t.gguf", writer.header());
        CHECK_THROWS_WITH(load_tokenizer(scratch / "t.gguf"),
                          doctest::Contains("tokens of at most 1024 bytes"));
    }
}

TEST_CASE("words at marks, and WordPiece's clean-up, take a text as long as it is") {
    // Each was quadratic: 2^18 of them took minutes.
    const std::string metaspace = with(R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Punctuation"}, {"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"}]})");
    std::string text;
    for (int i = 0; i < 1 << 18; i++) text += ".a";
    CHECK(tokenizer_from_json(metaspace, "f")->encode(text).size() == text.size());
    std::string token = "a";
    for (int i = 0; i < 300; i++) token += " .";
    const std::string wordpiece =
        R"({"model": {"type": "WordPiece", "unk_token": "?", "vocab": {"?": 0, ")" + token +
        R"(": 1}}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true}})";
    CHECK(tokenizer_from_json(wordpiece, "f")->decode(std::vector<TokenId>{1}) ==
          "a" + std::string(300, '.'));
}
