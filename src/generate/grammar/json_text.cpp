#include "generate/grammar/json_text.h"

#include <algorithm>
#include <cmath>

namespace linnet {
namespace {

constexpr std::int64_t largest_whole = 9'999'999'999'999'999;  // 16 digits
// Of numbers in a range: with few_digits behind the point a double tells them apart, and many_digits below.
constexpr double largest_magnitude = 1e12, many_digits_below = 1e9;
constexpr std::int32_t few_digits = 3, many_digits = 6;

const CharSet digit{{'0', '9'}};

/// What may stand in a string as it is (DEL may, but is left out).
const CharSet& unescaped() {
    static const CharSet set = CharSet{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}}.inverted();
    return set;
}

std::string escape_of(char32_t code) {
    switch (code) {
        case '\b':
            return "\\b";
        case '\f':
            return "\\f";
        case '\n':
            return "\\n";
        case '\r':
            return "\\r";
        case '\t':
            return "\\t";
        case '"':
            return "\\\"";
        case '\\':
            return "\\\\";
        default:
            break;
    }
    const char* hex = "0123456789abcdef";
    return std::string("\\u00") + hex[code >> 4] + hex[code & 15];
}

}  // namespace

ExprId JsonText::cached(const std::string& name, auto&& make) {
    if (auto found = made_.find(name); found != made_.end()) return found->second;
    const RuleId rule = grammar_.declare(name);  // before it is made: it may contain itself
    const ExprId id = grammar_.reference(rule);
    made_[name] = id;
    grammar_.define(rule, make());
    return id;
}

ExprId JsonText::space() {
    return cached("space", [&] {
        const ExprId blank = grammar_.literal(" "), line = grammar_.literal("\n");
        return grammar_.optional(
            grammar_.choice({blank, grammar_.sequence({line, grammar_.repeat(blank, 0, 20)})}));
    });
}

ExprId JsonText::string(std::int32_t min, std::int32_t max) {
    const ExprId one = cached("character", [&] {
        const CharSet hex{{'0', '9'}, {'a', 'f'}, {'A', 'F'}};
        const ExprId h = grammar_.chars(hex), quote = grammar_.literal("\\");
        const ExprId below =
            grammar_.sequence({grammar_.chars(hex.without({{'d', 'd'}, {'D', 'D'}})), h, h, h});
        const ExprId d = grammar_.sequence(
            {grammar_.chars({{'d', 'd'}, {'D', 'D'}}), grammar_.chars({{'0', '7'}}), h, h});  // no surrogates
        return grammar_.choice(
            {grammar_.chars(unescaped()),
             grammar_.sequence(
                 {quote, grammar_.choice(
                             {grammar_.chars(CharSet::of("\"\\/bfnrt")),
                              grammar_.sequence({grammar_.literal("u"), grammar_.choice({below, d})})})})});
    });
    const std::string name = "string " + std::to_string(min) + " " + std::to_string(max);
    return cached(name, [&] {
        const ExprId quote = grammar_.literal("\"");
        return grammar_.sequence({quote, grammar_.repeat(one, min, max), quote});
    });
}

ExprId JsonText::character(const CharSet& set) {
    std::vector<std::pair<char32_t, char32_t>> key;
    for (const CharRange& r : set.ranges()) key.emplace_back(r.first, r.last);
    if (auto found = characters_.find(key); found != characters_.end()) return found->second;
    std::vector<ExprId> choices;
    static const CharSet escaped{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
    if (const CharSet as_is = set.without(escaped); !as_is.empty()) choices.push_back(grammar_.chars(as_is));
    for (char32_t code = 0; code <= '\\'; code++)
        if (escaped.contains(code) && set.contains(code))
            choices.push_back(grammar_.literal(escape_of(code)));
    const ExprId made = grammar_.rule_of("character", grammar_.choice(std::move(choices)));
    characters_[key] = made;
    return made;
}

ExprId JsonText::string_but(const std::vector<std::string>& names) {
    const ExprId quote = grammar_.literal("\"");
    const ExprId rest = cached("rest of a name", [&] {
        return grammar_.sequence({grammar_.repeat(grammar_.chars(unescaped()), 0, -1), quote});
    });
    std::vector<std::u32string> sorted;
    for (const std::string& name : names) sorted.push_back(code_points(name));
    std::sort(sorted.begin(), sorted.end());
    // The names from first to last begin alike, for `depth` characters.
    auto node = [&](auto& self, std::size_t first, std::size_t last, std::size_t depth) -> ExprId {
        std::vector<ExprId> choices;
        CharSet others = unescaped();
        if (sorted[first].size() == depth)
            first++;
        else
            choices.push_back(quote);
        while (first < last) {
            const char32_t code = sorted[first][depth];
            std::size_t end = first;
            while (end < last && sorted[end][depth] == code) end++;
            if (unescaped().contains(code))
                choices.push_back(
                    grammar_.sequence({grammar_.chars({{code, code}}), self(self, first, end, depth + 1)}));
            others = others.without({{code, code}});
            first = end;
        }
        choices.push_back(grammar_.sequence({grammar_.chars(others), rest}));
        return grammar_.choice(std::move(choices));
    };
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    if (sorted.empty()) return grammar_.sequence({quote, rest});
    return grammar_.rule_of("other name", grammar_.sequence({quote, node(node, 0, sorted.size(), 0)}));
}

ExprId JsonText::digits(std::int32_t min, std::int32_t max) {
    return grammar_.repeat(grammar_.chars(digit), min, max);
}

/// The numbers of as many digits from low to high.
ExprId JsonText::between(const std::string& low, const std::string& high) {
    const auto n = static_cast<std::int32_t>(low.size());
    if (low.find_first_not_of('0') == std::string::npos && high.find_first_not_of('9') == std::string::npos)
        return digits(n, n);
    const auto a = static_cast<char32_t>(low[0]), b = static_cast<char32_t>(high[0]);
    const std::string low_rest = low.substr(1), high_rest = high.substr(1);
    const std::string zeros(low_rest.size(), '0'), nines(low_rest.size(), '9');
    auto begins = [&](char32_t first, char32_t last, const std::string& from, const std::string& to) {
        return grammar_.sequence({grammar_.chars({{first, last}}), between(from, to)});
    };
    if (a == b) return begins(a, b, low_rest, high_rest);
    std::vector<ExprId> choices{begins(a, a, low_rest, nines), begins(b, b, zeros, high_rest)};
    if (a + 1 < b) choices.push_back(begins(a + 1, b - 1, zeros, nines));
    return grammar_.choice(std::move(choices));
}

/// Whole numbers from low to high, both not negative.
std::optional<ExprId> JsonText::whole(std::int64_t low, std::int64_t high) {
    std::vector<ExprId> choices;
    for (std::int64_t size = 1; low <= high; size *= 10) {
        const std::int64_t end = std::min(high, size * 10 - 1);
        if (low <= end) choices.push_back(between(std::to_string(low), std::to_string(end)));
        low = std::max(low, end + 1);
    }
    if (choices.empty()) return std::nullopt;
    return grammar_.choice(std::move(choices));
}

std::optional<ExprId> JsonText::integer(const NumberRange& range) {
    auto clamped = [](double x) {
        const auto most = static_cast<double>(largest_whole);
        return static_cast<std::int64_t>(std::clamp(x, -most, most));
    };
    std::int64_t low = -largest_whole, high = largest_whole;
    constexpr auto beyond = static_cast<double>(largest_whole);  // the next number, 10^16
    if ((range.low && *range.low >= beyond) || (range.high && *range.high <= -beyond)) return std::nullopt;
    if (range.low) {
        const double up = std::ceil(*range.low);
        low = clamped(range.low_exclusive && up == *range.low ? up + 1 : up);
    }
    if (range.high) {
        const double down = std::floor(*range.high);
        high = clamped(range.high_exclusive && down == *range.high ? down - 1 : down);
    }
    std::vector<ExprId> choices;
    if (auto e = whole(std::max<std::int64_t>(low, 0), high)) choices.push_back(*e);
    if (low < 0)
        if (auto e = whole(std::max<std::int64_t>(1, -high), -low))
            choices.push_back(grammar_.sequence({grammar_.literal("-"), *e}));
    if (choices.empty()) return std::nullopt;
    return grammar_.choice(std::move(choices));
}

/// Numbers from low to high, both not negative: whole ones, with a fraction where that stays inside.
std::optional<ExprId> JsonText::magnitude(double low, bool low_exclusive, double high, bool high_exclusive) {
    high = std::min(high, largest_magnitude);
    if (low > high) return std::nullopt;
    const auto first = static_cast<std::int64_t>(std::ceil(low)),
               last = static_cast<std::int64_t>(std::floor(high));
    const bool first_out = low_exclusive && static_cast<double>(first) == low,
               last_out = high_exclusive && static_cast<double>(last) == high;
    const ExprId point = grammar_.literal(".");
    const std::int32_t places = high < many_digits_below ? many_digits : few_digits;
    std::vector<ExprId> choices;
    if (first_out && first < last)  // above it, by a fraction that is not 0
        choices.push_back(grammar_.sequence({grammar_.literal(std::to_string(first)), point,
                                             grammar_.repeat(grammar_.literal("0"), 0, places / 2),
                                             grammar_.chars({{'1', '9'}}), digits(0, places / 2 - 1)}));
    if (auto e = whole(first_out ? first + 1 : first, last - 1))
        choices.push_back(
            grammar_.sequence({*e, grammar_.optional(grammar_.sequence({point, digits(1, places)}))}));
    if (!last_out && last >= (first_out ? first + 1 : first))
        choices.push_back(grammar_.literal(std::to_string(last)));
    if (choices.empty()) return std::nullopt;
    return grammar_.choice(std::move(choices));
}

std::optional<ExprId> JsonText::number(const NumberRange& range) {
    const ExprId minus = grammar_.literal("-");
    if (range.open())
        return cached("number", [&] {
            const ExprId fraction = grammar_.sequence({grammar_.literal("."), digits(1, 16)});
            const ExprId exponent =
                grammar_.sequence({grammar_.chars(CharSet::of("eE")),
                                   grammar_.optional(grammar_.chars(CharSet::of("+-"))), digits(1, 2)});
            return grammar_.sequence({grammar_.optional(minus), *whole(0, largest_whole),
                                      grammar_.optional(fraction), grammar_.optional(exponent)});
        });
    const double low = range.low.value_or(-largest_magnitude), high = range.high.value_or(largest_magnitude);
    std::vector<ExprId> choices;
    if (high >= 0)
        if (auto e =
                magnitude(std::max(low, 0.0), low >= 0 && range.low_exclusive, high, range.high_exclusive))
            choices.push_back(*e);
    if (low < 0)
        if (auto e =
                magnitude(std::max(-high, 0.0), high >= 0 || range.high_exclusive, -low, range.low_exclusive))
            choices.push_back(grammar_.sequence({minus, *e}));
    if (choices.empty()) return std::nullopt;
    return grammar_.choice(std::move(choices));
}

ExprId JsonText::members(char open, ExprId member, std::int32_t min, std::int32_t max, char close) {
    const ExprId begin = grammar_.sequence({grammar_.literal({&open, 1}), space()});
    const ExprId end = grammar_.sequence({space(), grammar_.literal({&close, 1})});
    if (max == 0) return grammar_.sequence({begin, grammar_.literal({&close, 1})});
    const ExprId one = grammar_.rule_of("member", member);
    const ExprId more = grammar_.repeat(grammar_.sequence({grammar_.literal(","), space(), one}),
                                        std::max(min - 1, 0), max < 0 ? -1 : max - 1);
    const ExprId some = grammar_.sequence({one, more, end});
    const ExprId none = grammar_.literal({&close, 1});
    return grammar_.sequence({begin, min > 0 ? some : grammar_.choice({none, some})});
}

ExprId JsonText::any() {
    return cached("value", [&] {
        return grammar_.choice({any_object(), any_array(), string(0, -1), *number({}),
                                grammar_.literal("true"), grammar_.literal("false"),
                                grammar_.literal("null")});
    });
}

ExprId JsonText::any_object() {
    return cached("object", [&] {
        const ExprId member = grammar_.sequence({string(0, -1), grammar_.literal(":"), space(), any()});
        return members('{', member, 0, -1, '}');
    });
}

ExprId JsonText::any_array() {
    return cached("array", [&] { return members('[', any(), 0, -1, ']'); });
}

}  // namespace linnet
