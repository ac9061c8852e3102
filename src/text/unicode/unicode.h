// Unicode for tokenizers: character classes in tables that cost one or two loads.
// The facts come from utf8proc (its version decides the Unicode version).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace linnet {

/// One bit per class that the published pre-tokenizer patterns ask about. An unassigned character and a byte
/// that is no UTF-8 have none of them.
namespace char_class {
constexpr std::uint8_t letter = 1;        // \p{L}
constexpr std::uint8_t number = 2;        // \p{N}
constexpr std::uint8_t space = 4;         // White_Space (what \s means to Rust's and Oniguruma's expressions)
constexpr std::uint8_t mark = 8;          // \p{M}
constexpr std::uint8_t upper = 16;        // \p{Lu} \p{Lt}
constexpr std::uint8_t lower = 32;        // \p{Ll}
constexpr std::uint8_t punctuation = 64;  // \p{P}
constexpr std::uint8_t symbol = 128;      // \p{S}
}  // namespace char_class

/// U+2581, which stands for a space in SentencePiece's tokens.
inline constexpr std::string_view space_mark = "\xE2\x96\x81";

/// The offset of the first byte that is no UTF-8, or text.size().
std::size_t valid_utf8_prefix(std::string_view text);

/// Two-level table of char_class bits; built once (about 1 ms), then read from any thread.
class ClassTable {
  public:
    static const ClassTable& get();

    std::uint8_t of(char32_t code) const {
        return code > 0x10FFFF ? 0 : pages_[std::size_t{page_of_[code >> 7]} * 128 + (code & 127)];
    }
    std::uint8_t ascii(std::uint8_t byte) const { return pages_[byte]; }  // byte < 128: page 0 comes first
    /// Class and size of the character at p; class 0 and size 1 where it is no UTF-8.
    std::uint8_t at(const char* p, const char* end, std::uint8_t& size) const {
        const std::uint8_t b = static_cast<std::uint8_t>(*p);
        if (b < 0x80) {
            size = 1;
            return ascii(b);
        }
        Char c = decode_utf8(p, end);
        size = c.size;
        return c.valid ? of(c.code) : 0;
    }

  private:
    ClassTable();
    std::vector<std::uint8_t> pages_;  // 128 classes per page; equal pages are stored once
    std::uint16_t page_of_[0x110000 >> 7];
};

// Slower questions, straight from utf8proc.
bool is_control_char(char32_t code);  // \p{C} but tab, line feed, carriage return (BERT's notion)
bool is_word_char(char32_t code);     // \w: alphabetic, mark, decimal digit, connector punctuation, joiners
bool is_bert_punctuation(char32_t code);  // \p{P} and every ASCII symbol
bool is_cjk(char32_t code);               // the ideograph blocks that BERT separates

}  // namespace linnet
