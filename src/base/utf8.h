// Strict UTF-8 (RFC 3629), a character at a time.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace linnet {

/// A character read from a text. `size` is 1 and `valid` false where the bytes there are no UTF-8: overlong,
/// truncated, a surrogate, beyond U+10FFFF.
struct Char {
    char32_t code;
    std::uint8_t size;
    bool valid;
};

/// Whether it is a byte of a character and not its first.
constexpr bool is_tail(char c) {
    return (static_cast<std::uint8_t>(c) & 0xC0) == 0x80;
}

/// Characters of a text.
inline int character_count(std::string_view text) {
    return static_cast<int>(text.size() - static_cast<std::size_t>(std::ranges::count_if(text, is_tail)));
}

/// The character at p (p < end).
inline Char decode_utf8(const char* p, const char* end) {
    auto byte = [&](int i) { return static_cast<std::uint8_t>(p[i]); };
    auto tail = [&](int i) { return is_tail(p[i]); };
    const std::uint32_t b = byte(0);
    const std::ptrdiff_t left = end - p;
    if (b < 0x80) return {b, 1, true};
    if (b >= 0xC2 && b <= 0xDF && left >= 2 && tail(1)) return {(b & 0x1F) << 6 | (byte(1) & 0x3F), 2, true};
    if (b >= 0xE0 && b <= 0xEF && left >= 3 && tail(1) && tail(2)) {
        char32_t code = (b & 0x0F) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3F);
        if (code >= 0x800 && (code < 0xD800 || code > 0xDFFF)) return {code, 3, true};
    }
    if (b >= 0xF0 && b <= 0xF4 && left >= 4 && tail(1) && tail(2) && tail(3)) {
        char32_t code =
            (b & 0x07) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 | (byte(3) & 0x3F);
        if (code >= 0x10000 && code <= 0x10FFFF) return {code, 4, true};
    }
    return {b, 1, false};
}

/// `at`, moved back to where the character begins that it lies in.
inline std::size_t character_start(std::string_view text, std::size_t at) {
    for (int i = 0; i < 3 && at > 0 && at < text.size() && is_tail(text[at]); i++) at--;
    return at;
}

/// The bytes of a character at `to`, which has room for four; returns what lies behind them.
inline char* put_utf8(char* to, char32_t c) {
    auto put = [&](char32_t b) { *to++ = static_cast<char>(b); };
    if (c < 0x80) {
        put(c);
    } else if (c < 0x800) {
        put(0xC0 | c >> 6);
        put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
        put(0xE0 | c >> 12);
        put(0x80 | (c >> 6 & 0x3F));
        put(0x80 | (c & 0x3F));
    } else {
        put(0xF0 | c >> 18);
        put(0x80 | (c >> 12 & 0x3F));
        put(0x80 | (c >> 6 & 0x3F));
        put(0x80 | (c & 0x3F));
    }
    return to;
}

inline void append_utf8(std::string& out, char32_t c) {
    char bytes[4];
    out.append(bytes, put_utf8(bytes, c));
}

}  // namespace linnet
