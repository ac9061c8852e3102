#include "text/unicode/unicode.h"

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
    const std::array<std::uint8_t, 128> none{};
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
            classes = none;
        auto [it, fresh] = seen.try_emplace(classes, static_cast<std::uint16_t>(seen.size()));
        if (fresh) pages_.insert(pages_.end(), classes.begin(), classes.end());
        page_of_[page] = it->second;
    }
}

const ClassTable& ClassTable::get() {
    static const ClassTable table;
    return table;
}

namespace {

using Bytes [[gnu::vector_size(16)]] = std::uint8_t;

Bytes load(const char* p) {
    Bytes v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <class V>
bool any(const V& v) {
    std::uint64_t half[2];
    std::memcpy(half, &v, sizeof half);
    return half[0] | half[1];
}

/// Whether the 16 bytes at p are those of valid UTF-8 (Unicode, table 3-7), given that what lies before p is,
/// and that the last of them may begin a character that goes on behind them. A byte must be a tail exactly
/// where one of the three before it asks for one; the rest is the ranges of single bytes and of second ones.
bool valid_block(const char* p) {
    const Bytes v = load(p), back1 = load(p - 1), back2 = load(p - 2), back3 = load(p - 3);
    const auto tail = (v >= 0x80) & (v < 0xC0);
    const auto wanted = (back1 >= 0xC0) | (back2 >= 0xE0) | (back3 >= 0xF0);
    const auto never = (v == 0xC0) | (v == 0xC1) | (v >= 0xF5);
    const auto overlong = ((back1 == 0xE0) & (v < 0xA0)) | ((back1 == 0xF0) & (v < 0x90));
    const auto beyond = ((back1 == 0xED) & (v >= 0xA0)) | ((back1 == 0xF4) & (v >= 0x90));
    return !any((tail ^ wanted) | never | overlong | beyond);
}

}  // namespace

std::size_t valid_utf8_prefix(std::string_view text) {
    const char *const begin = text.data(), *const end = begin + text.size(), *p = begin;
    while (end - p >= 16 && !any(load(p) & 0x80)) p += 16;
    auto character = [&] {
        const Char c = decode_utf8(p, end);
        if (c.valid) p += c.size;
        return c.valid;
    };
    while (p < end && p - begin < 3)
        if (!character()) return static_cast<std::size_t>(p - begin);
    while (end - p >= 16 && valid_block(p)) p += 16;
    if (p - begin >= 3) {  // back to the beginning of a character that p lies in
        auto at = [&](int back) { return static_cast<std::uint8_t>(p[-back]); };
        p -= at(1) >= 0xC0 ? 1 : at(2) >= 0xE0 ? 2 : at(3) >= 0xF0 ? 3 : 0;
    }
    while (p < end && character()) {
    }
    return static_cast<std::size_t>(p - begin);
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
