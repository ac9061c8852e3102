// IEEE binary16 and bfloat16, bit for bit, in portable code (the kernels use instructions where they exist).
#pragma once
#include <bit>
#include <cstdint>

namespace linnet {

inline float f16_to_f32(std::uint16_t h) {
    std::uint32_t sign = std::uint32_t{h & 0x8000u} << 16, rest = h & 0x7FFFu;
    if (rest >= 0x7C00u) return std::bit_cast<float>(sign | 0x7F800000u | (rest & 0x3FFu) << 13);
    if (rest >= 0x0400u) return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000u));
    float magnitude = static_cast<float>(rest) * 0x1p-24f;  // subnormal: exact
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

/// Round to nearest, ties to even; overflow becomes infinity, NaN stays NaN (quiet).
inline std::uint16_t f32_to_f16(float f) {
    std::uint32_t x = std::bit_cast<std::uint32_t>(f), sign = x >> 16 & 0x8000u, a = x & 0x7FFFFFFFu;
    if (a > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u | (a >> 13 & 0x3FFu));
    if (a >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7C00u);
    if (a < 0x38800000u) {  // subnormal: let the float adder round at the right bit
        float shifted = std::bit_cast<float>(a) + 0.5f;
        return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u));
    }
    std::uint32_t rounded = a - 0x38000000u + 0xFFFu + (a >> 13 & 1u);
    return static_cast<std::uint16_t>(sign | rounded >> 13);
}

inline float bf16_to_f32(std::uint16_t h) {
    return std::bit_cast<float>(std::uint32_t{h} << 16);
}

inline std::uint16_t f32_to_bf16(float f) {
    std::uint32_t x = std::bit_cast<std::uint32_t>(f);
    if ((x & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>(x >> 16 | 0x40u);
    return static_cast<std::uint16_t>((x + 0x7FFFu + (x >> 16 & 1u)) >> 16);
}

}  // namespace linnet
