// Regular expressions of JSON Schema (`pattern`) as expressions of a grammar.
#pragma once
#include <functional>
#include <string_view>

#include "generate/grammar/json_text.h"

namespace linnet {

/// The texts that a pattern (ECMA-262's notation) finds a match in, with each character as a JSON string
/// spells it, without the quotes. Known are characters and escapes, . classes \d \w \s (and \D \W \S),
/// groups, | * + ? {n,m}, and ^ $ at the ends of the whole or of its alternatives. `fail` is called with what
/// else is found, and throws.
using PatternFault = std::function<void(std::string_view found)>;
ExprId read_pattern(std::string_view pattern, Grammar& grammar, JsonText& json, const PatternFault& fail);

}  // namespace linnet
