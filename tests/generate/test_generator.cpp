#include <doctest/doctest.h>

#include "base/error.h"
#include "generate/fakes.h"

using namespace linnet;
using namespace linnet::test;

namespace {

struct Told {
    std::string text;
    std::vector<std::string> pieces;
    std::vector<TokenId> ids;
    Generated result;
};

Told tell(LogitSource& source, const Tokenizer& tokenizer, std::vector<TokenId> prompt,
          GenerateOptions options) {
    Told told;
    options.sampler.temperature = 0;
    told.result =
        generate(source, tokenizer, prompt, options, [&](std::optional<TokenId> id, std::string_view text) {
            if (id) told.ids.push_back(*id);
            told.pieces.emplace_back(text);
            told.text += text;
        });
    return told;
}

GenerateOptions up_to(std::int64_t tokens) {
    GenerateOptions options;
    options.tokens = tokens;
    return options;
}

const std::vector<std::string> letters{"a", "b", "c", "ab", ""};

}  // namespace

TEST_CASE("generate writes as many tokens as asked, each given all before it") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(100, 5, recite({0, 1, 2}));
    Told told = tell(source, tokenizer, {2, 2}, up_to(5));
    CHECK(told.text == "abcab");
    CHECK(told.ids == std::vector<TokenId>{0, 1, 2, 0, 1});
    CHECK(told.result.ids == told.ids);
    CHECK(told.result.end == GenerateEnd::length);
    CHECK(source.held == std::vector<TokenId>{2, 2, 0, 1, 2, 0});  // the last token needs no logits after it
}

TEST_CASE("generate of no tokens reads the prompt and writes nothing") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(100, 5, recite({0}));
    Told told = tell(source, tokenizer, {2}, up_to(0));
    CHECK(told.text.empty());
    CHECK(told.result.end == GenerateEnd::length);
    CHECK(source.held.size() == 1);
}

TEST_CASE("generate ends at an end token, which adds no text, unless told to go on") {
    FakeTokenizer tokenizer(letters);
    tokenizer.end = 4;
    FakeSource source(100, 5, recite({0, 4, 1}));
    Told told = tell(source, tokenizer, {2}, up_to(10));
    CHECK(told.text == "a");
    CHECK(told.result.ids == std::vector<TokenId>{0, 4});
    CHECK(told.result.end == GenerateEnd::end_token);
    GenerateOptions options = up_to(3);
    options.ignore_end = true;
    FakeSource again(100, 5, recite({0, 4, 1}));
    CHECK(tell(again, tokenizer, {2}, options).text == "ab");
}

TEST_CASE("generate ends before a stop string that three tokens spell together") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(100, 5, recite({0, 2, 1, 2, 0, 0}));
    GenerateOptions options = up_to(20);
    options.stops = {"bca", "zzz"};
    Told told = tell(source, tokenizer, {2}, options);
    CHECK(told.text == "ac");
    CHECK(told.result.end == GenerateEnd::stop);
    CHECK(told.result.ids.size() == 5);
}

TEST_CASE("generate lets held-back text go when it turns out to be no stop string, or at the end") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(100, 5, recite({1, 2, 2, 1, 2}));
    GenerateOptions options = up_to(5);
    options.stops = {"bca"};
    Told told = tell(source, tokenizer, {2}, options);
    CHECK(told.text == "bccbc");
    CHECK(told.pieces == std::vector<std::string>{"", "", "bcc", "", "", "bc"});
}

TEST_CASE("generate says that the context is full, after the last token that it has room for") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(4, 5, recite({0, 1, 2}));
    Told told = tell(source, tokenizer, {2, 2}, up_to(100));
    CHECK(told.result.end == GenerateEnd::context);
    CHECK(told.text ==
          "abc");  // two tokens fit beside the prompt; the third is picked from the fourth's logits
    CHECK(source.held.size() == 4);
}

TEST_CASE("generate with slide goes on past a full context, on the newer half and the begin token") {
    FakeTokenizer tokenizer({"a", "b", ""});
    tokenizer.begin = 2;
    FakeSource source(8, 3, recite({0, 1}));
    GenerateOptions options = up_to(30);
    options.slide = true;
    Told told = tell(source, tokenizer, {2, 0}, options);
    CHECK(told.result.ids.size() == 30);
    CHECK(told.text == std::string("abababababababababababababababab").substr(0, 30));
    CHECK(source.rewinds > 0);
    CHECK(source.held.front() == 2);
}

TEST_CASE("generate refuses a prompt longer than the context, and says both numbers") {
    FakeTokenizer tokenizer(letters);
    FakeSource source(4, 5, recite({0}));
    try {
        tell(source, tokenizer, {0, 0, 0, 0, 0}, up_to(1));
        FAIL("expected an Error");
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::input);
        CHECK(std::string(error.what()).find("expected at most 4 tokens, got 5") != std::string::npos);
    }
}

TEST_CASE("a character cut by token borders leaves whole") {
    FakeTokenizer tokenizer({"\xE4", "\xB8", "\xAD", "x"});
    FakeSource source(100, 4, recite({0, 1, 2, 3, 0}));
    Told told = tell(source, tokenizer, {3}, up_to(5));
    CHECK(told.pieces == std::vector<std::string>{"", "", "\xE4\xB8\xAD", "x", "", "\xEF\xBF\xBD"});
}

TEST_CASE("a prompt has the begin token that the vocabulary asks for, and is never empty") {
    FakeTokenizer tokenizer({"a", "\n", "", ""});
    CHECK(encode_prompt(tokenizer, "aa", false) == std::vector<TokenId>{0, 0});
    CHECK(encode_prompt(tokenizer, "", false) == std::vector<TokenId>{1});
    tokenizer.end = 3;
    CHECK(encode_prompt(tokenizer, "", false) == std::vector<TokenId>{3});
    tokenizer.begin = 2;
    CHECK(encode_prompt(tokenizer, "", false) == std::vector<TokenId>{2});
    tokenizer.adds_begin = true;
    CHECK(encode_prompt(tokenizer, "a", false) == std::vector<TokenId>{2, 0});
}
