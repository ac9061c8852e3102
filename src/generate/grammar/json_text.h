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

/// Limits of a number; inclusive unless told.
struct NumberRange {
    std::optional<double> low, high;
    bool low_exclusive = false, high_exclusive = false;
    bool open() const { return !low && !high; }
};

/// Makes each piece once. Numbers have at most 16 digits before the point and 16 behind it (in a range up to
/// 1e12 and 3, below 1e9 6), so that what reads them finds them inside; space between tokens is none, a
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
    ExprId digits(std::int32_t min, std::int32_t max);
    ExprId between(const std::string& low, const std::string& high);
    std::optional<ExprId> whole(std::int64_t low, std::int64_t high);
    std::optional<ExprId> magnitude(double low, bool low_exclusive, double high, bool high_exclusive);

    Grammar& grammar_;
    std::map<std::string, ExprId> made_;
    std::map<std::vector<std::pair<char32_t, char32_t>>, ExprId> characters_;
};

}  // namespace linnet
