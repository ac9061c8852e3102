// PNG files made by libpng's writer, and by hand where that would refuse.
#pragma once
#include <png.h>
#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace linnet::test {

struct PngForm {
    std::uint32_t width = 1, height = 1;
    int colour = PNG_COLOR_TYPE_GRAY, depth = 8;
    std::vector<png_color> palette = {};
    std::vector<std::uint8_t> palette_alpha = {};
    const png_color_16* transparent = nullptr;  // the one colour that is
    bool interlaced = false;
};

/// A PNG with these rows, as they lie in a file of this form.
inline std::string png_of(const PngForm& form, const std::vector<std::uint8_t>& bytes) {
    std::string out;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(
        png, &out,
        [](png_structp p, png_bytep data, std::size_t size) {
            static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<const char*>(data), size);
        },
        [](png_structp) {});
    png_set_IHDR(png, info, form.width, form.height, form.depth, form.colour,
                 form.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    if (!form.palette.empty())
        png_set_PLTE(png, info, form.palette.data(), static_cast<int>(form.palette.size()));
    if (!form.palette_alpha.empty() || form.transparent)
        png_set_tRNS(png, info, form.palette_alpha.data(), static_cast<int>(form.palette_alpha.size()),
                     form.transparent);
    png_write_info(png, info);
    std::vector<std::uint8_t> copy = bytes;
    std::vector<png_bytep> rows;
    const std::size_t row = png_get_rowbytes(png, info);
    for (std::uint32_t y = 0; y < form.height; y++) rows.push_back(copy.data() + y * row);
    png_write_image(png, rows.data());
    png_write_end(png, nullptr);
    png_destroy_write_struct(&png, &info);
    return out;
}

inline std::string big_endian(std::uint32_t n) {
    return {static_cast<char>(n >> 24), static_cast<char>(n >> 16 & 255), static_cast<char>(n >> 8 & 255),
            static_cast<char>(n & 255)};
}

inline constexpr std::string_view png_signature("\x89PNG\r\n\x1a\n");

inline std::string png_chunk(std::string_view type, std::string_view data) {
    const std::string checked = std::string(type) + std::string(data);
    const auto sum =
        crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size()));
    return big_endian(static_cast<std::uint32_t>(data.size())) + checked +
           big_endian(static_cast<std::uint32_t>(sum));
}

/// Grey of 8 bits, with these packed rows and whatever its head says of their size.
inline std::string png_saying(std::uint32_t width, std::uint32_t height, std::string_view packed) {
    return std::string(png_signature) +
           png_chunk("IHDR", big_endian(width) + big_endian(height) + std::string("\x08\0\0\0\0", 5)) +
           png_chunk("IDAT", packed) + png_chunk("IEND", "");
}

}  // namespace linnet::test
