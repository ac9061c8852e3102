#include "text/train_split.h"

#include <utf8proc.h>

#include <array>

namespace linnet {
namespace {

CharacterClass class_of(std::uint32_t code) {
    bool blank = (code >= 9 && code <= 13) || code == 32 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
                 (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
                 code == 0x205F || code == 0x3000;
    if (blank) return CharacterClass::blank;
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO:
            return CharacterClass::letter;
        case UTF8PROC_CATEGORY_ND:
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_NO:
            return CharacterClass::digit;
        default:
            return CharacterClass::other;
    }
}

const std::array<CharacterClass, 128>& ascii() {
    static const auto table = [] {
        std::array<CharacterClass, 128> t{};
        for (std::uint32_t c = 0; c < 128; c++) t[c] = class_of(c);
        return t;
    }();
    return table;
}

/// The length of the contraction at text[at] == '\'', or 0.
std::size_t contraction(std::string_view text, std::size_t at) {
    std::string_view rest = text.substr(at + 1, 2);
    if (rest.empty()) return 0;
    if (rest[0] == 's' || rest[0] == 't' || rest[0] == 'm' || rest[0] == 'd') return 2;
    return rest == "re" || rest == "ve" || rest == "ll" ? 3 : 0;
}

}  // namespace

CharacterClass character_class(std::uint32_t code) {
    return code < 128 ? ascii()[code] : class_of(code);
}

Character character_at(std::string_view text, std::size_t at) {
    auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) return {lead, 1};
    utf8proc_int32_t code = 0;
    auto n = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at,
                              static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (n <= 0) return {0xFFFD, 1};
    return {static_cast<std::uint32_t>(code), static_cast<std::uint32_t>(n)};
}

void append_utf8(std::uint32_t code, std::string& out) {
    utf8proc_uint8_t bytes[4];
    auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
    out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
}

void split_words_gpt2(std::string_view text, std::vector<std::uint32_t>& ends) {
    const auto& table = ascii();
    std::size_t n = text.size(), at = 0;
    auto peek = [&](std::size_t i) {
        auto c = static_cast<unsigned char>(text[i]);
        if (c < 0x80) return std::pair(table[c], std::uint32_t{1});
        Character character = character_at(text, i);
        return std::pair(class_of(character.code), character.length);
    };
    while (at < n) {
        if (text[at] == '\'')
            if (std::size_t length = contraction(text, at)) {
                ends.push_back(static_cast<std::uint32_t>(at += length));
                continue;
            }
        auto [kind, length] = peek(at);
        std::size_t end = at + length;
        if (text[at] == ' ' && end < n) {
            auto [next, next_length] = peek(end);
            if (next != CharacterClass::blank) {
                kind = next;
                end += next_length;
            }
        }
        std::size_t last = at;  // where the last character of the run begins
        while (end < n) {
            auto [next, next_length] = peek(end);
            if (next != kind) break;
            last = end;
            end += next_length;
        }
        // \s+(?!\S): a run of blanks before something else leaves its last blank for that.
        if (kind == CharacterClass::blank && end < n && last > at) end = last;
        ends.push_back(static_cast<std::uint32_t>(at = end));
    }
}

}  // namespace linnet
