#include "text/vocabulary.h"

#include <array>
#include <cstring>

#include "text/unicode.h"

namespace linnet {

std::uint64_t hash_bytes(const char* p, std::size_t n) {
    constexpr std::uint64_t k = 0x9E3779B97F4A7C15u;
    std::uint64_t h = n * k, v;
    auto mix = [&](std::uint64_t x) {
        unsigned __int128 product = static_cast<unsigned __int128>(h ^ x) * k;
        h = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
    };
    while (n >= 8) {
        std::memcpy(&v, p, 8);
        mix(v);
        p += 8;
        n -= 8;
    }
    if (n) {
        v = 0;
        std::memcpy(&v, p, n);
        mix(v + 1);
    }
    return h ^ h >> 29;
}

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes) {
    blob_.reserve(bytes);
    begin_.reserve(tokens + 1);
    types_.reserve(tokens);
    scores_.reserve(tokens);
    std::size_t want = 16;
    while (want < tokens * 2) want *= 2;
    if (want > slots_.size() && types_.empty()) slots_.assign(want, {0, -1});
}

void Vocabulary::grow() {
    std::vector<Slot> old(slots_.empty() ? 16 : slots_.size() * 2, {0, -1});
    old.swap(slots_);
    const std::size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
        if (slot.id < 0) continue;
        std::size_t i = slot.hash & mask;
        while (slots_[i].id >= 0) i = (i + 1) & mask;
        slots_[i] = slot;
    }
}

TokenId Vocabulary::add(std::string_view spelling, TokenType type, float score) {
    if (slots_.size() < (types_.size() + 1) * 2) grow();
    const TokenId id = size();
    const std::uint32_t hash = static_cast<std::uint32_t>(hash_bytes(spelling));
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = hash & mask;
    TokenId found = -1;
    for (; slots_[i].id >= 0; i = (i + 1) & mask)
        if (slots_[i].hash == hash && this->spelling(slots_[i].id) == spelling) {
            found = slots_[i].id;
            break;
        }
    if (found < 0) slots_[i] = {hash, id};
    blob_ += spelling;
    begin_.push_back(blob_.size());
    types_.push_back(type);
    scores_.push_back(score);
    return found;
}

TokenId Vocabulary::find(std::string_view spelling, std::uint64_t full) const {
    if (slots_.empty()) return -1;
    const std::uint32_t hash = static_cast<std::uint32_t>(full);
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = hash & mask; slots_[i].id >= 0; i = (i + 1) & mask)
        if (slots_[i].hash == hash && this->spelling(slots_[i].id) == spelling) return slots_[i].id;
    return -1;
}

namespace byte_alphabet {
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
    out.reserve(bytes.size() * 2);
    for (char c : bytes) out += spell(static_cast<std::uint8_t>(c));
    return out;
}

void unspell(std::string_view spelling, std::string& out) {
    const Alphabet& a = alphabet();
    const char *p = spelling.data(), *end = p + spelling.size();
    while (p < end) {
        Char c = decode_utf8(p, end);
        if (c.valid && c.code < a.of_code.size() && a.of_code[c.code] >= 0)
            out += static_cast<char>(a.of_code[c.code]);
        else
            out.append(p, c.size);
        p += c.size;
    }
}

}  // namespace byte_alphabet

int byte_of_spelling(std::string_view s) {
    auto hex = [](char c) {
        return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    };
    if (s.size() != 6 || s.substr(0, 3) != "<0x" || s[5] != '>') return -1;
    int high = hex(s[3]), low = hex(s[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::string spelling_of_byte(std::uint8_t byte) {
    constexpr char digits[] = "0123456789ABCDEF";
    return std::string("<0x") + digits[byte >> 4] + digits[byte & 15] + ">";
}

}  // namespace linnet
