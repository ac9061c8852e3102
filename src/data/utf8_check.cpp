#include "data/utf8_check.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/utf8.h"
#include "text/unicode/unicode.h"

namespace linnet {

void append_repaired(std::string_view text, std::string& out) {
    for (;;) {
        std::size_t fault = valid_utf8_prefix(text);
        out.append(text.substr(0, fault));
        if (fault == text.size()) return;
        out.append("\xEF\xBF\xBD");
        text.remove_prefix(fault + 1);
    }
}

std::string utf8_fault_name(std::string_view text, std::size_t at) {
    auto byte = [&](std::size_t i) {
        return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
    };
    auto tail = [&](std::size_t i) { return at + i < text.size() && is_tail(text[at + i]); };
    unsigned lead = byte(0);
    if ((lead == 0xC0 || lead == 0xC1) && tail(1)) return "an overlong form";
    if ((lead == 0xE0 && tail(1) && byte(1) < 0xA0) || (lead == 0xF0 && tail(1) && byte(1) < 0x90))
        return "an overlong form";
    if (lead == 0xED && tail(1) && byte(1) >= 0xA0) return "a lone surrogate";
    if ((lead == 0xF4 && tail(1) && byte(1) >= 0x90)) return "a code point beyond U+10FFFF";
    char hex[8];
    std::snprintf(hex, sizeof hex, "0x%02X", lead);
    if (tail(0)) return std::string("a stray continuation byte ") + hex;
    if (lead >= 0xC2 && lead <= 0xF4) return std::string("a truncated character at byte ") + hex;
    return std::string("byte ") + hex;
}

std::string_view wide_encoding(std::string_view head) {
    using namespace std::string_view_literals;
    if (head.starts_with("\xFF\xFE\0\0"sv)) return "UTF-32 (little-endian)";
    if (head.starts_with("\0\0\xFE\xFF"sv)) return "UTF-32 (big-endian)";
    if (head.starts_with("\xFF\xFE")) return "UTF-16 (little-endian)";
    if (head.starts_with("\xFE\xFF")) return "UTF-16 (big-endian)";
    // Without a mark: Latin text as UTF-16 is a zero at every other byte.
    std::size_t n = std::min<std::size_t>(head.size(), 4096) / 2, zeros[2] = {0, 0};
    for (std::size_t i = 0; i < 2 * n; i++) zeros[i % 2] += head[i] == '\0';
    if (n >= 4 && zeros[1] * 10 > n * 7 && zeros[0] * 10 < n) return "UTF-16 (little-endian, unmarked)";
    if (n >= 4 && zeros[0] * 10 > n * 7 && zeros[1] * 10 < n) return "UTF-16 (big-endian, unmarked)";
    return {};
}

void refuse_wide_encoding(std::string_view file, std::string_view head) {
    const std::string_view wide = wide_encoding(head);
    if (!wide.empty()) fail_input(file, "", "UTF-8 text", wide, "convert it with iconv");
}

}  // namespace linnet
