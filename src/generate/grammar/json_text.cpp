#include "generate/grammar/json_text.h"

#include <algorithm>

namespace linnet {
namespace {

// Digits of a whole number, also of one with a fraction or an exponent; and of a number in a range, with
// those of its fraction.
constexpr std::int32_t most_digits_whole = 16, most_digits_ranged = 15;

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

/// Nothing, or a point and digits behind it.
ExprId JsonText::fraction(std::int32_t places) {
    if (places == 0) return grammar_.sequence({});
    return grammar_.optional(grammar_.sequence({grammar_.literal("."), digits(1, places)}));
}

/// A number without its sign.
struct JsonText::Magnitude {
    std::string digits;     // as Limit has them
    std::size_t whole = 1;  // how many there are before the point, zeros too
    bool exclusive = false;

    static Magnitude of(std::string_view text, bool exclusive) {
        if (text.starts_with('-')) text.remove_prefix(1);
        const std::size_t point = std::min(text.find('.'), text.size());
        Magnitude made{std::string(text.substr(0, point)), point, exclusive};
        if (point < text.size()) made.digits += text.substr(point + 1);
        made.digits.erase(made.digits.find_last_not_of('0') + 1);
        return made;
    }
};

/// The rest of a number between the limits: `whole` digits before a point, which may be followed by one and
/// up to `places` more. `whole` of -1: the point is written.
std::optional<ExprId> JsonText::numerals(Limit low, Limit high, std::int32_t whole, std::int32_t places) {
    // What is written is worth as much as with zeros behind it.
    const bool enough = low.passed || (low.digits.empty() && !low.exclusive);
    const bool too_much = !high.passed && high.digits.empty() && high.exclusive;
    if (too_much) return std::nullopt;
    if (enough) low = {{}, false, true};
    if (low.passed && high.passed) {
        if (whole < 0) return digits(0, places);
        return grammar_.sequence({digits(whole, whole), fraction(places)});
    }
    if (whole > 0) return digit_and_rest(low, high, whole - 1, places);
    std::optional<ExprId> more;
    if (places > 0) more = digit_and_rest(low, high, -1, places - 1);
    if (more && whole == 0) more = grammar_.sequence({grammar_.literal("."), *more});
    if (!enough) return more;
    return more ? grammar_.optional(*more) : grammar_.sequence({});
}

/// A digit, and then numerals() of `whole` and `places`.
std::optional<ExprId> JsonText::digit_and_rest(Limit low, Limit high, std::int32_t whole,
                                               std::int32_t places) {
    const char a = low.passed ? '0' : low.first(), b = high.passed ? '9' : high.first();
    std::vector<ExprId> choices;
    auto begin = [&](char from, char to, const Limit& low_rest, const Limit& high_rest) {
        if (from > to) return;
        if (auto rest = numerals(low_rest, high_rest, whole, places))
            choices.push_back(grammar_.sequence(
                {grammar_.chars({{static_cast<char32_t>(from), static_cast<char32_t>(to)}}), *rest}));
    };
    if (a == b) {
        begin(a, b, low.rest(), high.rest());
    } else if (a < b) {
        const Limit passed{{}, false, true};
        const bool at_low = !low.passed && (low.exclusive || low.digits.size() > 1), at_high = !high.passed;
        if (at_low) begin(a, a, low.rest(), passed);
        begin(static_cast<char>(a + at_low), static_cast<char>(b - at_high), passed, passed);
        if (at_high) begin(b, b, passed, high.rest());
    }
    if (choices.empty()) return std::nullopt;
    return grammar_.choice(std::move(choices));
}

/// Numbers that are not negative, by how many digits they have before the point.
std::optional<ExprId> JsonText::magnitudes(const Magnitude& low, const std::optional<Magnitude>& high,
                                           std::int32_t most_digits, bool whole) {
    std::vector<ExprId> choices;
    for (std::int32_t n = 1; n <= most_digits; n++) {
        const auto size = static_cast<std::size_t>(n);
        if (low.whole > size || (high && high->whole < size)) continue;
        const Limit from = low.whole < size ? Limit{"1"} : Limit{low.digits, low.exclusive};
        const Limit to =
            high && high->whole == size ? Limit{high->digits, high->exclusive} : Limit{{}, false, true};
        if (auto e = numerals(from, to, n, whole ? 0 : most_digits - n)) choices.push_back(*e);
    }
    if (choices.empty()) return std::nullopt;
    return grammar_.choice(std::move(choices));
}

std::optional<ExprId> JsonText::in_range(const NumberRange& range, std::int32_t most_digits, bool whole) {
    auto magnitude = [](const std::optional<std::string>& text, bool exclusive) {
        return text ? std::optional(Magnitude::of(*text, exclusive)) : std::nullopt;
    };
    const std::optional<Magnitude> low = magnitude(range.low, range.low_exclusive),
                                   high = magnitude(range.high, range.high_exclusive);
    const bool low_negative = low && range.low->starts_with('-') && !low->digits.empty(),
               high_negative = high && range.high->starts_with('-') && !high->digits.empty();
    std::vector<ExprId> choices;
    if (!high_negative)
        if (auto e = magnitudes(low && !low_negative ? *low : Magnitude{}, high, most_digits, whole))
            choices.push_back(*e);
    if (!low || low_negative)
        if (auto e = magnitudes(high_negative ? *high : Magnitude{{}, 1, true}, low, most_digits, whole))
            choices.push_back(grammar_.sequence({grammar_.literal("-"), *e}));
    if (choices.empty()) return std::nullopt;
    return grammar_.choice(std::move(choices));
}

std::optional<ExprId> JsonText::integer(const NumberRange& range) {
    return in_range(range, most_digits_whole, true);
}

std::optional<ExprId> JsonText::number(const NumberRange& range) {
    if (!range.open()) return in_range(range, most_digits_ranged, false);
    return cached("number", [&] {
        const ExprId exponent =
            grammar_.sequence({grammar_.chars(CharSet::of("eE")),
                               grammar_.optional(grammar_.chars(CharSet::of("+-"))), digits(1, 2)});
        return grammar_.sequence({grammar_.optional(grammar_.literal("-")),
                                  *magnitudes({}, std::nullopt, most_digits_whole, true), fraction(16),
                                  grammar_.optional(exponent)});
    });
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
