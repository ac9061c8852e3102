#include "text/unicode/regex.h"

#include <doctest/doctest.h>

#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "support.h"

using namespace linnet;

namespace {

struct Looked {
    std::vector<std::pair<std::size_t, std::size_t>> matches;
    std::size_t ahead = 0;
};

Looked look(const char* pattern, const std::string& text, std::size_t window = 1024) {
    const Regex regex(pattern, "test", "pattern");
    Regex::Matches matches(regex, text, window);
    Looked out;
    for (std::size_t begin, end; matches.next(begin, end);) out.matches.emplace_back(begin, end);
    out.ahead = matches.looked_ahead();
    return out;
}

}  // namespace

TEST_CASE("an expression has the same matches whatever part of the text it is shown at a time") {
    Rng rng(5, 2);
    std::uint64_t drawn = 0;
    const std::vector<std::string> letters{"a", "a", "a", "b", " ", " ", "\n", "1", "é", "漢", "'s"};
    for (const char* pattern :
         {"a+b", "\\s+(?!\\S)|\\s+", "(?<=b)a+$", "a+(?=b*1)|b", "'s|\\p{L}+|\\p{N}{1,3}|\\s+$", "(a|aa)+1",
          "", "^a+|b$|\\b1", "(?s:.{3}1)", "\\s+$", "a*", "(?<!a)b|漢é", "\\A.|.\\z"})
        for (int round = 0; round < 60; round++) {
            std::string text;
            for (std::uint64_t n = rng.below(60, drawn++); n > 0; n--)
                text += letters[rng.below(letters.size(), drawn++)];
            const auto whole = look(pattern, text, 1000).matches;
            for (std::size_t window : {1, 2, 3, 7, 16}) {
                CAPTURE(pattern);
                CAPTURE(text);
                CAPTURE(window);
                REQUIRE(look(pattern, text, window).matches == whole);
            }
        }
}

TEST_CASE("what an expression looks at grows as the text does, or the text is refused") {
    const char* words = "'s|\\p{L}+|\\p{N}{1,3}|[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    auto looked = [&](const char* pattern, const std::string& unit, std::size_t n) {
        std::string text;
        for (std::size_t i = 0; i < n; i++) text += unit;
        return look(pattern, text).ahead;
    };
    for (const char* unit : {"a", " ", "ab 12 ", "1"}) {
        const std::size_t few = looked(words, unit, 100'000), many = looked(words, unit, 200'000);
        CAPTURE(unit);
        CHECK(few <= 1'000'000);
        CHECK(many <= 5 * few / 2);
    }
    // Each place of these looks to the end of the text, or tries without end.
    for (const char* pattern : {"(?:(?=(a*))\\1)*c", "a*?a*?b", "a+b"}) {
        CAPTURE(pattern);
        CHECK(test::has(test::refusal([&] { looked(pattern, "a", 1'000'000); }),
                        "expected an expression that a text is soon matched by"));
        CHECK(looked(pattern, "a", 10'000) > 0);
    }
    CHECK(test::has(test::refusal([&] { looked("(a|aa)+$", "aaaaaaaaaaaaaaaaaaaa!", 50'000); }),
                    "it backtracks without end on this text"));
}
