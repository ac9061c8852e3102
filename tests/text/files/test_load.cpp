// Any tokenizer file is told by its content, and what files beside one say of it is heeded or refused.
#include <doctest/doctest.h>

#include <filesystem>

#include "support.h"
#include "text/files/tokenizer_json.h"
#include "text/tokenizer.h"

using namespace linnet;

namespace {

const std::string json =
    R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "<s>": 2, "</s>": 3, "<t>": 4}, "merges": []},
        "added_tokens": [{"id": 2, "content": "<s>", "special": true}, {"id": 3, "content": "</s>", "special": true},
                         {"id": 4, "content": "<t>", "special": true}]})";

TokenizerPtr with(const TokenizerHints& hints) {
    return tokenizer_from_json(json, "t.json", hints);
}

}  // namespace

TEST_CASE("a file that is no tokenizer is refused, and what it is instead is said where that is plain") {
    test::Scratch scratch;
    const std::string path = scratch / "t";
    struct Fault {
        std::string bytes, says;
    };
    const std::vector<Fault> faults = {
        {"", ": expected a tokenizer, got an empty file"},
        {"\xEF\xBB\xBF{}",
         ": byte 0: expected JSON, got a byte-order mark before it (save the file without it)"},
        {"\xFF\xFE{\x01}", ": byte 0: expected a tokenizer in UTF-8, got UTF-16"},
        {"\xFE\xFF\x01{}", ": byte 0: expected a tokenizer in UTF-8, got UTF-16"},
        {"hello",
         ": expected a tokenizer (GGUF, tokenizer.json, .tiktoken ranks or SentencePiece model), got another "
         "kind "
         "of file"},
        {" \n\t",
         ": expected a tokenizer (GGUF, tokenizer.json, .tiktoken ranks or SentencePiece model), got "
         "another kind of file"},
        {" \n{}", ": model: expected an object, got nothing (this is no tokenizer.json)"},
        {"YQ== 0\n", ": ranks: expected a token for every byte, got none for <0x00>"},
        {std::string("\x0A\x02\x0A\0\0", 5), ": piece 0: expected a spelling, got none"},
        {"GGUF", ": version: expected 4 bytes at byte 4, got 0 (is the file truncated?)"},
    };
    for (const Fault& fault : faults) {
        test::write_text(path, fault.bytes);
        CAPTURE(fault.bytes);
        CHECK(test::refusal([&] { load_tokenizer(path); }) == path + fault.says);
    }
}

TEST_CASE("a folder's tokenizer is its GGUF, else its tokenizer.json, else its SentencePiece model") {
    test::Scratch scratch;
    CHECK(tokenizer_in(scratch.path).empty());
    std::filesystem::create_directory(scratch / "tokenizer.gguf");  // no file
    for (const char* name : {"tokenizer.model", "tokenizer.json"}) {
        test::write_text(scratch / name, json);
        CHECK(tokenizer_in(scratch.path) == scratch / name);
    }
    std::filesystem::remove(scratch / "tokenizer.gguf");
    test::write_text(scratch / "tokenizer.gguf", "");
    CHECK(tokenizer_in(scratch.path) == scratch / "tokenizer.gguf");
}

TEST_CASE("hints give a vocabulary its size, its roles and the tokens around a text") {
    TokenizerHints hints;
    hints.size = 7;
    CHECK(with(hints)->size() == 7);
    CHECK(with(hints)->piece(5) == "[PAD5]");
    hints.size = 4;
    CHECK(test::refusal([&] { with(hints); }) ==
          "t.json: vocabulary: expected at most 4 tokens, as many as the embedding has rows, got 5");
    hints.size = 0, hints.ends = {5}, hints.ends_file = "generation_config.json";
    CHECK(test::refusal([&] { with(hints); }) ==
          "generation_config.json: eos_token_id: expected ids below 5, got 5");
    hints.ends = {-1};
    CHECK(test::refusal([&] { with(hints); }) ==
          "generation_config.json: eos_token_id: expected ids below 5, got -1");

    hints = {};
    hints.bos = "b", hints.eos = "<t>", hints.padding = "a", hints.unknown = "none";
    TokenizerPtr t = with(hints);
    const SpecialIds& roles = dynamic_cast<const Pipeline&>(*t).parts().special;
    CHECK(t->bos() == 1);
    CHECK(t->eos() == 4);
    CHECK(roles.padding == 0);
    CHECK(!roles.unknown);  // no such token
    // The tokenizer's own end stands first; others are of turns and messages, and a fourth is left out.
    hints = {};
    hints.ends = {3, 4, 1, 0};
    t = with(hints);
    CHECK(t->eos() == 3);
    for (TokenId id : {3, 4, 1}) CHECK(t->is_end(id));
    CHECK(!t->is_end(0));
    const std::string bare = R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})";
    CHECK(tokenizer_from_json(bare, "t", hints = {})->eos() == std::nullopt);
    hints.ends = {1, 1};
    CHECK(tokenizer_from_json(bare, "t", hints)->eos() == 1);

    const std::string around = R"(, "post_processor": {"type": "TemplateProcessing", "single": [
        {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [], "special_tokens": {"<s>": {"id": "<s>", "ids": [2], "tokens": ["<s>"]}}}})";
    const std::string with_begin = json.substr(0, json.size() - 1) + around;
    const auto ids = [&](const std::string& file, std::optional<bool> begin, std::optional<bool> end) {
        TokenizerHints said;
        said.add_bos = begin, said.add_eos = end;
        EncodeOptions options;
        options.add_special = true;
        return tokenizer_from_json(file, "t", said)->encode("a", options);
    };
    const std::vector<TokenId> bare_a = {0}, begun = {2, 0}, ended = {0, 3}, both = {2, 0, 3};
    CHECK(ids(json, {}, {}) == bare_a);
    CHECK(ids(json, true, true) == both);
    CHECK(ids(json, false, true) == ended);
    CHECK(ids(with_begin, {}, {}) == begun);
    CHECK(ids(with_begin, true, false) == begun);
    CHECK(ids(with_begin, false, {}) == bare_a);
    CHECK(ids(bare, true, true) == bare_a);  // no token has those roles
}
