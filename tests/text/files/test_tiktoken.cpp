// .tiktoken files: a wrong line is named by its number; a published vocabulary is known by how many ranks it
// has.
#include <doctest/doctest.h>

#include "base/base64.h"
#include "support.h"
#include "text/encode/pipeline.h"
#include "text/files/foreign.h"

using namespace linnet;

namespace {

/// So many ranks: the bytes, then pairs of bytes, then those behind an a, and behind two. The number
/// `left_out` is no rank.
std::string ranks(std::size_t count, std::size_t left_out = SIZE_MAX) {
    std::string file;
    for (std::size_t i = 0, rank = 0; i < count; i++, rank++) {
        std::string token(1, static_cast<char>(i));
        if (i >= 256) token = {static_cast<char>((i - 256) >> 8), static_cast<char>(i)};
        if (i >= 256) token.insert(0, (i - 256) / 65536, 'a');
        if (rank == left_out) rank++;
        file += base64(token) + " " + std::to_string(rank) + "\n";
    }
    return file;
}

TokenizerPtr read(const std::string& text) {
    return tokenizer_from_tiktoken(text, "t.tiktoken");
}

}  // namespace

TEST_CASE(
    "a .tiktoken file with a wrong line, without a byte or with a gap is refused, and the line is named") {
    const std::string form = "base64, a space and a rank, got '", below = "a rank below 2097151, got '";
    struct Fault {
        std::string text, says;
    };
    const std::vector<Fault> faults = {
        {"YQ==\n", "line 1: expected " + form + "YQ=='"},
        {" 0\n", "line 1: expected " + form + " 0'"},
        {"YQ= 0\n", "line 1: expected " + form + "YQ= 0'"},
        {"==== 0\n", "line 1: expected " + form + "==== 0'"},
        {"Y=== 0\n", "line 1: expected " + form + "Y=== 0'"},
        {"Y!== 0\n", "line 1: expected " + form + "Y!== 0'"},
        {"\nYQ== 0\r\n\r\n!!!! 1", "line 4: expected " + form + "!!!! 1'"},
        {"YQ== x\n", "line 1: expected " + below + "YQ== x'"},
        {"YQ== \n", "line 1: expected " + below + "YQ== '"},
        {"YQ== 1x\n", "line 1: expected " + below + "YQ== 1x'"},
        {"YQ== 2097151\n", "line 1: expected " + below + "YQ== 2097151'"},
        {"YQ== 4294967296\n", "line 1: expected " + below + "YQ== 4294967296'"},
        {"YQ== 1048577\n", "line 1: expected a rank near the others, got 'YQ== 1048577'"},
        {"YQ== 0\nYg== 0\n", "line 2: expected a rank of its own, got 'Yg== 0'"},
        {"YQ== 0\n", "ranks: expected a token for every byte, got none for <0x00>"},
        {ranks(255), "ranks: expected a token for every byte, got none for <0xFF>"},
        {ranks(300, 270), "ranks: expected every rank below 301, got none for 270"},
        {ranks(256) + base64("a") + " 256\n", "rank 256: expected bytes of its own, got those of rank 97"},
    };
    for (const Fault& fault : faults) {
        CAPTURE(fault.text.substr(0, 40));
        CHECK(test::refusal([&] { read(fault.text); }) == "t.tiktoken: " + fault.says);
    }
}

TEST_CASE(
    "a published .tiktoken vocabulary has its pattern, its special tokens and unused ones between them") {
    struct Known {
        std::size_t ranks, left_out;
        const char* pre;
        std::size_t size;
        std::vector<std::pair<std::string, TokenId>> special;
        bool begins;
    };
    const std::vector<Known> table = {
        {300, SIZE_MAX, "dbrx", 300, {}, false},
        {50280, 50256, "gpt-2", 50281, {{"<|endoftext|>", 50256}}, false},
        {128000,
         SIZE_MAX,
         "llama-bpe",
         128010,
         {{"<|end_of_text|>", 128001}, {"<|begin_of_text|>", 128000}, {"<|eot_id|>", 128009}},
         true},
        {200000,
         SIZE_MAX,
         "llama4",
         200009,
         {{"<|end_of_text|>", 200001}, {"<|begin_of_text|>", 200000}, {"<|eot|>", 200008}},
         true},
    };
    for (const Known& known : table) {
        CAPTURE(known.ranks);
        const TokenizerPtr t = read(ranks(known.ranks, known.left_out));
        CHECK(t->kind() == "bpe");
        CHECK(static_cast<std::size_t>(t->size()) == known.size);
        CHECK(dynamic_cast<const Pipeline&>(*t).parts().ggml_pre == known.pre);
        CHECK(t->add_bos() == known.begins);
        for (const auto& [spelling, id] : known.special) {
            CHECK(t->piece(id) == spelling);
            CHECK(t->is_control(id));
        }
        CHECK(t->eos() == (known.special.empty() ? std::nullopt : std::optional(known.special[0].second)));
        CHECK(t->encode(std::string("a\0\1", 3)).back() == 257);
        if (known.begins) CHECK(t->is_end(known.special.back().second));
        if (known.ranks != 128000) continue;
        CHECK(t->piece(128002) == "<|unused_128002|>");
        CHECK(!t->is_control(128002));
    }
}

TEST_CASE("what begins as a .tiktoken file does is taken for one") {
    for (const char* text : {"YQ== 0", "YQ== 0\n", "YWI= 12\r\nxx"}) CHECK(looks_like_tiktoken(text));
    for (const std::string& text :
         {std::string(), std::string("YQ=="), std::string("YQ= 0"), std::string("YQ== 0 1"),
          std::string("hello world"), std::string(1000, 'A') + " 0"})
        CHECK(!looks_like_tiktoken(text));
}
