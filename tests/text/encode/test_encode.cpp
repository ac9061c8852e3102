// Lossless, and the same for any number of threads.
#include <doctest/doctest.h>

#include <cstdlib>

#include "base/rng.h"
#include "support.h"
#include "text/files/tokenizer_json.h"
#include "text/split/pre_names.h"
#include "text/train/make.h"

using namespace linnet;

namespace {

std::string random_bytes(Rng& rng, std::uint64_t& counter, std::size_t n) {
    std::string s;
    const std::uint64_t style = rng.below(3, counter++);
    while (s.size() < n) {
        const std::uint64_t v = rng.bits(counter++);
        if (style == 0)
            s += static_cast<char>(v);
        else if (style == 1)
            s += "ab '\n\xC3\xA9\xE4\xB8\xAD\xFF"[v % 11];
        else
            s += static_cast<char>("etaoin shrdlu"[v % 13]);
    }
    return s;
}

}  // namespace

TEST_CASE("decode(encode(x)) = x for random bytes, every byte-level kind") {
    const std::string sample =
        "the cat sat on the mat and the hat was on the cat again and again, don't you see? 12345";
    std::vector<std::pair<std::string, TokenizerPtr>> kinds = {{"byte", byte_tokenizer()}};
    TrainOptions options;
    options.vocab_size = 320;
    options.min_frequency = 1;
    VocabularyTrainer trainer(options);
    trainer.add(sample);
    const TrainedVocabulary vocabulary = trainer.finish();
    for (const PreName& pre : pre_names())
        kinds.emplace_back(std::string(pre.name), trained_tokenizer(vocabulary, pre.name));
    if (auto path = test::shared_data("data/vocab/ggml-vocab-gpt-2.gguf"))
        kinds.emplace_back("GPT-2", load_tokenizer(*path));
    // A million each was run once (tests/PROMISES.md); this many tell whether something broke.
    const char* wanted = std::getenv("LINNET_TEST_ROUND_TRIPS");
    const int rounds = wanted ? std::atoi(wanted) : 5000;
    Rng rng(5, 2);
    std::uint64_t counter = 0;
    for (const auto& [name, t] : kinds)
        for (int i = 0; i < rounds; i++) {
            const std::string x = random_bytes(rng, counter, rng.below(24, counter));
            const std::string y = t->decode(t->encode(x));
            if (y != x) {
                const auto& of_name = name;
                CAPTURE(of_name);
                CAPTURE(x);
                REQUIRE(y == x);
            }
        }
}

TEST_CASE("unknown bytes are fused inside a word, and each word keeps its own") {
    TokenizerPtr t = tokenizer_from_json(R"({"model": {"type": "BPE", "unk_token": "?", "fuse_unk": true,
        "vocab": {"?": 0, "1": 1, "2": 2}, "merges": []},
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}})",
                                         "test");
    for (int round = 0; round < 2; round++) {  // the second time from the cache
        CHECK(t->encode("z") == std::vector<TokenId>{0});
        CHECK(t->encode("qz1z2") == std::vector<TokenId>{0, 1, 0, 2});
        CHECK(t->encode("z1") == std::vector<TokenId>{0, 1});
        CHECK(t->encode("qqzz" + std::string(40, 'z') + "1") == std::vector<TokenId>{0, 1});
    }
}

TEST_CASE("a byte without a token is named, not dropped") {
    auto path = test::shared_data("data/vocab/ggml-vocab-starcoder.gguf");  // it has no token for 0xFF
    if (!path) return;
    TokenizerPtr t = load_tokenizer(*path);
    CHECK_THROWS_WITH(t->encode("a\xFF"), doctest::Contains("<0xFF>"));
}

TEST_CASE("one long text gives the same ids for any number of threads and in blocks") {
    auto path = test::shared_data("data/tinyshakespeare.txt");
    if (!path) return;
    const std::string text = test::read_text(*path);
    for (const char* name : {"data/vocab/ggml-vocab-gpt-2.gguf", "data/vocab/ggml-vocab-llama-spm.gguf",
                             "data/vocab/ggml-vocab-bert-bge.gguf", "data/stories260k/stories260k.gguf"}) {
        auto vocabulary = test::shared_data(name);
        if (!vocabulary) return;
        TokenizerPtr t = load_tokenizer(*vocabulary);
        // Small enough pieces that nothing is cut: the reference.
        std::vector<TokenId> one = t->encode(text);
        for (int threads : {2, 3}) {
            EncodeOptions options;
            options.threads = threads;
            CHECK(t->encode(text, options) == one);
        }
    }
}

TEST_CASE("what cut() parts gives the ids of the whole, however long the parts are") {
    std::string text;
    for (int i = 0; text.size() < 900'000; i++)
        text += "the " + std::to_string(i * 7919 % 10007) + " cats, and a mat of " + std::to_string(i % 13) +
                "\n";
    for (const char* kind : {"bpe", "spm", "wordpiece"}) {
        CAPTURE(kind);
        TrainOptions options;
        options.kind = kind;
        options.vocab_size = 330;
        options.character_coverage = 1;
        VocabularyTrainer trainer(options);
        trainer.add(text.substr(0, 20'000));
        TokenizerPtr t = trained_tokenizer(trainer.finish());
        const std::vector<TokenId> whole = t->encode(text);
        for (std::size_t from : {std::size_t{100}, std::size_t{300'000}, std::size_t{899'000}}) {
            const std::size_t at = t->cut(text, from);
            REQUIRE(at >= from);
            EncodeOptions rest;
            rest.continues = true;
            std::vector<TokenId> parts = t->encode(text.substr(0, at));
            for (TokenId id : at < text.size() ? t->encode(text.substr(at), rest) : std::vector<TokenId>())
                parts.push_back(id);
            CHECK(parts == whole);
        }
    }
}

TEST_CASE("a text is cut for size only where that changes no id") {
    auto repeated = [](const std::string& part) {
        std::string text;
        while (text.size() < 700'000) text += part;
        return text;
    };
    // Nothing parts words: a token may hold the space behind a letter.
    const TokenizerPtr bare = tokenizer_from_json(
        R"({"model": {"type": "BPE", "vocab": {"a": 0, " ": 1, "a ": 2}, "merges": [["a", " "]]}})",
        "t.json");
    std::vector<TokenId> ids = bare->encode(repeated("a "));
    CHECK(ids == std::vector<TokenId>(ids.size(), 2));
    // The space is gone before words get their mark.
    const TokenizerPtr marks = tokenizer_from_json(
        R"({"model": {"type": "BPE", "vocab": {"a": 0, "▁": 1, "▁a": 2}, "merges": [["▁", "a"]]},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
              {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true}]}})",
        "t.json");
    ids = marks->encode(repeated("a "));
    CHECK(ids == std::vector<TokenId>(ids.size(), 2));
    // Added tokens are whole.
    const TokenizerPtr calls = tokenizer_from_json(
        R"({"model": {"type": "BPE", "vocab": {"a": 0, "_": 1, "<": 2, ">": 3, "b": 4}, "merges": []},
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
            "added_tokens": [{"id": 5, "content": "<ab_ab>", "special": false}]})",
        "t.json");
    const std::string text = repeated("<ab_ab>");
    ids = calls->encode(text);
    CHECK(ids == std::vector<TokenId>(ids.size(), 5));
    for (std::size_t from = 1000; from < 1020; from++) CHECK(calls->cut(text, from) % 7 == 0);
}

TEST_CASE("a million equal characters come back as they were") {
    auto path = test::shared_data("data/vocab/ggml-vocab-gpt-2.gguf");
    if (!path) return;
    TokenizerPtr t = load_tokenizer(*path);
    for (const char* c : {"a", " ", "\n", "中", "́"}) {
        std::string text;
        for (int i = 0; i < 1'000'000; i++) text += c;
        CHECK(t->decode(t->encode(text)) == text);
    }
}
