#include "text/unicode/byte_alphabet.h"

#include <array>

#include "text/unicode/unicode.h"

namespace linnet::byte_alphabet {
namespace {

struct Alphabet {
    std::array<std::string, 256> of_byte;
    std::array<std::int16_t, 0x180> of_code;

    // GPT-2: the printable bytes of Latin-1 spell themselves, the other 68 are U+0100, U+0101, … in order.
    Alphabet() {
        of_code.fill(-1);
        char32_t next = 0x100;
        for (int b = 0; b < 256; b++) {
            bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
            char32_t code = printable ? static_cast<char32_t>(b) : next++;
            append_utf8(of_byte[static_cast<std::size_t>(b)], code);
            of_code[code] = static_cast<std::int16_t>(b);
        }
    }
};

const Alphabet& alphabet() {
    static const Alphabet instance;
    return instance;
}

}  // namespace

std::string_view spell(std::uint8_t byte) {
    return alphabet().of_byte[byte];
}

std::string spell(std::string_view bytes) {
    std::string out;
    spell(bytes, out);
    return out;
}

void spell(std::string_view bytes, std::string& out) {
    const Alphabet& a = alphabet();
    for (char c : bytes) out += a.of_byte[static_cast<std::uint8_t>(c)];
}

void unspell(std::string_view spelling, std::string& out) {
    const Alphabet& a = alphabet();
    const char *p = spelling.data(), *end = p + spelling.size();
    std::size_t size = out.size();
    out.resize(size + spelling.size());
    while (p < end) {
        const std::uint8_t c = static_cast<std::uint8_t>(*p);
        // ASCII is its own spelling, where it is one; all others are of two bytes, below U+0180.
        if (c >= 0xC2 && c < 0xC6 && end - p >= 2 && is_tail(p[1])) {
            const std::int16_t byte = a.of_code[static_cast<std::size_t>((c & 0x1F) << 6 | (p[1] & 0x3F))];
            if (byte >= 0) {
                out[size++] = static_cast<char>(byte);
                p += 2;
                continue;
            }
        }
        out[size++] = *p++;
    }
    out.resize(size);
}

}  // namespace linnet::byte_alphabet
