// llama2.c's tokenizer.bin: what is wrong in one is named with its token, what is right goes there and back.
#include "text/files/llama2c.h"

#include <doctest/doctest.h>

#include <cmath>

#include "support.h"
#include "text/train/make.h"

using namespace linnet;
using linnet::test::put;

namespace {

std::string token(const std::string& spelling, float score) {
    std::string out;
    put(out, score), put(out, static_cast<std::int32_t>(spelling.size()));
    return out + spelling;
}

/// A file of six tokens: the three that export.py puts first, a space, a byte, a letter.
std::string file() {
    std::string out;
    put(out, std::int32_t{6});  // the longest
    return out + token("<unk>", 0) + token("\n<s>\n", 0) + token("\n</s>\n", 0) + token(" ", -2) +
           token("<0x21>", 0) + token("a", -1);
}

}  // namespace

TEST_CASE(
    "a tokenizer.bin that is cut short, lies or is another model's is refused, and the token is named") {
    std::string endless = file(), negative = file(), no_number = file();
    const std::int32_t long_one = 65537, minus = -1;
    const float infinite = INFINITY;
    endless.replace(8, 4, reinterpret_cast<const char*>(&long_one), 4);
    negative.replace(8, 4, reinterpret_cast<const char*>(&minus), 4);
    no_number.replace(4, 4, reinterpret_cast<const char*>(&infinite), 4);
    const std::string hint = " (is it the tokenizer of another model?)";
    struct Fault {
        std::string bytes;
        TokenId size;
        std::string says;
    };
    const std::vector<Fault> faults = {
        {"", 6, "longest token: expected 4 bytes at byte 0, got 0" + hint},
        {file().substr(0, 6), 6, "token 0: expected 4 bytes at byte 4, got 2" + hint},
        {file().substr(0, 15), 6, "token 0: expected 5 bytes at byte 12, got 3" + hint},
        {file(), 7, "token 6: expected 4 bytes at byte 76, got 0" + hint},
        {file(), 5, "expected 5 tokens, as many as the model has, got 9 more bytes" + hint},
        {endless, 6, "token 0: expected a length of 0 to 65536, got 65537"},
        {negative, 6, "token 0: expected a length of 0 to 65536, got -1"},
        {no_number, 6, "token 0: expected a finite score, got another"},
        {file().substr(0, 30), 2, "expected at least 3 tokens, got 2"},
    };
    for (const Fault& fault : faults) {
        CAPTURE(fault.says);
        CHECK(test::refusal([&] { tokenizer_from_llama2c(fault.bytes, "t.bin", fault.size); }) ==
              "t.bin: " + fault.says);
    }
}

TEST_CASE(
    "a tokenizer.bin is read as SentencePiece's and written with the same bytes; other kinds are not "
    "written") {
    const TokenizerPtr t = tokenizer_from_llama2c(file(), "t.bin", 6);
    EncodeOptions options;
    options.add_special = true;
    CHECK(t->encode("a!", options) == std::vector<TokenId>{1, 3, 5, 4});
    CHECK(t->piece(1) == "<s>");
    CHECK(t->is_end(2));
    CHECK(tokenizer_to_llama2c(*t) == file());
    CHECK(test::refusal([] { tokenizer_to_llama2c(*byte_tokenizer()); }) ==
          "tokenizer: llama2.c: expected a SentencePiece vocabulary with <s> and </s> as tokens 1 and 2, got "
          "byte");
}
