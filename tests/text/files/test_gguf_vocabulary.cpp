// The vocabulary of a GGUF: every key that may be wrong is named with what stands there, every kind is read
// and written.
#include <doctest/doctest.h>

#include <map>

#include "base/error.h"
#include "formats/gguf.h"
#include "support.h"
#include "text/encode/vocabulary.h"
#include "text/files/json.h"
#include "text/files/tokenizer_json.h"
#include "text/tokenizer.h"

using namespace linnet;
using linnet::test::has;

namespace {

const std::string key = "tokenizer.ggml.";

/// The keys of a vocabulary, right unless a test changes them.
struct Words {
    std::string model = "llama";
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", "a", "b", "ab"};
    std::vector<std::int32_t> types = {2, 3, 3, 1, 1, 1};
    std::vector<float> scores = {0, 0, 0, -2, -3, -1};
    std::vector<std::string> merges = {};
    std::function<void(GgufWriter&)> more = [](GgufWriter&) {};

    std::string file() const {
        GgufWriter out;
        auto strings = [&](const std::string& name, const std::vector<std::string>& list) {
            if (!list.empty())
                out.add(key + name, list.size(), [&](std::size_t i) { return std::string_view(list[i]); });
        };
        if (!model.empty()) out.add(key + "model", std::string_view(model));
        strings("tokens", tokens), strings("merges", merges);
        if (!types.empty()) out.add(key + "token_type", std::span<const std::int32_t>(types));
        if (!scores.empty()) out.add(key + "scores", std::span<const float>(scores));
        more(out);
        return out.header();
    }
    TokenizerPtr load() const {
        const std::string bytes = file();
        return tokenizer_from_gguf(Gguf(MappedFile::view(std::as_bytes(std::span(bytes)), "v.gguf")));
    }
};

/// The three lists that a byte-level vocabulary of a, b and ab has.
Words byte_level(std::vector<std::string> merges) {
    Words words;
    words.model = "gpt2", words.tokens = {"a", "b", "ab", "<|endoftext|>"}, words.types = {1, 1, 1, 3};
    words.scores = {}, words.merges = std::move(merges);
    return words;
}

/// As it comes back from a GGUF file of itself.
TokenizerPtr again(const TokenizerPtr& tokenizer) {
    const std::string bytes = tokenizer_to_gguf(*tokenizer);
    return tokenizer_from_gguf(Gguf(MappedFile::view(std::as_bytes(std::span(bytes)), "again.gguf")));
}

std::vector<TokenId> around(const Tokenizer& tokenizer, std::string_view text) {
    EncodeOptions options;
    options.add_special = true;
    return tokenizer.encode(text, options);
}

}  // namespace

TEST_CASE(
    "a GGUF's vocabulary that lacks a key, or has a wrong one, is refused with the key and what it holds") {
    struct Fault {
        const char* what;
        std::function<void(Words&)> damage;
        std::string says;  // behind the file's name
    };
    auto id = [](const char* role, std::uint32_t value) {
        return [=](GgufWriter& out) { out.add(key + role, value); };
    };
    const std::vector<Fault> faults = {
        {"no kind", [](Words& w) { w.model = ""; },
         "tokenizer.ggml.model: expected a tokenizer's kind, got nothing (the file holds no vocabulary)"},
        {"another kind", [](Words& w) { w.model = "magic"; },
         "tokenizer.ggml.model: expected gpt2, llama, t5, bert or rwkv, got 'magic'"},
        {"no tokens", [](Words& w) { w.tokens = {}; },
         "tokenizer.ggml.tokens: expected an array of strings, got nothing (the file holds no vocabulary)"},
        {"an empty list",
         [](Words& w) {
             w.tokens = {};
             w.more = [](GgufWriter& out) {
                 out.add(key + "tokens", 0, [](std::size_t) { return std::string_view(); });
             };
         },
         "tokenizer.ggml.tokens: expected at least one token, got none"},
        {"a type too few", [](Words& w) { w.types.pop_back(); },
         "tokenizer.ggml.token_type: expected 6 entries, one per token, got 5"},
        {"a score too many", [](Words& w) { w.scores.push_back(0); },
         "tokenizer.ggml.scores: expected 6 entries, one per token, got 7"},
        {"a type of 7", [](Words& w) { w.types[4] = 7; },
         "tokenizer.ggml.token_type[4]: expected 0 to 6, got 7"},
        {"a type of -1", [](Words& w) { w.types[0] = -1; },
         "tokenizer.ggml.token_type[0]: expected 0 to 6, got -1"},
        {"a token twice", [](Words& w) { w.tokens[4] = "a"; },
         "tokenizer.ggml.tokens[4]: expected a spelling of its own, got 'a', which is token 3 too"},
        {"a begin token beyond the last", [&](Words& w) { w.more = id("bos_token_id", 6); },
         "tokenizer.ggml.bos_token_id: expected an id below 6, got 6"},
        {"a begin token of text",
         [](Words& w) { w.more = [](GgufWriter& out) { out.add(key + "bos_token_id", "<s>"); }; },
         "key 'tokenizer.ggml.bos_token_id': expected an integer from 0, got the string '<s>'"},
        {"a flag of 1", [&](Words& w) { w.more = id("add_bos_token", 1); },
         "key 'tokenizer.ggml.add_bos_token': expected true or false, got 1"},
        {"unigram without scores", [](Words& w) { w.model = "t5", w.scores = {}; },
         "tokenizer.ggml.scores: expected an array of numbers, got nothing"},
        {"a character map of text",
         [](Words& w) {
             w.model = "t5";
             w.more = [](GgufWriter& out) { out.add(key + "precompiled_charsmap", "map"); };
         },
         "tokenizer.ggml.precompiled_charsmap: expected an array of bytes, got another kind of value"},
        {"a character map of numbers",
         [](Words& w) {
             w.model = "t5";
             w.more = [](GgufWriter& out) {
                 out.add(key + "precompiled_charsmap", std::span<const std::int32_t>(std::vector{1, 2}));
             };
         },
         "tokenizer.ggml.precompiled_charsmap: expected an array of bytes, got another kind of value"},
        {"byte-level without merges", [](Words& w) { w = byte_level({}); },
         "tokenizer.ggml.merges: expected an array of strings, got nothing"},
        {"a merge of one token",
         [](Words& w) {
             w = byte_level({"a b", "ab"});
         },
         "tokenizer.ggml.merges[1]: expected two tokens with a space between, got 'ab'"},
        {"a merge without a space", [](Words& w) { w = byte_level({"abab"}); },
         "tokenizer.ggml.merges[0]: expected two tokens with a space between, got 'abab'"},
        {"a merge with nothing behind its space", [](Words& w) { w = byte_level({"ab "}); },
         "tokenizer.ggml.merges[0]: expected two tokens with a space between, got 'ab '"},
        {"a merge of what is no token", [](Words& w) { w = byte_level({"a c"}); },
         "tokenizer.ggml.merges[0]: expected two tokens of the vocabulary, got 'a c'"},
        {"a pre-tokenizer's name misspelled",
         [](Words& w) {
             w = byte_level({"a b"});
             w.more = [](GgufWriter& out) { out.add(key + "pre", "llama-bpr"); };
         },
         "tokenizer.ggml.pre: expected the name of a pre-tokenizer, got 'llama-bpr' (did you mean "
         "'llama-bpe'?)"},
        {"a pre-tokenizer like no other",
         [](Words& w) {
             w = byte_level({"a b"});
             w.more = [](GgufWriter& out) { out.add(key + "pre", "something-of-our-own"); };
         },
         "tokenizer.ggml.pre: expected the name of a pre-tokenizer, got 'something-of-our-own'"},
    };
    for (const Fault& fault : faults) {
        CAPTURE(fault.what);
        Words words;
        fault.damage(words);
        CHECK(test::refusal([&] { words.load(); }) == "v.gguf: " + fault.says);
    }
    // What writers put where a role has no token, and spellings that stand twice where none is looked up.
    Words words;
    words.more = [](GgufWriter& out) {
        out.add(key + "padding_token_id", UINT32_MAX), out.add(key + "add_space_prefix", false);
    };
    words.tokens.insert(words.tokens.end(), {"a", "<s>"});
    words.types.insert(words.types.end(), {5, 3}), words.scores.resize(8);
    CHECK(words.load()->encode("b") == std::vector<TokenId>{4});
}

TEST_CASE("a SentencePiece vocabulary of a GGUF follows its scores, its types and its flags") {
    Words words;
    words.tokens.insert(words.tokens.end(), {"\xE2\x96\x81", "<0x21>", "<|x|>", "c", "bc", "never"});
    words.types.insert(words.types.end(), {1, 6, 4, 0, 1, 5});
    words.scores.insert(words.scores.end(), {-9, 0, 0, -5, -0.5f, -4});
    const TokenizerPtr plain = words.load();
    CHECK(plain->kind() == "spm");
    CHECK(plain->encode("ab") == std::vector<TokenId>{6, 5});
    CHECK(plain->encode("abc") == std::vector<TokenId>{6, 3, 10});  // bc scores higher than ab
    CHECK(plain->encode("!<|x|>") == std::vector<TokenId>{6, 7, 8});
    CHECK(around(*plain, "a") == std::vector<TokenId>{6, 3});  // no token has the role of a begin
    words.more = [](GgufWriter& out) {
        out.add(key + "bos_token_id", 1U), out.add(key + "eos_token_id", 2U);
        out.add(key + "seperator_token_id", 8U), out.add(key + "unknown_token_id", 0U);
        out.add(key + "add_space_prefix", false), out.add(key + "add_eos_token", true);
        out.add(key + "add_sep_token", true);
    };
    for (const TokenizerPtr& t : {words.load(), again(words.load())}) {
        CHECK(around(*t, "a") == std::vector<TokenId>{1, 3, 2, 8});
        CHECK(t->encode("a z") == std::vector<TokenId>{3, 6, 0});
        CHECK(t->decode(std::vector<TokenId>{6, 3}) == " a");  // no space was put before it
    }
    // Characters that are no tokens have a place in merges, which tokenizer.json cannot name.
    words.tokens.insert(words.tokens.end(), {"\u00e9\u00e8", "a\u00e8"});
    words.types.insert(words.types.end(), {1, 1}), words.scores.insert(words.scores.end(), {-3, -3});
    const TokenizerPtr extra = words.load();
    CHECK(extra->encode("\u00e9\u00e8") == std::vector<TokenId>{12});
    CHECK(tokenizer_from_json(tokenizer_to_json(dynamic_cast<const Pipeline&>(*extra)), "e.json")
              ->encode("ab") == std::vector<TokenId>{5});
    words.more = [](GgufWriter& out) { out.add(key + "add_sep_token", true); };
    CHECK(around(*words.load(), "a") == std::vector<TokenId>{6, 3});  // no token has the role
    words.types = {};                                                 // all are normal
    CHECK(words.load()->decode(std::vector<TokenId>{1, 8}) == "<s><|x|>");
}

TEST_CASE("a unigram vocabulary of a GGUF is read with its character map and its spaces, and written again") {
    Words words;
    words.model = "t5", words.tokens.push_back("\xE2\x96\x81"), words.types.push_back(1);
    words.scores.push_back(-4);
    const TokenizerPtr plain = words.load();
    CHECK(plain->kind() == "unigram");
    CHECK(plain->encode("ab") == std::vector<TokenId>{6, 5});
    CHECK(again(plain)->encode("ab") == std::vector<TokenId>{6, 5});
    // A map of 4 units that maps nothing, as bytes of either sign; spaces not put first.
    std::string map("\x10\0\0\0", 4);
    map.resize(21);
    for (int kind : {0, 1}) {
        words.more = [&](GgufWriter& out) {
            std::string stored("\x09\0\0\0", 4);
            stored += static_cast<char>(kind) + std::string("\0\0\0\x15\0\0\0\0\0\0\0", 11) + map;
            out.add_stored(key + "precompiled_charsmap", std::as_bytes(std::span(stored)));
            out.add(key + "add_space_prefix", false), out.add(key + "eos_token_id", 2U);
        };
        const TokenizerPtr mapped = words.load();
        CHECK(around(*mapped, "ab") ==
              std::vector<TokenId>{5, 2});  // the end is put unless it is said not to
        for (const TokenizerPtr& t : {mapped, again(mapped)})
            CHECK(dynamic_cast<const Pipeline&>(*t).parts().normalizer.steps[0].content == map);
    }
}

TEST_CASE("what SentencePiece does to a text before its model is written with it, whichever the model is") {
    std::string map("\x10\0\0\0", 4);
    map.resize(21);
    for (const char* model : {"llama", "t5"}) {
        Words words;
        words.model = model, words.tokens.push_back("\xE2\x96\x81"), words.types.push_back(1);
        words.scores.push_back(-4);
        words.more = [&](GgufWriter& out) {
            std::string stored("\x09\0\0\0\0\0\0\0\x15\0\0\0\0\0\0\0", 16);
            stored += map;
            out.add_stored(key + "precompiled_charsmap", std::as_bytes(std::span(stored)));
            out.add(key + "remove_extra_whitespaces", true);
        };
        const TokenizerPtr read = words.load();
        for (const TokenizerPtr& t : {read, again(read)}) {
            CHECK(dynamic_cast<const Pipeline&>(*t).parts().normalizer.steps[0].content == map);
            CHECK(t->encode(" a  b ") == t->encode("a b"));
            CHECK(t->encode("a  b") == t->encode("a b"));
        }
    }
}

TEST_CASE("steps that GGUF has no key for keep a tokenizer out of it, whatever its kind") {
    const std::string unigram =
        R"({"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": [["<unk>", 0], ["a", -1], ["\u2581", -2],
            ["<0x62>", -3]]}, "pre_tokenizer": {"type": "Metaspace"})";
    const TokenizerPtr bytes = tokenizer_from_json(unigram + "}", "u.json");
    CHECK(again(bytes)->encode("ab") == bytes->encode("ab"));
    CHECK(again(bytes)->encode("ab").back() == 3);
    const std::string spm =
        R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {"<unk>": 0, "a": 1, "\u2581": 2, "\u2581a": 3}, "merges": [["\u2581", "a"]]},
            "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]},
            "normalizer": {"type": "Sequence", "normalizers": [)";
    const std::string marks =
        R"({"type": "Prepend", "prepend": "\u2581"}, {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]}})";
    CHECK(tokenizer_from_json(spm + marks, "s.json")->kind() == "spm");
    CHECK_FALSE(tokenizer_to_gguf(*tokenizer_from_json(spm + marks, "s.json")).empty());
    // As tokenizer.json has what SentencePiece does to spaces: of XLM-R, of T5, and as linnet writes it.
    const std::string vocabulary =
        R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1], ["b", -1], ["\u2581", -2]]}, )";
    const std::string runs = R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": )",
                      mark = R"("pre_tokenizer": {"type": "Metaspace"}})";
    for (
        const std::string& steps :
        {R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace"}]}})" +
             std::string(),
         R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": false}, )" +
             runs + "\"\xE2\x96\x81\"}]}, " + mark,
         R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "Strip"}, )" + runs + "\" \"}]}, " +
             mark}) {
        const TokenizerPtr own = tokenizer_from_json(vocabulary + steps, "x.json");
        for (const char* text : {"a b", " a  b ", "ab   a"}) {
            CAPTURE(text);
            CHECK(again(own)->encode(text) == own->encode(text));
        }
    }
    for (const char* steps :
         {R"("normalizer": {"type": "Strip"}, )",
          R"("normalizer": {"type": "Replace", "pattern": {"Regex": " x"}, "content": " "}, )"}) {
        const TokenizerPtr own = tokenizer_from_json(vocabulary + steps + mark, "x.json");
        CHECK(has(test::refusal([&] { tokenizer_to_gguf(*own); }), "a tokenizer that GGUF has a name for"));
    }
    const std::string wordpiece =
        R"({"model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "un": 1}},
            "pre_tokenizer": {"type": "BertPreTokenizer"}, "normalizer": )";
    for (const std::string& json :
         {unigram + R"(, "normalizer": {"type": "Lowercase"}})", spm + R"({"type": "Lowercase"}, )" + marks,
          wordpiece + R"({"type": "Lowercase"}})",
          wordpiece + R"({"type": "BertNormalizer", "handle_chinese_chars": false}})"}) {
        const TokenizerPtr own = tokenizer_from_json(json, "t.json");
        CHECK(has(test::refusal([&] { tokenizer_to_gguf(*own); }),
                  "expected a tokenizer that GGUF has a name for"));
    }
    // A word of more than 100 characters is unknown, which GGUF has no key for either.
    const TokenizerPtr limited = tokenizer_from_json(wordpiece + R"({"type": "BertNormalizer"}})", "w.json");
    std::string word;
    for (int i = 0; i < 60; i++) word += "un";
    CHECK(again(limited)->encode(word) == std::vector<TokenId>{0});
}

TEST_CASE(
    "a WordPiece vocabulary is written as GGUF has it, and read with its clean-up and its surroundings") {
    const TokenizerPtr json = tokenizer_from_json(
        R"({"model": {"type": "WordPiece", "unk_token": "[UNK]",
            "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "un": 3, "##do": 4, "##": 5, "[X]": 6, "\u00e9": 7}},
            "added_tokens": [{"id": 1, "content": "[CLS]", "special": true}, {"id": 2, "content": "[SEP]", "special": true},
                             {"id": 6, "content": "[X]", "special": false}],
            "normalizer": {"type": "BertNormalizer", "lowercase": false, "strip_accents": false},
            "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece"},
            "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2]}})",
        "t.json");
    const std::string bytes = tokenizer_to_gguf(*json);
    const Gguf file(MappedFile::view(std::as_bytes(std::span(bytes)), "w.gguf"));
    CHECK(*file.strings(key + "tokens") ==
          std::vector<std::string_view>{"[UNK]", "[CLS]", "[SEP]", "\xE2\x96\x81un", "do", "\xE2\x96\x81##",
                                        "[X]", "\xE2\x96\x81é"});
    const TokenizerPtr read = tokenizer_from_gguf(file);
    const TokenizerPtr back =
        tokenizer_from_json(tokenizer_to_json(dynamic_cast<const Pipeline&>(*read)), "b.json");
    CHECK(back->piece(4) == "##do");
    for (const TokenizerPtr& t : {json, read, again(read), back}) {
        CHECK(around(*t, "undo \u00e9 UN") == std::vector<TokenId>{1, 3, 4, 7, 0, 2});
        CHECK(t->decode(std::vector<TokenId>{3, 4, 7}) == "undo \u00e9");
    }
    Words words;  // GGUF's defaults: small letters, no accents, [CLS] for the beginning
    words.model = "bert",
    words.tokens = {"[UNK]", "[CLS]", "[SEP]",
                    "\xE2\x96\x81"
                    "e"},
    words.types = {2, 3, 3, 1};
    words.scores = {};
    words.more = [](GgufWriter& out) {
        out.add(key + "cls_token_id", 1U), out.add(key + "seperator_token_id", 2U);
        out.add(key + "unknown_token_id", 0U);
    };
    CHECK(around(*words.load(), "\u00c9") == std::vector<TokenId>{1, 3, 2});
    words.tokens.push_back("\xE2\x96\x81"), words.types.push_back(5);  // a mark alone, and unused
    const TokenizerPtr marked = words.load();
    CHECK(
        tokenizer_from_json(tokenizer_to_json(dynamic_cast<const Pipeline&>(*marked)), "m.json")->piece(4) ==
        "##\xE2\x96\x81");
}

TEST_CASE(
    "vocabularies of characters and bytes as linnet 0.1.0 wrote them are read; what no file can hold is "
    "refused") {
    Words words;
    words.model = "char", words.tokens = {"a", "\u00e9", "ab"}, words.types = {}, words.scores = {};
    CHECK(words.load()->encode("\u00e9a") == std::vector<TokenId>{1, 0});
    words.model = "byte", words.tokens = {"<0x61>", "<0x62>"};
    const TokenizerPtr bytes = words.load();
    CHECK(bytes->encode("ba") == std::vector<TokenId>{1, 0});
    CHECK(test::refusal([&] { bytes->encode("c"); }) ==
          "text: tokenizer: expected a byte of the vocabulary, got <0x63>");
    words.tokens[1] = "ab";
    const TokenizerPtr spelled = words.load();
    CHECK(test::refusal([&] { tokenizer_to_gguf(*spelled); }) ==
          "tokenizer: GGUF: expected tokens of one byte each, got 'ab'");
    const std::string model =
        R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]})";
    for (
        const char* rest :
        {"}", R"(, "pre_tokenizer": {"type": "ByteLevel"}, "normalizer": {"type": "Lowercase"}})",
         R"(, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits"}, {"type": "ByteLevel"}]}})"}) {
        const TokenizerPtr own = tokenizer_from_json(model + rest, "t.json");
        CHECK(test::refusal([&] { tokenizer_to_gguf(*own); }) ==
              "tokenizer: GGUF: expected a tokenizer that GGUF has a name for, got its own normalizer or "
              "pre-tokenizer (tokenizer.json can hold it)");
    }
}

TEST_CASE("what GGUF has no key for is kept beside it: NFC, ignore_merges, spaces that tokens take along") {
    std::string vocabulary;
    for (int b = 0; b < 256; b++)
        vocabulary +=
            json_quoted(byte_alphabet::spell(static_cast<std::uint8_t>(b))) + ": " + std::to_string(b) + ", ";
    auto json = [&](const std::string& more, const std::string& flags) {
        return R"({"model": {"type": "BPE", "vocab": {)" + vocabulary + R"("hi": 256}, "merges": [])" + more +
               R"(, "added_tokens": [{"id": 257, "content": "<|user|>", "special": true)" + flags +
               R"(}], "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}})";
    };
    const std::string text = "hi e\u0301 \n<|user|>\n\n hi <|user|>!";
    EncodeOptions options;
    options.parse_special = true;
    for (const std::string& more : {std::string("}"), std::string(R"(, "ignore_merges": true})"),
                                    std::string(R"(}, "normalizer": {"type": "NFC"})")})
        for (const char* flags :
             {"", R"(, "rstrip": true)", R"(, "lstrip": true, "rstrip": true)", R"(, "single_word": true)"}) {
            const TokenizerPtr own = tokenizer_from_json(json(more, flags), "t.json");
            CHECK(again(own)->encode(text, options) == own->encode(text, options));
        }
}

TEST_CASE("tokens of a model named Phi-3 take the white space behind them along, as llama.cpp has it") {
    for (const std::string name : {"Phi-3-mini-4k-instruct", "my phi3", "phi-2"}) {
        Words words;
        words.tokens.insert(words.tokens.end(), {"<|user|>", "<0x0A>", "\xE2\x96\x81"});
        words.types.insert(words.types.end(), {3, 6, 1});
        words.scores.insert(words.scores.end(), {0, 0, -4});
        words.more = [&](GgufWriter& out) { out.add("general.name", name); };
        const TokenizerPtr t = words.load();
        EncodeOptions options;
        options.parse_special = true;
        const std::vector<TokenId> ids = t->encode("<|user|>\na<s>\n", options);
        CHECK(std::count(ids.begin(), ids.end(), 7) == (name == "phi-2" ? 2 : 1));
    }
}

TEST_CASE("256 tokens without merges are bytes only where each is a byte of its own, without a role") {
    auto kind = [](const std::function<void(Words&)>& change) {
        Words words;
        words.model = "gpt2", words.tokens = {}, words.types = {}, words.scores = {};
        for (int b = 0; b < 256; b++)
            words.tokens.emplace_back(byte_alphabet::spell(static_cast<std::uint8_t>(b)));
        words.more = [](GgufWriter& out) {
            out.add(key + "merges", 0, [](std::size_t) { return std::string_view(); });
        };
        change(words);
        return std::string(words.load()->kind());
    };
    CHECK(kind([](Words&) {}) == "byte");
    CHECK(kind([](Words& w) { w.tokens.emplace_back("ab"); }) == "bpe");
    CHECK(kind([](Words& w) { w.tokens[7] = "ab"; }) == "bpe");
    CHECK(kind([](Words& w) { w.tokens[32] = " "; }) == "bpe");  // is spelled otherwise
    CHECK(kind([](Words& w) { w.types.assign(256, 1), w.types[9] = 5; }) == "bpe");
}

TEST_CASE("an rwkv vocabulary's escapes are Python's, and what only looks like one stands for itself") {
    Words words;
    words.model = "rwkv", words.types = {}, words.scores = {};
    words.tokens = {"\\n\\t\\r", "\\x41\\x7a", "\\\\\\'", "\\xg1", "\\x4", "end\\", "\\q"};
    const TokenizerPtr t = words.load();
    CHECK(t->kind() == "rwkv");
    const std::vector<std::string> spelled = {"\n\t\r", "Az", "\\'", "xg1", "x4", "end\\", "q"};
    for (std::size_t id = 0; id < spelled.size(); id++)
        CHECK(t->piece(static_cast<TokenId>(id)) == spelled[id]);
    words.tokens = {"a", "b"}, words.types = {1, 3};
    CHECK(words.load()->kind() == "char");
    words.tokens = {"a", "bc"}, words.types = {1, 3};  // a control token may be of any length
    CHECK(words.load()->kind() == "char");
    words.tokens = {"a", ""}, words.types = {1, 1};
    CHECK(words.load()->kind() == "rwkv");
    words.tokens = {"a", "\\x61"}, words.types = {1, 5};  // an unused one may stand twice
    CHECK(words.load()->kind() == "char");
}
