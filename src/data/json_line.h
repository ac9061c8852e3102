// One line of JSON Lines: the text of one field, found without building a tree.
#pragma once
#include <string>
#include <string_view>

namespace linnet {

struct JsonFieldError {
    std::size_t at = 0;  // byte of the line
    std::string expected, got;
};

/// Appends the value of the top-level string field `field` of the object that is `line` to `out`, unescaped.
/// False with `error` filled (and `out` as it was) where the line is no JSON (RFC 8259, every part of it is
/// checked, nesting to 512 levels), no object, has the field not, twice, or not as a string, or where an
/// escape spells a lone surrogate. Bytes beyond ASCII pass as they are: whoever takes the text checks its
/// UTF-8.
bool extract_json_field(std::string_view line, std::string_view field, std::string& out,
                        JsonFieldError& error);

}  // namespace linnet
