// What is wrong with a text that should be UTF-8 (RFC 3629), and mending it.
#pragma once
#include <string>
#include <string_view>

namespace linnet {

inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// What stands where the text is no longer UTF-8 (valid_utf8_prefix), for a message: "a stray continuation
/// byte 0x80", "an overlong form", "a lone surrogate", …
std::string utf8_fault_name(std::string_view text, std::size_t at);

/// Appends the text with every byte that is no UTF-8 replaced by U+FFFD.
void append_repaired(std::string_view text, std::string& out);

/// "UTF-16 (little-endian)" and such where the beginning of a file says that it is such a text; else empty.
std::string_view wide_encoding(std::string_view head);

/// Error(Exit::input) that names UTF-16 or UTF-32 where the beginning of a file says that it is such a text.
void refuse_wide_encoding(std::string_view file, std::string_view head);

}  // namespace linnet
