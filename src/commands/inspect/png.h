// Pictures for pages: PNG (ISO/IEC 15948) of one byte per pixel, whose colours a palette says.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace linnet {

using Palette = std::array<std::array<std::uint8_t, 3>, 256>;  // red, green, blue

/// `pixels` row by row from the top, width · height of them.
std::string png(std::int64_t width, std::int64_t height, std::span<const std::uint8_t> pixels,
                const Palette& palette);

}  // namespace linnet
