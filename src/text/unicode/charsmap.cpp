#include "text/unicode/charsmap.h"

#include <algorithm>

#include "base/error.h"
#include "text/unicode/unicode.h"

namespace linnet {

CharsMap::CharsMap(std::string_view blob, std::string_view file, std::string_view where) {
    auto word = [&](std::size_t at) {
        std::uint32_t v = 0;
        for (int i = 3; i >= 0; i--)
            v = v << 8 | static_cast<std::uint8_t>(blob[at + static_cast<std::size_t>(i)]);
        return v;
    };
    if (blob.size() < 4)
        fail_input(file, where, "a character map of at least 4 bytes", std::to_string(blob.size()));
    const std::uint32_t size = word(0);
    if (size % 4 != 0 || size == 0 || size > blob.size() - 4)
        fail_input(file, where, "an array within the map's " + std::to_string(blob.size()) + " bytes",
                   std::to_string(size));
    units_.resize(size / 4);
    for (std::size_t i = 0; i < units_.size(); i++) units_[i] = word(4 + i * 4);
    replacements_ = std::string(blob.substr(4 + size));
    if (!replacements_.empty() && replacements_.back() != '\0') replacements_ += '\0';
}

std::size_t CharsMap::longest(std::string_view text, std::size_t& replacement) const {
    // A unit: bits 0–7 label (with bit 31 clear), bit 8 has a leaf, bits 9 and 10–30 offset; a leaf's value:
    // bits 0–30.
    auto offset = [](std::uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
    std::size_t node = offset(units_[0]), length = 0;
    // A map made to mislead ends too.
    const std::size_t most = std::min<std::size_t>(text.size(), 256);
    for (std::size_t i = 0; i < most; i++) {
        const std::uint8_t byte = static_cast<std::uint8_t>(text[i]);
        if (byte == 0) break;
        node ^= byte;
        if (node >= units_.size()) break;
        const std::uint32_t unit = units_[node];
        if ((unit & (0x80000000u | 0xFF)) != byte) break;
        node ^= offset(unit);
        if (node >= units_.size()) break;
        if (unit >> 8 & 1) {
            const std::size_t value = units_[node] & 0x7FFFFFFF;
            if (value < replacements_.size()) {
                length = i + 1;
                replacement = value;
            }
        }
    }
    return length;
}

bool CharsMap::apply(std::string& text, std::size_t most) const {
    std::string out;
    out.reserve(text.size());
    const char *p = text.data(), *end = p + text.size();
    while (p < end) {
        std::size_t replacement = 0;
        if (std::size_t n = longest({p, static_cast<std::size_t>(end - p)}, replacement)) {
            out += replacements_.c_str() + replacement;
            if (out.size() > most) return false;
            p += n;
            continue;
        }
        Char c = decode_utf8(p, end);
        if (c.valid)
            out.append(p, c.size);
        else
            out += "\xEF\xBF\xBD";
        p += c.size;
    }
    text.swap(out);
    return text.size() <= most;
}

}  // namespace linnet
