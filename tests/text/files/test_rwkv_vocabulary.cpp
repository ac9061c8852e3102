// RWKV's vocabularies: the longest token at each place, spelled as Python writes bytes.
#include <doctest/doctest.h>

#include <cstdlib>

#include "base/error.h"
#include "base/rng.h"
#include "formats/gguf.h"
#include "support.h"
#include "text/files/rwkv_vocabulary.h"
#include "text/files/tokenizer_json.h"
#include "text/tokenizer.h"

using namespace linnet;

namespace {

const std::string words[] = {"the",
                             " the",
                             "th",
                             "he",
                             " t",
                             "  ",
                             "\\n\\n",
                             "\\t\\t",
                             "it's",
                             "'s",
                             "\\\\n",
                             "\\xe4\\xb8",
                             "\\xe4\\xb8\\x96",
                             "a\\'b",
                             "aaa",
                             "aa"};

std::string written(const std::string& path, int missing = -1) {
    test::write_rwkv_vocabulary(path, words, missing);
    return path;
}

/// What the escapes above stand for.
std::string bytes_of(TokenId id) {
    if (id == 0) return "";
    if (id <= 256) return std::string(1, static_cast<char>(id - 1));
    static const std::string plain[] = {"the",          " the", "th",   "he", " t",  "  ",
                                        "\n\n",         "\t\t", "it's", "'s", "\\n", "\xe4\xb8",
                                        "\xe4\xb8\x96", "a'b",  "aaa",  "aa"};
    return plain[id - 257];
}

std::vector<TokenId> longest(std::string_view text) {
    std::vector<TokenId> ids;
    for (std::size_t at = 0; at < text.size(); at += bytes_of(ids.back()).size()) {
        TokenId best = 0;
        for (TokenId id = 1; id < 257 + 16; id++)
            if (text.substr(at).starts_with(bytes_of(id)) && bytes_of(id).size() > bytes_of(best).size())
                best = id;
        ids.push_back(best);
    }
    return ids;
}

}  // namespace

TEST_CASE("an rwkv vocabulary takes the longest token at each place, and any bytes go round") {
    test::Scratch scratch;
    auto tokenizer = load_tokenizer(written(scratch / "v.gguf"));
    CHECK(tokenizer->kind() == "rwkv");
    CHECK(tokenizer->size() == 273);
    CHECK_FALSE(tokenizer->add_bos());
    CHECK(tokenizer->is_end(0));
    const std::string text = "the them  \n\n it's a'b \\n aaaaa \xe4\xb8\x96\xe4\xb8\xad\t\t\t<s>";
    CHECK(tokenizer->encode(text) == longest(text));
    GgufWriter again;
    tokenizer->write(again);
    again.add("general.architecture", "rwkv7");
    again.write(scratch / "w.gguf");
    auto copy = load_tokenizer(scratch / "w.gguf");
    Rng rng(3, 0);
    for (std::uint64_t i = 0; i < 300; i++) {
        std::string random;
        for (std::uint64_t k = 0; k < i % 40; k++) {
            std::uint64_t draw = rng.below(600, 1000 * i + k);
            random += draw < 256 ? std::string(1, static_cast<char>(draw))
                                 : bytes_of(static_cast<TokenId>(257 + draw % 16));
        }
        const std::vector<TokenId> ids = tokenizer->encode(random);
        CHECK(ids == longest(random));
        CHECK(copy->encode(random) == ids);
        CHECK(tokenizer->decode(ids) == random);
    }
}

TEST_CASE("tokenizer.json, which has no model for the longest token at each place, is refused") {
    test::Scratch scratch;
    auto tokenizer = load_tokenizer(written(scratch / "v.gguf"));
    CHECK(test::has(test::refusal([&] { tokenizer_to_json(dynamic_cast<const Pipeline&>(*tokenizer)); }),
                    "tokenizer.json: expected a tokenizer that it can express"));
}

TEST_CASE(
    "a byte that an rwkv vocabulary lacks is named with its place, and so is a token that stands twice") {
    test::Scratch scratch;
    auto tokenizer = load_tokenizer(written(scratch / "v.gguf", 'z'));
    CHECK(test::has(test::refusal([&] { tokenizer->encode("the z"); }),
                    "byte 4: expected a token of the vocabulary"));
    GgufWriter out;
    const std::string_view twice[] = {"ab", "\\n", "\\x0a"};
    out.add("general.architecture", "rwkv7");
    out.add("tokenizer.ggml.model", "rwkv");
    out.add("tokenizer.ggml.tokens", 3, [&](std::size_t i) { return twice[i]; });
    out.write(scratch / "t.gguf");
    CHECK(test::has(test::refusal([&] { load_tokenizer(scratch / "t.gguf"); }),
                    "tokenizer.ggml.tokens[2]: expected a spelling of its own"));
}
