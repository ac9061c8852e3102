// SentencePiece's .model files: what is wrong in one is named with its place, what is right is read.
#include <doctest/doctest.h>

#include <cmath>

#include "formats/gguf.h"
#include "support.h"
#include "text/files/foreign.h"

using namespace linnet;

namespace {

std::string varint(std::uint64_t v) {
    std::string out;
    for (; v >= 128; v >>= 7) out += static_cast<char>((v & 127) | 128);
    return out + static_cast<char>(v);
}

std::string tag(std::uint64_t field, int wire) {
    return varint(field << 3 | static_cast<std::uint64_t>(wire));
}

std::string bytes(std::uint64_t field, const std::string& content) {
    return tag(field, 2) + varint(content.size()) + content;
}

std::string number(std::uint64_t field, std::uint64_t v) {
    return tag(field, 0) + varint(v);
}

std::string real(std::uint64_t field, float f) {
    std::string out = tag(field, 5);
    return out.append(reinterpret_cast<const char*>(&f), 4);
}

/// A piece of the model; type 1 is not written, as its writers do.
std::string piece(const std::string& spelling, float score = 0, std::uint64_t type = 1) {
    return bytes(1, bytes(1, spelling) + real(2, score) + (type == 1 ? "" : number(3, type)));
}

const std::string mark = "\xE2\x96\x81";

/// Nine pieces: the three that every model has, then those of "a", "b" and "ab".
std::string pieces() {
    return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("a", -2) + piece("b", -3) +
           piece("ab", -1) + piece(mark, -4) + piece("<0x21>", 0, 6) + piece("<|x|>", 0, 4);
}

TokenizerPtr read(const std::string& model) {
    return tokenizer_from_sentencepiece(model, "m.model");
}

std::vector<TokenId> around(const Tokenizer& tokenizer, std::string_view text) {
    EncodeOptions options;
    options.add_special = true;
    return tokenizer.encode(text, options);
}

}  // namespace

TEST_CASE("a SentencePiece model that breaks its encoding or says what cannot be is refused with the place") {
    const std::string hint = ", got something else (the file is damaged or no SentencePiece model)";
    const std::string nan = bytes(1, bytes(1, "x") + real(2, NAN));
    struct Fault {
        std::string model, says;
    };
    const std::vector<Fault> faults = {
        {std::string(1, '\x02'), "model, byte 1: expected a field number" + hint},
        {tag(0x20000000, 0), "model, byte 5: expected a field number" + hint},
        {tag(9, 3), "model, byte 1: expected a wire type 0, 1, 2 or 5" + hint},
        {tag(9, 4), "model, byte 1: expected a wire type 0, 1, 2 or 5" + hint},
        {tag(9, 0) + "\xFF", "model, byte 2: expected more bytes" + hint},
        {tag(9, 0) + std::string(10, '\xFF'), "model, byte 11: expected a number of at most 64 bits" + hint},
        {tag(9, 1) + "1234567", "model, byte 1: expected more bytes" + hint},
        {tag(9, 5) + "123", "model, byte 1: expected more bytes" + hint},
        {tag(9, 2) + "\x05"
                     "1234",
         "model, byte 2: expected a field of at most 4 bytes" + hint},
        {number(1, 1), "model, byte 2: expected field 1 of wire type 2" + hint},
        {bytes(1, number(1, 1)), "piece 0, byte 2: expected field 1 of wire type 2" + hint},
        {bytes(1, number(2, 1)), "piece 0, byte 2: expected field 2 of wire type 5" + hint},
        {bytes(1, bytes(3, "")), "piece 0, byte 2: expected field 3 of wire type 0" + hint},
        {nan, "piece 0, byte 8: expected a finite number" + hint},
        {bytes(2, bytes(3, "")), "trainer_spec, byte 2: expected field 3 of wire type 0" + hint},
        {bytes(2, real(41, 1)), "trainer_spec, byte 6: expected field 41 of wire type 0" + hint},
        {bytes(3, number(2, 1)), "normalizer_spec, byte 2: expected field 2 of wire type 2" + hint},
        {bytes(3, bytes(4, "")), "normalizer_spec, byte 2: expected field 4 of wire type 0" + hint},
        {"", "pieces: expected at least one, got none"},
        {bytes(7, "x"), "pieces: expected at least one, got none"},
        {bytes(1, real(2, 1)), "piece 0: expected a spelling, got none"},
        {piece("a") + piece("b", 0, 7), "piece 1: expected a type from 1 to 6, got 7"},
        {piece("a", 0, 0), "piece 0: expected a type from 1 to 6, got 0"},
        {piece("a") + piece("a"), "piece 1: expected a spelling of its own, got 'a', which is piece 0 too"},
        {pieces() + bytes(2, number(24, 1)),
         "trainer_spec: expected spaces before words, got treat_whitespace_as_suffix"},
        {pieces() + bytes(3, number(5, 0)),
         "normalizer_spec: expected escaped spaces, got escape_whitespaces = false"},
        {pieces() + bytes(2, number(3, 3)),
         "trainer_spec.model_type: expected 1 (unigram), 2 (bpe) or 4 (char), got 3"},
        {pieces() + bytes(3, bytes(2, "123")),
         "normalizer_spec.precompiled_charsmap: expected a character map of at least 4 bytes, got 3"},
        {pieces() + bytes(2, number(3, 2)) + bytes(3, bytes(2, "123")),
         "normalizer_spec.precompiled_charsmap: expected a character map of at least 4 bytes, got 3"},
    };
    for (const Fault& fault : faults) {
        CAPTURE(fault.says);
        CHECK(test::refusal([&] { read(fault.model); }) == "m.model: " + fault.says);
    }
}

TEST_CASE(
    "a SentencePiece model's kind, roles, spaces and character map are read; fields of others are passed "
    "over") {
    // Of every wire type one that linnet has no use for.
    const std::string others = number(30, 300) + tag(31, 1) + "12345678" + bytes(32, "x") + real(33, 1);
    const std::string model = bytes(1, others + bytes(1, "<unk>") + number(3, 2)) +
                              pieces().substr(piece("<unk>", 0, 2).size()) + others;
    const TokenizerPtr unigram = read(model);
    CHECK(unigram->kind() == "unigram");
    CHECK(unigram->bos() == 1);
    CHECK(unigram->eos() == 2);
    CHECK(around(*unigram, " ab  <|x|>b ") == std::vector<TokenId>{6, 5, 6, 8, 4, 2});
    CHECK(unigram->encode("z") == std::vector<TokenId>{6, 0});
    const std::string gguf = tokenizer_to_gguf(*unigram);
    const TokenizerPtr written =
        tokenizer_from_gguf(Gguf(MappedFile::view(std::as_bytes(std::span(gguf)), "m.gguf")));
    for (const char* text : {" ab  b ", "a  z", ""}) CHECK(written->encode(text) == unigram->encode(text));

    const auto with = [&](const std::string& trainer, const std::string& normalizer) {
        return read(pieces() + bytes(2, others + trainer) + bytes(3, others + normalizer));
    };
    const std::string no_prefix = number(3, 0), as_it_is = no_prefix + number(4, 0);
    CHECK(around(*with("", no_prefix), " ab ") == std::vector<TokenId>{5, 2});
    CHECK(around(*with("", as_it_is), " ab ") == std::vector<TokenId>{6, 5, 6, 2});
    CHECK(with(number(35, 1), as_it_is)->encode("a!") == std::vector<TokenId>{3, 7});  // byte_fallback
    CHECK(with(number(35, 0), as_it_is)->encode("a!") == std::vector<TokenId>{3, 0});

    for (std::uint64_t type : {2, 4}) {  // bpe, char
        const TokenizerPtr bpe = with(number(3, type), "");
        CHECK(bpe->kind() == "spm");
        CHECK(around(*bpe, " ab  !") == std::vector<TokenId>{1, 6, 5, 6, 7});
        CHECK(around(*with(number(3, type), as_it_is), " ab  !") == std::vector<TokenId>{1, 6, 5, 6, 6, 7});
    }
    // Roles: of a model without an end, with one of its own, with a pad; -1 is none.
    const std::uint64_t none = static_cast<std::uint64_t>(std::int64_t{-1});
    CHECK(around(*with(number(42, none), as_it_is), "a") == std::vector<TokenId>{3});
    CHECK(around(*with(number(42, 99), as_it_is), "a") == std::vector<TokenId>{3});
    CHECK(around(*with(number(3, 2) + number(41, none), as_it_is), "a") == std::vector<TokenId>{3});
    CHECK(around(*with(number(3, 2) + number(41, 8), as_it_is), "a") == std::vector<TokenId>{8, 3});
    const TokenizerPtr roles = with(number(40, 8) + number(43, 3), as_it_is);
    CHECK(roles->encode("z") == std::vector<TokenId>{8});
    CHECK(dynamic_cast<const Pipeline&>(*roles).parts().special.padding == 3);
    // A map of four units that maps nothing; what is no UTF-8 becomes U+FFFD.
    std::string map("\x10\0\0\0", 4);
    map.resize(21);
    for (std::uint64_t type : {1, 2}) {
        const TokenizerPtr mapped = with(number(3, type) + number(35, 1), as_it_is + bytes(2, map));
        CHECK(mapped->encode("ab\xFF") == std::vector<TokenId>{5, 0});
    }
}

TEST_CASE(
    "a user-defined token of a SentencePiece model stands within its text, a control token between two") {
    using Ids = std::vector<TokenId>;
    struct Case {
        std::string settings, text;
        Ids ids;
    };
    const std::string no_prefix = number(3, 0), all_spaces = number(4, 0);
    const std::vector<Case> cases = {
        {"", "a<|x|>b", {6, 3, 8, 4}},
        {"", "a <|x|> b", {6, 3, 6, 8, 6, 4}},
        {"", " a  <|x|><|x|>  b ", {6, 3, 6, 8, 8, 6, 4}},
        {"", "<|x|>b", {6, 8, 4}},
        {"", "  <|x|>  ", {6, 8}},
        {"", "  ", {}},
        {"", "a<|x|><s> b", {6, 3, 8, 1, 6, 4}},
        {"", "a <s><|x|>b", {6, 3, 1, 6, 8, 4}},
        {no_prefix, " a <|x|>b", {3, 6, 8, 4}},
        {no_prefix, " <|x|> b", {8, 6, 4}},
        {all_spaces, "  <|x|>b ", {6, 6, 6, 8, 4, 6}},
        {no_prefix + all_spaces, " <|x|>b", {6, 8, 4}},
    };
    EncodeOptions special;
    special.parse_special = true;
    for (std::uint64_t type : {1, 2})
        for (const Case& c : cases) {
            CAPTURE(type);
            CAPTURE(c.text);
            const TokenizerPtr t = read(pieces() + bytes(2, number(3, type)) + bytes(3, c.settings));
            CHECK(t->encode(c.text, special) == c.ids);
            const std::string file = tokenizer_to_gguf(*t);
            const Gguf gguf(MappedFile::view(std::as_bytes(std::span(file)), "m.gguf"));
            CHECK(tokenizer_from_gguf(gguf)->encode(c.text, special) == c.ids);
        }
}

TEST_CASE("a run of characters that a SentencePiece model does not know is one unknown token") {
    for (std::uint64_t type : {1, 2, 4}) {
        const TokenizerPtr t = read(pieces() + bytes(2, number(3, type)));
        CHECK(t->encode("a\xE6\x97\xA5\xE6\x9C\xAC b\xE6\x97\xA5") == std::vector<TokenId>{6, 3, 0, 6, 4, 0});
    }
}

TEST_CASE("what begins as a SentencePiece model does is taken for one") {
    CHECK(looks_like_sentencepiece(pieces()));
    for (const std::string& other :
         {std::string(), std::string("\x0A\x02\x0A\x01"), std::string("\x0B\x03\x0A\x01x"),
          std::string("\x0A\x83\x0A\x01x"), std::string("\x0A\x03\x0B\x01x")})
        CHECK(!looks_like_sentencepiece(other));
}
