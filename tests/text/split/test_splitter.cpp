// The hand-written splitters are their published expressions, on random and on hard text.
#include <doctest/doctest.h>

#include "base/rng.h"
#include "text/split/splitter.h"
#include "text/unicode/regex.h"
#include "text/unicode/unicode.h"

using namespace linnet;

namespace {

constexpr Split splitters[] = {Split::gpt2,  Split::cl100k, Split::llama3,
                               Split::qwen2, Split::o200k,  Split::tekken};

std::vector<std::size_t> by_hand(Split split, const std::string& text) {
    std::vector<std::size_t> ends;
    const char *begin = text.data(), *p = begin, *end = begin + text.size();
    splitting::with_splitter(split, [&]<class S>() {
        while (p < end) {
            p = S::next(p, end, ClassTable::get());
            ends.push_back(static_cast<std::size_t>(p - begin));
        }
    });
    return ends;
}

std::vector<std::size_t> by_pattern(const Regex& regex, const std::string& text) {
    std::vector<std::size_t> ends;
    Regex::Matches matches(regex, text);
    std::size_t at = 0;
    for (std::size_t begin, end; matches.next(begin, end); at = end) {
        REQUIRE(begin == at);  // the patterns leave nothing out
        ends.push_back(end);
    }
    REQUIRE(at == text.size());
    return ends;
}

/// Characters on whose class both libraries agree (their Unicode versions differ), many of each class.
std::vector<std::string> alphabet() {
    std::vector<std::string> out;
    for (const char* s : {"a",
                          "b",
                          "s",
                          "t",
                          "m",
                          "d",
                          "l",
                          "r",
                          "v",
                          "e",
                          "S",
                          "T",
                          "L",
                          "E",
                          "V",
                          "R",
                          "M",
                          "D",
                          "A",
                          "Z",
                          "'",
                          "'",
                          "'",
                          " ",
                          " ",
                          " ",
                          "\n",
                          "\r",
                          "\t",
                          "\v",
                          "0",
                          "7",
                          "9",
                          "!",
                          "/",
                          "_",
                          ".",
                          "<",
                          "-",
                          "\xC5\xBF",
                          "é",
                          "É",
                          "ß",
                          "ǅ",
                          "中",
                          "文",
                          "か",
                          "ʰ",
                          "ª",
                          "́",
                          "̈",
                          "ः",
                          "⃝",
                          "½",
                          "Ⅷ",
                          "٣",
                          "€",
                          "…",
                          "„",
                          "\xC2\xA0",
                          "\xC2\x85",
                          "\xE2\x80\xA8",
                          "\xE3\x80\x80",
                          "\xE1\xA0\x8E",
                          "\xE2\x80\x8D",
                          "😀",
                          "👍🏽",
                          "𝒜",
                          "𐐀",
                          "𐐨",
                          "\x01"})
        out.emplace_back(s);
    return out;
}

}  // namespace

TEST_CASE("hand-written splitters equal PCRE2 on random text") {
    const std::vector<std::string> letters = alphabet();
    Rng rng(7, 0);
    std::uint64_t counter = 0;
    for (Split split : splitters) {
        const Regex regex(split_pattern(split), "test", "pattern");
        for (int round = 0; round < 4000; round++) {
            std::string text;
            const std::size_t length = 1 + rng.below(24, counter++);
            // Draw from a few characters at a time, so that runs and repeats are common.
            const std::size_t few = 2 + rng.below(6, counter++), base = rng.below(letters.size(), counter++);
            for (std::size_t i = 0; i < length; i++) {
                const bool any = rng.below(3, counter++) == 0;
                const std::size_t pick = any ? rng.below(letters.size(), counter++)
                                             : (base + rng.below(few, counter++) * 7) % letters.size();
                text += letters[pick];
            }
            CAPTURE(text);
            REQUIRE(by_hand(split, text) == by_pattern(regex, text));
        }
    }
}

TEST_CASE("hand-written splitters equal PCRE2 on every short text of hard characters") {
    const std::vector<std::string> hard = {"a", "A", "'", "s", " ", "\n", "1", "!", "中", "́", "\xC5\xBF"};
    for (Split split : splitters) {
        const Regex regex(split_pattern(split), "test", "pattern");
        const std::size_t n = hard.size();
        for (std::size_t code = 0; code < n * n * n * n; code++) {
            std::string text;
            for (std::size_t rest = code, i = 0; i < 4; i++, rest /= n) text += hard[rest % n];
            if (by_hand(split, text) != by_pattern(regex, text)) {
                CAPTURE(text);
                REQUIRE(by_hand(split, text) == by_pattern(regex, text));
            }
        }
    }
}

TEST_CASE("digits apart and then GPT-2's words equal the two expressions in turn") {
    const Regex digit(digit_pattern, "test", ""), words(split_pattern(Split::gpt2), "test", "");
    const std::vector<std::string> letters = alphabet();
    Rng rng(9, 0);
    std::uint64_t counter = 0;
    for (int round = 0; round < 4000; round++) {
        std::string text;
        for (std::size_t i = 0, n = 1 + rng.below(20, counter++); i < n; i++)
            text +=
                rng.below(3, counter++) ? letters[rng.below(letters.size(), counter++)] : std::string("5");
        std::vector<std::size_t> ends;
        auto piece = [&](std::size_t from, std::size_t to) {
            for (std::size_t e : by_pattern(words, text.substr(from, to - from))) ends.push_back(from + e);
        };
        Regex::Matches digits(digit, text);
        std::size_t at = 0;
        for (std::size_t b, e; digits.next(b, e); at = e) {
            if (b > at) piece(at, b);
            ends.push_back(e);
        }
        if (at < text.size()) piece(at, text.size());
        CAPTURE(text);
        REQUIRE(by_hand(Split::gpt2_digits, text) == ends);
    }
}

TEST_CASE("a text may be cut at safe_cut without changing a word") {
    const std::vector<std::string> letters = alphabet();
    Rng rng(11, 0);
    std::uint64_t counter = 0;
    for (int round = 0; round < 2000; round++) {
        std::string text;
        for (int i = 0; i < 40; i++) text += letters[rng.below(letters.size(), counter++)];
        const std::size_t cut = safe_cut(text, rng.below(text.size(), counter++), round % 2);
        for (Split split : splitters) {
            std::vector<std::size_t> left = by_hand(split, text.substr(0, cut));
            for (std::size_t e : by_hand(split, text.substr(cut))) left.push_back(cut + e);
            CAPTURE(text);
            REQUIRE(left == by_hand(split, text));
        }
    }
}

TEST_CASE("an expression that backtracks without end is an error, not a hang") {
    const Regex evil("(a+)+$", "tokenizer.json", "pre_tokenizer");
    const std::string text = std::string(60, 'a') + "b";
    Regex::Matches matches(evil, text);
    std::size_t b = 0, e = 0;
    CHECK_THROWS_WITH_AS(matches.next(b, e), doctest::Contains("(a+)+$"), std::runtime_error);
    CHECK_THROWS_WITH(Regex("(a", "f.json", "x"),
                      doctest::Contains("f.json: x: expected a regular expression"));
}
