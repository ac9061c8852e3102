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

TEST_CASE("an expression means what it means to Oniguruma") {
    using Matches = std::vector<std::pair<std::size_t, std::size_t>>;
    struct Case {
        const char* pattern;
        std::string text;
        Matches matches;
    };
    const std::string ka = "\xE0\xA4\x95\xE0\xA4\xBE";  // a letter and a vowel sign, which is alphabetic
    const std::vector<Case> cases = {
        {"[[:alpha:]\\s]+", "ab c1", {{0, 4}}},
        {"[\\s[:alpha:]]+", "1 ab c", {{1, 6}}},
        {"[^[:alpha:]\\s]+", "ab 12c", {{3, 5}}},
        {"[[:^alpha:]b]+", "ab12c", {{1, 4}}},
        {"[[:alpha:]]+", ka + "1", {{0, 6}}},
        {"[[:alnum:]]+", ka + "1 ", {{0, 7}}},
        {"[[:word:]]+", ka + "_-", {{0, 7}}},
        {"[[:upper:]]+|[[:lower:]]", "ABcd", {{0, 2}, {2, 3}, {3, 4}}},
        {"[[:space:]]+", "a\xE2\x80\xA8 b", {{1, 5}}},
        {"[[:ab]+", "a[:b]", {{0, 4}}},
        {"[[a\\]:]+", "[a]:", {{0, 4}}},
        {"[]a]+", "a]", {{0, 2}}},
        {"^a", "aa\nab\n", {{0, 1}, {3, 4}}},
        {"a$", "aa\nba", {{1, 2}, {4, 5}}},
        {"\\Aa|a\\z", "a\na\na", {{0, 1}, {4, 5}}},
        {"\\h+", "xfF09 g", {{1, 5}}},
        {"[\\hx]+", "yxfF09 g", {{1, 6}}},
        {"\\H+", "afxy", {{2, 4}}},
        {"[\\Ha]+", "faxy", {{1, 4}}},
        {"\\v+", "a\x0B\n", {{1, 2}}},
        {".+", "a\nb", {{0, 1}, {2, 3}}},
        {"(?m).+", "a\nb", {{0, 3}}},
        {"(?im:A.)b", "a\nb", {{0, 3}}},
        {"(?m:a(?-m:.)+)", "ab\n", {{0, 2}}},
        {"(?:m)+(?=m)", "mmm", {{0, 2}}},
    };
    for (const Case& c : cases) {
        CAPTURE(c.pattern);
        CHECK(look(c.pattern, c.text).matches == c.matches);
    }
}

TEST_CASE("white space that ends a line is found as by its plain expression, which is slower") {
    Rng rng(7, 1);
    std::uint64_t drawn = 0;
    const std::vector<std::string> letters{"a", " ", " ", "\t", "\n", "\n", "\xC2\x85", "\xE3\x80\x80"};
    for (int round = 0; round < 2000; round++) {
        std::string text;
        for (std::uint64_t n = rng.below(12, drawn++); n > 0; n--)
            text += letters[rng.below(letters.size(), drawn++)];
        CAPTURE(text);
        REQUIRE(look("\\s+$", text).matches == look("(?:\\s+$)", text).matches);
    }
    CHECK(look("\\s+$", "a \n \nb ").matches ==
          std::vector<std::pair<std::size_t, std::size_t>>{{1, 4}, {6, 7}});
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
                        "expected an expression that matches within limits of"));
        CHECK(looked(pattern, "a", 10'000) > 0);
    }
    CHECK(test::has(test::refusal([&] { looked("(a|aa)+$", "aaaaaaaaaaaaaaaaaaaa!", 50'000); }),
                    "it backtracks without end on this text"));
}
