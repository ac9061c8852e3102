#include "text/encode/unigram.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/rng.h"

using namespace linnet;

namespace {

struct Made {
    Vocabulary vocabulary;
    std::unique_ptr<UnigramModel> model;

    explicit Made(const std::vector<std::pair<std::string, float>>& tokens, UnigramOptions options = {}) {
        for (const auto& [spelling, score] : tokens)
            vocabulary.add(spelling, byte_of_spelling(spelling) >= 0 ? TokenType::byte : TokenType::normal,
                           score);
        model = std::make_unique<UnigramModel>(vocabulary, options);
    }
    std::vector<TokenId> encode(std::string_view text) const {
        std::vector<TokenId> ids;
        const BlockSink keep = [&](std::span<const TokenId> some) {
            ids.insert(ids.end(), some.begin(), some.end());
        };
        IdSink out(keep);
        const auto scratch = model->scratch();
        model->encode(text, out, *scratch);
        out.flush();
        return ids;
    }
    double score(const std::vector<TokenId>& ids) const {
        double sum = 0;
        for (TokenId id : ids) sum += vocabulary.score(id);
        return sum;
    }
    /// The highest sum of scores over all ways to spell the text.
    double best(std::string_view text) const {
        if (text.empty()) return 0;
        double most = -std::numeric_limits<double>::infinity();
        for (TokenId id = 0; id < vocabulary.size(); id++)
            if (text.starts_with(vocabulary.spelling(id)))
                most =
                    std::max(most, vocabulary.score(id) + best(text.substr(vocabulary.spelling(id).size())));
        return most;
    }
};

}  // namespace

TEST_CASE("unigram finds the spelling of the highest summed score, as trying all of them does") {
    Rng rng(9, 1);
    std::uint64_t counter = 0;
    for (int round = 0; round < 200; round++) {
        std::vector<std::pair<std::string, float>> tokens;
        auto draw_score = [&] { return -0.25f * static_cast<float>(1 + rng.below(60, counter++)); };
        for (const char* letter : {"a", "b", "\xC3\xA9"}) tokens.emplace_back(letter, draw_score());
        for (int i = 0; i < 8; i++) {
            std::string token;
            for (std::uint64_t k = 2 + rng.below(3, counter++); k > 0; k--)
                token += tokens[rng.below(3, counter++)].first;
            if (std::none_of(tokens.begin(), tokens.end(), [&](const auto& t) { return t.first == token; }))
                tokens.emplace_back(token, draw_score());
        }
        const Made made(tokens);
        for (int i = 0; i < 5; i++) {
            std::string text;
            for (std::uint64_t k = rng.below(11, counter++); k > 0; k--)
                text += tokens[rng.below(3, counter++)].first;
            CAPTURE(text);
            const std::vector<TokenId> ids = made.encode(text);
            std::string spelled;
            for (TokenId id : ids) spelled += made.vocabulary.spelling(id);
            CHECK(spelled == text);
            CHECK(made.score(ids) == doctest::Approx(made.best(text)));
        }
    }
}

TEST_CASE("unigram: a run of unknown characters is one unknown token, or their bytes where it has them") {
    UnigramOptions options;
    options.unknown = 0;
    const Made plain({{"<unk>", 0}, {"a", -1}, {"b", -2}, {"ab", -2.5}}, options);
    CHECK(plain.encode("ab") == std::vector<TokenId>{3});
    CHECK(plain.encode("axyzb\xE4\xB8\xAD") == std::vector<TokenId>{1, 0, 2, 0});
    CHECK(plain.encode("").empty());
    options.byte_fallback = true;
    const Made bytes({{"<unk>", 0}, {"a", -1}, {"<0xC3>", 0}, {"<0xA9>", 0}}, options);
    CHECK(bytes.encode("a\xC3\xA9") == std::vector<TokenId>{1, 2, 3});
    CHECK(bytes.encode("a\xC3\xA8") == std::vector<TokenId>{1, 0});  // not all its bytes have tokens
    const Made none({{"a", -1}});
    CHECK_THROWS_AS(none.encode("z"), Error);
}

TEST_CASE("unigram cuts a text before marks unless a token lies across one, and takes words of any length") {
    const std::string mark(space_mark);
    UnigramOptions options;
    options.unknown = 0;
    std::vector<std::pair<std::string, float>> tokens = {
        {"<unk>", 0},         {"a", -1},     {mark, -1},    {"b", -1},
        {mark + mark, -1.5f}, {"<0x61>", 0}, {"<0x61>", 0}, {"", 0}};
    const Made apart(tokens, options);
    CHECK(apart.encode("a" + mark + "b" + mark + mark + "a") == std::vector<TokenId>{1, 2, 3, 4, 1});
    tokens.emplace_back("a" + mark + "b", -0.5f);
    const Made across(tokens, options);
    CHECK(across.encode("a" + mark + "b") == std::vector<TokenId>{8});
    CHECK(across.encode(std::string(300, 'a')) == std::vector<TokenId>(300, 1));
    const Made none({{"<0x61>", 0}}, options);  // no token has a score
    CHECK(none.encode("b") == std::vector<TokenId>{0});
}
