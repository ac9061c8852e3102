#include "text/unicode.h"

#include <bit>
#include <cstring>

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <map>

namespace linnet {
namespace {

bool is_white_space(char32_t c) {
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
           c == 0x3000;
}

/// char_class bits by general category, in the order of utf8proc's enumeration (Cn Lu Ll Lt Lm Lo Mn Mc Me Nd
/// …).
constexpr std::array<std::uint8_t, 30> class_of_category = [] {
    using namespace char_class;
    std::array<std::uint8_t, 30> t{};
    t[UTF8PROC_CATEGORY_LU] = t[UTF8PROC_CATEGORY_LT] = letter | upper;
    t[UTF8PROC_CATEGORY_LL] = letter | lower;
    t[UTF8PROC_CATEGORY_LM] = t[UTF8PROC_CATEGORY_LO] = letter;
    t[UTF8PROC_CATEGORY_MN] = t[UTF8PROC_CATEGORY_MC] = t[UTF8PROC_CATEGORY_ME] = mark;
    t[UTF8PROC_CATEGORY_ND] = t[UTF8PROC_CATEGORY_NL] = t[UTF8PROC_CATEGORY_NO] = number;
    for (int c = UTF8PROC_CATEGORY_PC; c <= UTF8PROC_CATEGORY_PO; c++) t[c] = punctuation;
    for (int c = UTF8PROC_CATEGORY_SM; c <= UTF8PROC_CATEGORY_SO; c++) t[c] = symbol;
    return t;
}();

}  // namespace

ClassTable::ClassTable() {
    std::map<std::array<std::uint8_t, 128>, std::uint16_t> seen;
    const std::array<std::uint8_t, 128> blank{};
    for (std::uint32_t page = 0; page < (0x110000 >> 7); page++) {
        std::array<std::uint8_t, 128> classes{};
        // Planes 4 to 13 have no characters, and 15 and 16 are private: asking about each would cost 2 ms.
        if (page < (0x40000 >> 7) || page == (0xE0000 >> 7) || page == (0xE0000 >> 7) + 1 ||
            page == (0xE0000 >> 7) + 2 || page == (0xE0000 >> 7) + 3)
            for (std::uint32_t i = 0; i < 128; i++) {
                char32_t code = page << 7 | i;
                auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
                classes[i] = static_cast<std::uint8_t>(class_of_category[category] |
                                                       (is_white_space(code) ? char_class::space : 0));
            }
        else
            classes = blank;
        auto [it, fresh] = seen.try_emplace(classes, static_cast<std::uint16_t>(seen.size()));
        if (fresh) pages_.insert(pages_.end(), classes.begin(), classes.end());
        page_of_[page] = it->second;
    }
}

const ClassTable& ClassTable::get() {
    static const ClassTable table;
    return table;
}

void append_utf8(std::string& out, char32_t c) {
    auto put = [&](char32_t b) { out += static_cast<char>(b); };
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
}

std::size_t valid_utf8_prefix(std::string_view text) {
    const char *p = text.data(), *end = p + text.size();
    while (p < end) {
        while (end - p >= 16) {
            std::uint64_t a, b;
            std::memcpy(&a, p, 8);
            std::memcpy(&b, p + 8, 8);
            a &= 0x8080808080808080u;
            if (!(a | (b & 0x8080808080808080u))) {
                p += 16;
                continue;
            }
            if constexpr (std::endian::native == std::endian::little) p += a ? std::countr_zero(a) >> 3 : 8;
            break;
        }
        if (p == end) break;
        Char c = decode_utf8(p, end);
        if (!c.valid) break;
        p += c.size;
    }
    return static_cast<std::size_t>(p - text.data());
}

bool is_control_char(char32_t c) {
    if (c == '\t' || c == '\n' || c == '\r') return false;
    auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
           category == UTF8PROC_CATEGORY_CN || category == UTF8PROC_CATEGORY_CO;
}

bool is_word_char(char32_t c) {
    auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
    // Alphabetic is letters, letter numbers and Other_Alphabetic; the latter outside marks is U+24B6–U+24E9
    // and the squared and negative letters U+1F130–U+1F189.
    return (class_of_category[category] & (char_class::letter | char_class::mark)) ||
           category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
           category == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) ||
           (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
}

bool is_bert_punctuation(char32_t c) {
    if (c < 0x80)
        return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    return ClassTable::get().of(c) & char_class::punctuation;
}

bool is_cjk(char32_t c) {
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) ||
           (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

}  // namespace linnet
