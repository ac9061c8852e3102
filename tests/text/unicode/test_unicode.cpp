#include "text/unicode/unicode.h"

#include <doctest/doctest.h>
#include <utf8proc.h>

#include <string>

#include "base/rng.h"

using namespace linnet;

namespace {

std::size_t by_library(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size()) {
        utf8proc_int32_t code;
        const auto size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at),
                                           static_cast<utf8proc_ssize_t>(text.size() - at), &code);
        if (size <= 0) break;
        at += static_cast<std::size_t>(size);
    }
    return at;
}

}  // namespace

TEST_CASE("the valid prefix of UTF-8 is utf8proc's, for every border of the ranges at every place") {
    // The ends of every range in Unicode's table 3-7, and a letter.
    constexpr unsigned char bytes[] = {'a',  0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                       0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED,
                                       0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
    constexpr std::size_t n = std::size(bytes);
    int wrong = 0;
    for (std::size_t i = 0; i < n * n * n * n; i++) {
        const char word[4] = {static_cast<char>(bytes[i % n]), static_cast<char>(bytes[i / n % n]),
                              static_cast<char>(bytes[i / n / n % n]),
                              static_cast<char>(bytes[i / n / n / n])};
        // Across the border of a block, where blocks begin at once; then at the end of the text.
        for (std::size_t before : {std::size_t{0}, 13 + i % 5, 29 + i % 5}) {
            std::string text(before, 'x');
            if (i % 2 && before > 16) text.replace(0, 2, "\xC3\xA9");
            text.append(word, 4);
            if (i % 3) text.append(20, 'y');
            wrong += valid_utf8_prefix(text) != by_library(text);
        }
    }
    CHECK(wrong == 0);
}

TEST_CASE("the valid prefix of UTF-8 is utf8proc's for random characters with one byte changed") {
    Rng rng(7, 1);
    int wrong = 0;
    for (std::uint64_t i = 0; i < 20000; i++) {
        std::string text;
        const std::uint64_t characters = rng.below(40, i * 64);
        for (std::uint64_t k = 0; k < characters; k++) {
            constexpr std::uint32_t ends[] = {0x80, 0x800, 0xD800, 0x110000};
            append_utf8(text,
                        static_cast<char32_t>(rng.below(ends[rng.below(4, i * 64 + k)], i * 64 + k + 1)));
        }
        wrong += valid_utf8_prefix(text) != by_library(text);
        if (text.empty()) continue;
        text[rng.below(text.size(), i * 64 + 50)] = static_cast<char>(rng.below(256, i * 64 + 51));
        wrong += valid_utf8_prefix(text) != by_library(text);
        text.resize(rng.below(text.size() + 1, i * 64 + 52));
        wrong += valid_utf8_prefix(text) != by_library(text);
    }
    CHECK(wrong == 0);
}
