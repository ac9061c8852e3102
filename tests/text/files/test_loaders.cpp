// Malformed tokenizer files are refused in one line that says where; good ones go round.
#include <doctest/doctest.h>

#include "base/error.h"
#include "base/rng.h"
#include "support.h"
#include "text/files/foreign.h"
#include "text/files/tokenizer_json.h"
#include "text/train/make.h"

using namespace linnet;
using linnet::test::has;

namespace {

std::string message_of(const std::string& json) {
    return test::refusal([&] { tokenizer_from_json(json, "f.json"); });
}

std::string model(const std::string& vocab, const std::string& merges, const std::string& rest = {}) {
    return R"({"model": {"type": "BPE", "vocab": )" + vocab + ", \"merges\": " + merges + "}" + rest + "}";
}

}  // namespace

TEST_CASE("a malformed tokenizer.json is refused, and the message says where") {
    const std::string vocab = R"({"a": 0, "b": 1, "ab": 2})";
    CHECK(message_of(model(vocab, R"(["a b"])")) == "accepted");
    CHECK(message_of(model(vocab, R"([["a", "b"]])")) == "accepted");
    CHECK(has(message_of("{"), "line 1, column 2: expected"));
    CHECK(has(message_of("{}"), "model: expected an object"));
    CHECK(has(message_of("{\"a\":[1,\n2,]}"), "line 2, column 3"));
    CHECK(has(message_of("[1]"), "line 1, column 1: expected an object"));
    CHECK(has(message_of("{\"a\":" + std::string(200, '[') + std::string(200, ']') + "}"),
              "100 levels of nesting"));
    CHECK(has(message_of("{\"a\xFF\": 1}"), "expected UTF-8"));
    CHECK(has(message_of(R"({"model": "\ud800"})"),
              "line 1, column 11: expected a string with JSON's escapes"));
    CHECK(has(message_of(R"({"model": 1e400})"), "column 11: expected a number within a double's range"));
    CHECK(has(message_of(R"({"model": {"a": 1, "a": 2}})"), "model: expected every key once, got 'a' again"));
    CHECK(has(message_of(model(R"({"a": 0, "b": 0})", "[]")), "an id of its own"));
    CHECK(has(message_of(model(R"({"a": 0, "b": 200000})", "[]")),
              "model.vocab.b: expected an id below 65538"));
    CHECK(
        has(message_of(model(R"({"a": 0, "b": 99999999999})", "[]")), "model.vocab.b: expected an integer"));
    CHECK(has(message_of(model(R"({"a": 0, "b": -1})", "[]")), "model.vocab.b"));
    CHECK(has(message_of(model(vocab, R"(["a c"])")),
              "model.merges[0]: expected two tokens of the vocabulary"));
    CHECK(has(message_of(model(vocab, R"(["b a"])")), "joined spelling is a token"));
    CHECK(has(message_of(model(vocab, R"(["ab"])")), "two tokens with a space between"));
    CHECK(
        has(message_of(model(vocab, "[]", R"(, "pre_tokenizer": {"type": "Magic"})")), "pre_tokenizer.type"));
    CHECK(has(message_of(model(vocab, "[]", R"(, "normalizer": {"type": "NFX"})")), "normalizer.type"));
    CHECK(has(message_of(model(vocab, "[]", R"(, "decoder": {"type": "X"})")), "decoder.type"));
    CHECK(has(message_of(model(vocab, "[]", R"(, "normalizer": {"type": "NFC", "extra": 1})")), "extra"));
    CHECK(has(
        message_of(model(vocab, "[]", R"(, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}})")),
        "regular expression"));
    CHECK(has(message_of(R"({"model": {"type": "Magic"}})"), "model.type"));
}

TEST_CASE("a truncated tokenizer.json never crashes") {
    const std::string whole = tokenizer_to_json(
        dynamic_cast<const Pipeline&>(*train_tokenizer("bpe", "the cat the hat the mat", 265, 1)));
    CHECK(message_of(whole) == "accepted");
    for (std::size_t n = 0; n + 2 < whole.size(); n += 7) CHECK(message_of(whole.substr(0, n)) != "accepted");
}

TEST_CASE("damaged .tiktoken and SentencePiece files are refused") {
    auto refused = [](const auto& load) { return test::refusal(load) != "accepted"; };
    CHECK(refused([] { tokenizer_from_tiktoken("YQ== 0\nYg== 0\n", "f"); }));
    CHECK(refused([] { tokenizer_from_tiktoken("YQ== 0\n!!!! 1\n", "f"); }));
    CHECK(refused([] { tokenizer_from_tiktoken("YQ== 0\nYg== 4294967295\n", "f"); }));
    CHECK(refused([] { tokenizer_from_tiktoken("YQ== 0\n", "f"); }));  // 255 bytes have no token
    for (const std::string& bytes :
         {std::string("\x0A\x7F\x0A", 3), std::string("\x0A\x02\x0A\x00", 4), std::string("\xFF\xFF\xFF", 3),
          std::string("\x0A\x03\x0A\x01"), std::string("\x08")})
        CHECK(refused([&] { tokenizer_from_sentencepiece(bytes, "f"); }));
}

TEST_CASE("all merges that .tiktoken implies go round, also where several make one token") {
    auto base64 = [](std::string_view s) {
        constexpr std::string_view digits =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        std::string out;
        for (std::size_t i = 0; i < s.size(); i += 3) {
            std::uint32_t v = 0;
            for (std::size_t k = i; k < i + 3; k++)
                v = v << 8 | (k < s.size() ? static_cast<std::uint8_t>(s[k]) : 0);
            for (std::size_t k = 0; k < 4; k++)
                out += i + k <= s.size() ? digits[v >> (18 - 6 * k) & 63] : '=';
        }
        return out;
    };
    // "abc" and its like come before either of their halves, so both pairs make them.
    std::string file;
    int rank = 0;
    auto add = [&](std::string_view token) { file += base64(token) + " " + std::to_string(rank++) + "\n"; };
    for (int b = 0; b < 256; b++) add(std::string(1, static_cast<char>(b)));
    for (const char* token : {"abc", "def", "ghi", "ab", "bc", "de", "ef", "gh", "hi"}) add(token);
    test::Scratch scratch;
    test::write_text(scratch / "t.tiktoken", file);
    TokenizerPtr made = load_tokenizer(scratch / "t.tiktoken");
    test::write_text(scratch / "t.gguf", tokenizer_to_gguf(*made));
    test::write_text(scratch / "t.json", tokenizer_to_json(dynamic_cast<const Pipeline&>(*made)));
    TokenizerPtr gguf = load_tokenizer(scratch / "t.gguf"), json = load_tokenizer(scratch / "t.json");
    for (const char* text :
         {"abc", "zabcz", "ab bc abc", "defghi", "zghiz", "ghhiigh", "aabbccddeeffgghhii"}) {
        CAPTURE(text);
        CHECK(gguf->encode(text) == made->encode(text));
        CHECK(json->encode(text) == made->encode(text));
    }
}

TEST_CASE("every kind that can be made here goes round through tokenizer.json") {
    const std::string text = "the cat sat on the mat; the hat was on the cat. The END!\n12 naïve cats";
    test::Scratch scratch;
    for (const char* kind : {"bpe", "spm", "wordpiece"}) {
        TrainOptions options;
        options.kind = kind;
        options.vocab_size = 330;
        options.min_frequency = 1;
        options.character_coverage = 1;
        VocabularyTrainer trainer(options);
        trainer.add(text);
        TokenizerPtr made = trained_tokenizer(trainer.finish());
        test::write_text(scratch / "t.json", tokenizer_to_json(dynamic_cast<const Pipeline&>(*made)));
        TokenizerPtr again = load_tokenizer(scratch / "t.json");
        CAPTURE(kind);
        CHECK(again->kind() == made->kind());
        CHECK(again->encode(text) == made->encode(text));
        if (std::string(kind) != "wordpiece") CHECK(again->decode(again->encode(text)) == text);
    }
}

TEST_CASE("what looks like a special token is plain text unless asked for") {
    TokenizerPtr t = train_tokenizer("bpe", "aaaa bbbb aaaa bbbb", 262, 1);
    const std::string text = "a<|endoftext|>b";
    CHECK(t->encode(text).size() > 3);
    EncodeOptions special;
    special.parse_special = true;
    auto ids = t->encode(text, special);
    CHECK(ids.size() == 3);
    CHECK(ids[1] == *t->eos());
    CHECK(t->decode(ids) == "ab");
}
