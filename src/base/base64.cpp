#include "base/base64.h"

#include <algorithm>
#include <cstdint>

namespace linnet {

std::string base64(std::string_view bytes) {
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t v = 0;
        const std::size_t n = std::min<std::size_t>(3, bytes.size() - i);
        for (std::size_t k = 0; k < 3; k++)
            v = v << 8 | (k < n ? static_cast<std::uint8_t>(bytes[i + k]) : 0u);
        for (std::size_t k = 0; k < 4; k++) out += k <= n ? base64_digits[v >> (18 - 6 * k) & 63] : '=';
    }
    return out;
}

}  // namespace linnet
