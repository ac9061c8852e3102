#include "text/unicode/charsmap.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "text/unicode/normalizer.h"

using namespace linnet;

namespace {

std::string word(std::uint32_t v) {
    std::string s;
    for (int i = 0; i < 4; i++) s += static_cast<char>(v >> 8 * i & 255);
    return s;
}

/// A character map as SentencePiece writes it: a double array over the sequences' bytes, then the
/// replacements.
std::string blob_of(const std::map<std::string, std::string>& map) {
    std::string replacements;
    std::map<std::string, std::uint32_t> value;
    for (const auto& [from, to] : map) {
        value[from] = static_cast<std::uint32_t>(replacements.size());
        replacements += to + '\0';
    }
    std::map<std::string, std::set<unsigned char>> children;
    for (const auto& [from, to] : map)
        for (std::size_t i = 0; i < from.size(); i++)
            children[from.substr(0, i)].insert(static_cast<unsigned char>(from[i]));
    std::map<std::uint32_t, std::uint32_t> units;  // by place
    std::map<std::string, std::uint32_t> place{{"", 0}};
    units[0] = 0;
    for (const auto& [prefix, next] : children) {  // a prefix comes before what it begins
        const std::uint32_t at = place.at(prefix);
        std::uint32_t base = 1;
        auto taken = [&, &next = next] {
            if (units.contains(base)) return true;
            for (unsigned char c : next)
                if (units.contains(base ^ c)) return true;
            return false;
        };
        while (taken()) base++;
        units[at] |= (at ^ base) << 10;
        if (value.contains(prefix)) {
            units[at] |= 1u << 8;
            units[base] = 0x80000000u | value[prefix];
        } else {
            units[base] = 0x80000000u;  // nobody else's
        }
        for (unsigned char c : next) {
            place[prefix + static_cast<char>(c)] = base ^ c;
            units[base ^ c] = c;
        }
    }
    for (const auto& [from, at] : value) {
        if (children.contains(from)) continue;
        std::uint32_t base = 1;
        while (units.contains(base)) base++;
        units[place.at(from)] |= (place.at(from) ^ base) << 10 | 1u << 8;
        units[base] = 0x80000000u | at;
    }
    std::string array;
    for (std::uint32_t i = 0; i <= units.rbegin()->first; i++)
        array += word(units.contains(i) ? units[i] : 0x80000000u);
    return word(static_cast<std::uint32_t>(array.size())) + array + replacements;
}

std::string naive(const std::map<std::string, std::string>& map, std::string_view text) {
    std::string out;
    while (!text.empty()) {
        std::size_t best = 0;
        for (const auto& [from, to] : map)
            if (text.starts_with(from)) best = std::max(best, from.size());
        out += best ? map.at(std::string(text.substr(0, best))) : std::string(1, text[0]);
        text.remove_prefix(std::max<std::size_t>(best, 1));
    }
    return out;
}

}  // namespace

TEST_CASE("a character map replaces the longest sequence at each place") {
    Rng rng(4, 2);
    std::uint64_t counter = 0;
    for (int round = 0; round < 60; round++) {
        std::map<std::string, std::string> map;
        auto some = [&](std::uint64_t most) {
            std::string s;
            for (std::uint64_t n = rng.below(most, counter++); n > 0; n--)
                s += "abc"[rng.below(3, counter++)];
            return s;
        };
        for (int i = 0; i < 6; i++) map["abc"[rng.below(3, counter++)] + some(4)] = some(6);
        const CharsMap made(blob_of(map), "file", "map");
        for (int i = 0; i < 10; i++) {
            const std::string text = some(20) + "d" + some(20);
            std::string mapped = text;
            CHECK(made.apply(mapped, 1000));
            CHECK(mapped == naive(map, text));
        }
    }
}

TEST_CASE("a character map takes characters of several bytes, and makes U+FFFD of what is no UTF-8") {
    const CharsMap made(blob_of({{"\xEF\xBC\xA1", "A"}, {"\xC2\xA0", " "}, {"x", ""}}), "file", "map");
    std::string text = "\xEF\xBC\xA1\xC2\xA0x\xEF\xBC\xA2\xFF.";
    CHECK(made.apply(text, 1000));
    CHECK(text == "A \xEF\xBC\xA2\xEF\xBF\xBD.");
    text = std::string("\0x\0", 3);  // a NUL begins no sequence
    CHECK(made.apply(text, 1000));
    CHECK(text == std::string(2, '\0'));
    const CharsMap nothing(word(4) + word(0), "file", "map");  // no replacements
    CHECK(nothing.apply(text, 1000));
    CHECK(text == std::string(2, '\0'));
}

TEST_CASE("a damaged character map is refused, and one that makes a text grow without bound is stopped") {
    const std::string good = blob_of({{"a", "b"}});
    for (const std::string& blob :
         {std::string(), std::string("\1\0\0", 3), word(0) + "x", word(3) + "abc", word(1 << 20)})
        CHECK_THROWS_AS(CharsMap(blob, "file", "map"), Error);
    for (std::size_t n = 8; n < good.size(); n++) {
        std::string damaged = good, text = "abaab";
        damaged[n] = static_cast<char>(damaged[n] ^ 0x55);
        const CharsMap map(damaged, "file", "map");  // whatever it says, it ends within its bytes
        map.apply(text, 1000);
    }
    auto map = std::make_shared<const CharsMap>(blob_of({{"a", std::string(5000, 'b')}}), "file", "map");
    Normalizer normalizer;
    NormalizerStep step;
    step.kind = NormalizerStep::Kind::precompiled;
    step.charsmap = map;
    normalizer.steps.push_back(step);
    std::string text = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    CHECK_THROWS_WITH(normalizer.apply(text, true), doctest::Contains("at most 5376 bytes from this text"));
}
