// Pieces of JSON (RFC 8259) as expressions of a grammar.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generate/grammar/grammar.h"

namespace linnet {

/// Limits of a number, as JSON writes them without an exponent ("-0.5"); inclusive unless told.
struct NumberRange {
    std::optional<std::string> low, high;
    bool low_exclusive = false, high_exclusive = false;
    bool open() const { return !low && !high; }
};

/// Makes each piece once. Numbers have at most 16 digits before the point and 16 behind it. In a range they
/// have no exponent, zero has no sign, and those that may have a fraction have at most 15 digits in all,
/// which a double tells apart, so that what reads them finds them inside. Space between tokens is none, a
/// space, or a line end and up to 20 spaces.
class JsonText {
  public:
    explicit JsonText(Grammar& grammar) : grammar_(grammar) {}

    ExprId space();
    /// Quotes with `min` to `max` characters (max -1: without end) between them, each as itself or escaped.
    ExprId string(std::int32_t min, std::int32_t max);
    /// A string's character out of a set: itself, or escaped where JSON asks for it.
    ExprId character(const CharSet& set);
    /// Quotes with a text between them that is none of these, without escapes.
    ExprId string_but(const std::vector<std::string>& names);
    /// Whole numbers; nothing where none is in the range.
    std::optional<ExprId> integer(const NumberRange& range);
    /// Nothing where no number of so many digits is in the range.
    std::optional<ExprId> number(const NumberRange& range);
    ExprId any();
    ExprId any_object();
    ExprId any_array();
    /// { member, member, … } of one kind of member.
    ExprId members(char open, ExprId member, std::int32_t min, std::int32_t max, char close);

  private:
    ExprId cached(const std::string& name, auto&& make);
    /// A limit on the digits that are still to come, in front of the point and behind it.
    struct Limit {
        std::string_view digits;  // its own, which do not end in a zero; behind them are zeros without end
        bool exclusive = false;
        bool passed = false;  // the digits before have decided: any may follow
        char first() const { return digits.empty() ? '0' : digits[0]; }
        Limit rest() const { return {digits.substr(digits.empty() ? 0 : 1), exclusive, passed}; }
    };
    struct Magnitude;
    ExprId digits(std::int32_t min, std::int32_t max);
    ExprId fraction(std::int32_t places);
    std::optional<ExprId> numerals(Limit low, Limit high, std::int32_t whole, std::int32_t places);
    std::optional<ExprId> digit_and_rest(Limit low, Limit high, std::int32_t whole, std::int32_t places);
    std::optional<ExprId> magnitudes(const Magnitude& low, const std::optional<Magnitude>& high,
                                     std::int32_t most_digits, bool whole);
    std::optional<ExprId> in_range(const NumberRange& range, std::int32_t most_digits, bool whole);

    Grammar& grammar_;
    std::map<std::string, ExprId> made_;
    std::map<std::vector<std::pair<char32_t, char32_t>>, ExprId> characters_;
};

}  // namespace linnet
