// Strict UTF-8 (RFC 3629), with a name for what is wrong.
#pragma once
#include <string>
#include <string_view>

namespace linnet {

/// The offset of the first byte that is no UTF-8, or text.size().
std::size_t utf8_fault(std::string_view text);

/// What stands there, for a message: "a stray continuation byte 0x80", "an overlong form", "a lone
/// surrogate", …
std::string utf8_fault_name(std::string_view text, std::size_t at);

/// Appends the text with every byte that is no UTF-8 replaced by U+FFFD.
void append_repaired(std::string_view text, std::string& out);

/// "UTF-16 (little-endian)" and the like where the beginning of a file says so; empty for anything else.
std::string_view wide_encoding(std::string_view head);

}  // namespace linnet
