#include "commands/inspect/png.h"

#include <zlib.h>

#include <new>
#include <string_view>
#include <vector>

namespace linnet {
namespace {

std::string big_endian(std::uint32_t n) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(n >> shift & 0xFF);
    return bytes;
}

/// Length, name, content, checksum of name and content.
std::string chunk(std::string_view name, std::string_view content) {
    const std::string sum = std::string(name) + std::string(content);
    const auto crc = crc32(0, reinterpret_cast<const Bytef*>(sum.data()), static_cast<uInt>(sum.size()));
    return big_endian(static_cast<std::uint32_t>(content.size())) + sum +
           big_endian(static_cast<std::uint32_t>(crc));
}

std::string compressed(const std::string& bytes) {
    uLongf size = compressBound(bytes.size());
    std::vector<Bytef> out(size);
    // There is room for any result, so that only memory can be wanting.
    if (compress2(out.data(), &size, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), 9) != Z_OK)
        throw std::bad_alloc();
    return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(size)};
}

}  // namespace

std::string png(std::int64_t width, std::int64_t height, std::span<const std::uint8_t> pixels,
                const Palette& palette) {
    constexpr std::string_view form("\x08\x03\0\0\0", 5);  // 8 bits, palette, the usual methods
    std::string rows, colours;
    for (std::int64_t y = 0; y < height; y++) {
        rows += '\0';  // no filter
        const auto row = pixels.subspan(static_cast<std::size_t>(y * width), static_cast<std::size_t>(width));
        rows.append(row.begin(), row.end());
    }
    for (const auto& colour : palette) colours.append(colour.begin(), colour.end());
    return std::string("\x89PNG\r\n\x1a\n") +
           chunk("IHDR", big_endian(static_cast<std::uint32_t>(width)) +
                             big_endian(static_cast<std::uint32_t>(height)) + std::string(form)) +
           chunk("PLTE", colours) + chunk("IDAT", compressed(rows)) + chunk("IEND", "");
}

}  // namespace linnet
