// The reference ids of real vocabularies.
#include <doctest/doctest.h>

#include <span>
#include <sstream>

#include "formats/gguf.h"
#include "support.h"
#include "text/encode/vocabulary.h"
#include "text/files/tokenizer_json.h"
#include "text/tokenizer.h"
#include "text/train/make.h"

using namespace linnet;

namespace {

std::vector<std::string> texts_of(const std::string& inp) {
    const std::string all = test::read_text(inp), line = "\n__ggml_vocab_test__\n";
    std::vector<std::string> texts;
    std::size_t at = 0;
    for (std::size_t hit; (hit = all.find(line, at)) != std::string::npos; at = hit + line.size())
        texts.push_back(all.substr(at, hit - at));
    texts.push_back(all.substr(at));
    return texts;
}

std::vector<std::vector<TokenId>> ids_of(const std::string& out) {
    std::vector<std::vector<TokenId>> lists;
    std::istringstream lines(test::read_text(out));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream numbers(line);
        lists.emplace_back();
        for (TokenId id; numbers >> id;) lists.back().push_back(id);
    }
    return lists;
}

void check_vocabulary(const std::string& name) {
    auto path = test::shared_data("data/vocab/ggml-vocab-" + name + ".gguf");
    if (!path) return;
    TokenizerPtr tokenizer = load_tokenizer(*path);
    auto texts = texts_of(*path + ".inp");
    auto ids = ids_of(*path + ".out");
    REQUIRE(texts.size() >= ids.size());
    CHECK(ids.size() == 46);
    for (std::size_t i = 0; i < ids.size(); i++) {
        CAPTURE(texts[i]);
        CHECK(tokenizer->encode(texts[i]) == ids[i]);
    }
}

}  // namespace

TEST_CASE("the GPT-2 vocabulary gives llama.cpp's ids on its 46 texts") {
    check_vocabulary("gpt-2");
}
TEST_CASE("the StarCoder vocabulary gives llama.cpp's ids on its 46 texts") {
    check_vocabulary("starcoder");
}
TEST_CASE("the LLaMA SentencePiece vocabulary gives llama.cpp's ids on its 46 texts") {
    check_vocabulary("llama-spm");
}

TEST_CASE("the BERT vocabulary gives llama.cpp's ids on its 46 texts") {
    check_vocabulary("bert-bge");
}

TEST_CASE("stories260k encodes as llama.cpp does and decodes back") {
    auto path = test::shared_data("data/stories260k/stories260k.gguf");
    if (!path) return;
    TokenizerPtr tokenizer = load_tokenizer(*path);
    CHECK(tokenizer->size() == 512);
    CHECK(tokenizer->add_bos());
    CHECK(tokenizer->bos() == 1);
    EncodeOptions options;
    options.add_special = true;
    auto ids = tokenizer->encode("Once upon a time", options);
    CHECK(ids == std::vector<TokenId>{1, 403, 407, 261, 378});
    CHECK(tokenizer->decode(ids) == " Once upon a time");  // the first token, which drops a space, is <s>
    CHECK(tokenizer->decode(std::span(ids).subspan(1)) == "Once upon a time");
}

TEST_CASE("a character vocabulary of tinyshakespeare has 65 tokens, and survives GGUF") {
    auto path = test::shared_data("data/tinyshakespeare.txt");
    if (!path) return;
    std::string text = test::read_text(*path);
    TokenizerPtr tokenizer = train_tokenizer("char", text, 0, 1);
    CHECK(tokenizer->size() == 65);
    auto ids = tokenizer->encode(text);
    CHECK(ids.size() == text.size());
    CHECK(tokenizer->decode(ids) == text);
    test::Scratch scratch;
    GgufWriter writer;
    tokenizer->write(writer);
    writer.write(scratch / "char.gguf");
    TokenizerPtr again = load_tokenizer(scratch / "char.gguf");
    CHECK(again->kind() == "char");
    CHECK(again->encode(text) == ids);
}

TEST_CASE("a byte-level BPE trained on a text spells any bytes, and survives GGUF") {
    auto path = test::shared_data("data/tinyshakespeare.txt");
    if (!path) return;
    std::string text = test::read_text(*path);
    TokenizerPtr tokenizer = train_tokenizer("bpe", text, 600, 2);
    CHECK(tokenizer->size() == 600);
    CHECK(tokenizer->piece(*tokenizer->eos()) == "<|endoftext|>");
    auto ids = tokenizer->encode(text);
    CHECK(ids.size() < text.size() / 2);
    CHECK(tokenizer->decode(ids) == text);
    std::string bytes;
    for (int i = 0; i < 4096; i++) bytes += static_cast<char>(i * 2654435761u >> 13);
    CHECK(tokenizer->decode(tokenizer->encode(bytes)) == bytes);
    test::Scratch scratch;
    GgufWriter writer;
    tokenizer->write(writer);
    writer.write(scratch / "bpe.gguf");
    TokenizerPtr again = load_tokenizer(scratch / "bpe.gguf");
    CHECK(again->encode(text) == ids);
    CHECK(again->eos() == tokenizer->eos());
}

TEST_CASE(
    "a mask in a byte-level BPE stands for a word with the space before it, from files of both kinds too") {
    const TokenizerPtr made = made_tokenizer("bpe", "the cat sat on the mat. the cat sat on the mat.", 280,
                                             false, {"<|endoftext|>", "[MASK]"}, 1);
    test::Scratch scratch;
    GgufWriter writer;
    made->write(writer);
    writer.write(scratch / "t.gguf");
    test::write_text(scratch / "tokenizer.json", tokenizer_to_json(dynamic_cast<const Pipeline&>(*made)));
    const TokenizerPtr from_gguf = load_tokenizer(scratch / "t.gguf"),
                       from_json = load_tokenizer(scratch / "tokenizer.json");
    EncodeOptions special;
    special.parse_special = true;
    for (const TokenizerPtr& tokenizer : {made, from_gguf, from_json}) {
        auto encode = [&](const char* text, const EncodeOptions& options) {
            std::vector<TokenId> ids;
            tokenizer->encode(text, ids, options);
            return ids;
        };
        std::vector<TokenId> expected = encode("the", {});
        expected.push_back(encode("[MASK]", special).at(0));
        for (TokenId id : encode(" sat", {})) expected.push_back(id);
        CHECK(encode("the [MASK] sat", special) == expected);
        CHECK(encode("the[MASK] sat", special) == expected);
        // What is no special token keeps its space, and other special ones take none.
        CHECK(tokenizer->decode(encode("the [MASK] sat", {})) == "the [MASK] sat");
        CHECK(tokenizer->decode(encode("the <|endoftext|>", special)).starts_with("the "));
    }
}

TEST_CASE(
    "bytes and characters are written under names that other runtimes know, and read back as what they are") {
    test::Scratch scratch;
    const std::string path = scratch / "t.gguf";
    auto through_file = [&](const Tokenizer& tokenizer) {
        GgufWriter writer;
        tokenizer.write(writer);
        writer.write(path);
        return load_tokenizer(path);
    };
    std::string every;
    for (int b = 0; b < 256; b++) every += static_cast<char>(b);
    TokenizerPtr bytes = train_tokenizer("byte", "", 0, 1), again = through_file(*bytes);
    {
        Gguf file(path);
        CHECK(file.string("tokenizer.ggml.model") == "gpt2");
        CHECK(file.string("tokenizer.ggml.pre") == "gpt-2");
        CHECK(file.strings("tokenizer.ggml.tokens")->size() == 256);
        CHECK((*file.strings("tokenizer.ggml.tokens"))[' '] == "\xC4\xA0");  // "Ġ"
        CHECK(file.strings("tokenizer.ggml.merges")->empty());
        for (const char* role : {"bos", "eos", "unknown", "padding"})
            CHECK(!file.find("tokenizer.ggml." + std::string(role) + "_token_id"));
    }
    CHECK(again->kind() == "byte");
    CHECK(again->encode(every) == bytes->encode(every));
    CHECK(again->decode(again->encode(every)) == every);
    CHECK(again->piece(10) == bytes->piece(10));

    // Characters are tokens of an rwkv vocabulary, whatever they are; it escapes line ends and backslashes.
    const std::string text = "to be,\nor\t\\n caf\xC3\xA9 \xF0\x9F\x98\x80\r";
    TokenizerPtr characters = train_tokenizer("char", text, 0, 1), back = through_file(*characters);
    Gguf file(path);
    CHECK(file.string("tokenizer.ggml.model") == "rwkv");
    CHECK((*file.strings("tokenizer.ggml.tokens"))[1] == "\\n");
    CHECK(back->kind() == "char");
    CHECK(back->encode(text) == characters->encode(text));
    CHECK(back->decode(back->encode(text)) == text);
    CHECK_THROWS(back->encode("x"));
}

TEST_CASE("bytes and characters are read from the tokenizer.json that they are written as") {
    auto through_json = [](const Tokenizer& tokenizer) {
        return tokenizer_from_json(tokenizer_to_json(dynamic_cast<const Pipeline&>(tokenizer)), "t.json");
    };
    auto gguf = [](const Tokenizer& tokenizer) {
        GgufWriter writer;
        tokenizer.write(writer);
        return writer.header();
    };
    std::string every;
    for (int b = 0; b < 256; b++) every += static_cast<char>(b);
    TokenizerPtr bytes = train_tokenizer("byte", "", 0, 1), again = through_json(*bytes);
    CHECK(again->kind() == "byte");
    CHECK(again->encode(every) == bytes->encode(every));
    CHECK(gguf(*again) == gguf(*bytes));
    const std::string text = "to be,\nor\t\\n caf\xC3\xA9 \xF0\x9F\x98\x80\r";
    const std::vector<std::vector<std::string>> specials = {{}, {"<|endoftext|>", "<pad>"}};
    for (const std::vector<std::string>& special : specials) {
        TokenizerPtr characters = char_tokenizer(text, special), back = through_json(*characters);
        CHECK(back->kind() == "char");
        CHECK(back->size() == characters->size());
        CHECK(back->encode(text) == characters->encode(text));
        CHECK(back->decode(back->encode(text)) == text);
        CHECK_THROWS(back->encode("x"));
        if (special.empty()) CHECK(gguf(*back) == gguf(*characters));
    }
}

TEST_CASE("a tokenizer.json of single characters that does more than look them up stays a BPE") {
    auto kind = [](const std::string& model, const std::string& rest = {}) {
        return std::string(
            tokenizer_from_json(
                R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "?": 2}, "merges": [])" + model + "}" +
                    rest + "}",
                "t.json")
                ->kind());
    };
    CHECK(kind("") == "char");
    CHECK(kind(R"(, "unk_token": "?")") == "char");
    CHECK(kind(R"(, "unk_token": "?", "fuse_unk": true)") == "bpe");
    CHECK(kind(R"(, "byte_fallback": true)") == "bpe");
    CHECK(kind(R"(, "end_of_word_suffix": "</w>")") == "bpe");
    CHECK(kind("", R"(, "normalizer": {"type": "Lowercase"})") == "bpe");
    CHECK(kind("", R"(, "pre_tokenizer": {"type": "Whitespace"})") == "bpe");
    const auto unknown = tokenizer_from_json(
        R"({"model": {"type": "BPE", "vocab": {"a": 0, "?": 1}, "merges": [], "unk_token": "?"}})", "t.json");
    CHECK(unknown->encode("axxa") == std::vector<TokenId>{0, 1, 1, 0});
    const auto again =
        tokenizer_from_json(tokenizer_to_json(dynamic_cast<const Pipeline&>(*unknown)), "t.json");
    CHECK(again->encode("axxa") == std::vector<TokenId>{0, 1, 1, 0});
}

TEST_CASE("a BPE of 256 bytes with an end token, or with a merge, stays a BPE") {
    test::Scratch scratch;
    for (bool merge : {false, true}) {
        std::vector<std::string> tokens;
        for (int b = 0; b < 256; b++) tokens.emplace_back(byte_alphabet::spell(static_cast<std::uint8_t>(b)));
        if (merge) tokens.push_back("ab");
        GgufWriter writer;
        writer.add("tokenizer.ggml.model", "gpt2");
        writer.add("tokenizer.ggml.pre", "gpt-2");
        writer.add("tokenizer.ggml.tokens", tokens.size(),
                   [&](std::size_t i) { return std::string_view(tokens[i]); });
        writer.add("tokenizer.ggml.merges", merge ? 1 : 0,
                   [](std::size_t) { return std::string_view("a b"); });
        if (!merge) writer.add("tokenizer.ggml.eos_token_id", std::uint32_t{0});
        writer.write(scratch / "t.gguf");
        TokenizerPtr tokenizer = load_tokenizer(scratch / "t.gguf");
        CHECK(tokenizer->kind() == "bpe");
        CHECK(tokenizer->encode("cab").size() == (merge ? 2 : 3));
    }
}
