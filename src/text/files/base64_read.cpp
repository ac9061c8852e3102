#include "text/files/base64_read.h"

#include <array>
#include <cstdint>

#include "base/base64.h"

namespace linnet {
namespace {

constexpr std::array<std::int8_t, 256> digit_of = [] {
    std::array<std::int8_t, 256> t{};
    t.fill(-1);
    for (std::int8_t i = 0; i < 64; i++) t[static_cast<std::uint8_t>(base64_digits[i])] = i;
    return t;
}();

}  // namespace

std::size_t decode_base64(std::string_view text, char* out) {
    if (text.empty() || text.size() % 4 != 0) return 0;
    std::size_t padding = 0;
    while (padding < 3 && text[text.size() - 1 - padding] == '=') padding++;
    std::int32_t all = padding < 3 ? 0 : -1;  // negative once a digit was none
    for (std::size_t i = 0; i < text.size(); i += 4) {
        std::int32_t digit[4];
        for (std::size_t k = 0; k < 4; k++)
            digit[k] = i + k < text.size() - padding
                           ? static_cast<std::int32_t>(digit_of[static_cast<std::uint8_t>(text[i + k])])
                           : 0;
        all |= digit[0] | digit[1] | digit[2] | digit[3];
        const std::int32_t bits = digit[0] << 18 | digit[1] << 12 | digit[2] << 6 | digit[3];
        out[i / 4 * 3] = static_cast<char>(bits >> 16);
        out[i / 4 * 3 + 1] = static_cast<char>(bits >> 8);
        out[i / 4 * 3 + 2] = static_cast<char>(bits);
    }
    return all < 0 ? 0 : text.size() / 4 * 3 - padding;
}

}  // namespace linnet
