// The tokenizer of a Hugging Face folder without tokenizer.json: tokenizer.model, and what lies beside it.
#include <doctest/doctest.h>

#include "formats/gguf.h"
#include "model/convert/source.h"
#include "support.h"
#include "text/tokenizer.h"

using namespace linnet;

namespace {

/// A field of a protobuf message that holds bytes, of less than 128.
std::string field(int number, const std::string& content) {
    return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(content.size()) + content;
}

/// A piece of the model (1: spelling, 2: score, 3: type).
std::string piece(const std::string& spelling, float score, int type = 1) {
    std::string content = field(1, spelling) + '\x15';
    content.append(reinterpret_cast<const char*>(&score), sizeof score);
    if (type != 1) content += std::string("\x18") + static_cast<char>(type);
    return field(1, content);
}

/// Seven pieces of a BPE (trainer_spec: 3: model_type 2).
std::string model() {
    return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("a", -2) + piece("b", -3) +
           piece("ab", -1) + piece("\xE2\x96\x81", -4) + field(2, std::string("\x18\x02", 2));
}

std::vector<TokenId> encoded(const Tokenizer& tokenizer, std::string_view text) {
    return tokenizer.encode(text, {.parse_special = true});
}

}  // namespace

TEST_CASE(
    "tokens that a folder adds to its tokenizer.model are tokens, by either of the files that name them") {
    test::Scratch s;
    test::write_text(s / "tokenizer.model", model());
    const TokenizerPtr plain = tokenizer_at(s.path);
    CHECK(plain->size() == 7);
    test::write_text(s / "added_tokens.json", R"({"<|im_end|>": 9, "<sep>": 7})");
    const TokenizerPtr older = tokenizer_at(s.path);
    CHECK(older->size() == 10);  // the row between them is no token's
    CHECK(encoded(*older, "ab<sep>ab<|im_end|>").back() == 9);
    CHECK(encoded(*older, "ab<sep>ab")[2] == 7);
    CHECK(older->encode("<|im_end|>").size() > 1);  // a control token by its looks
    test::write_text(s / "tokenizer_config.json",
                     R"({"add_bos_token": true, "added_tokens_decoder": {
                         "1": {"content": "<s>", "special": true},
                         "7": {"content": "<sep>", "special": true, "rstrip": true}}})");
    const TokenizerPtr newer = tokenizer_at(s.path);
    CHECK(newer->encode("<sep>").size() > 1);
    CHECK(encoded(*newer, "<sep>  ab").front() == 7);
    // As GGUF they are the same.
    const std::string bytes = tokenizer_to_gguf(*newer);
    const TokenizerPtr again =
        tokenizer_from_gguf(Gguf(MappedFile::view(std::as_bytes(std::span(bytes)), "t.gguf")));
    CHECK(encoded(*again, "ab<sep>  ab<|im_end|>") == encoded(*newer, "ab<sep>  ab<|im_end|>"));
}

TEST_CASE("added tokens that cannot be are refused with the token's place") {
    test::Scratch s;
    test::write_text(s / "tokenizer.model", model());
    auto refusal = [&] { return test::refusal([&] { tokenizer_at(s.path); }); };
    test::write_text(s / "added_tokens.json", R"({"<far>": 2000000000})");
    CHECK_MESSAGE(test::has(refusal(), "added token '<far>': expected an id below "), refusal());
    test::write_text(s / "added_tokens.json", R"({"ab": 7})");
    CHECK_MESSAGE(test::has(refusal(), "added token 7: expected a spelling of its own, got 'ab'"), refusal());
    test::write_text(s / "added_tokens.json", R"({"x": "seven"})");
    CHECK_MESSAGE(test::has(refusal(), "added_tokens.json"), refusal());
    test::write_text(s / "added_tokens.json", "{}");
    test::write_text(s / "tokenizer_config.json", R"({"added_tokens_decoder": {"x": {"content": "<x>"}}})");
    CHECK_MESSAGE(test::has(refusal(), "expected an id as its key, got 'x'"), refusal());
}
