// Pictures: IDX files as MNIST's (LeCun), PGM and PPM (Netpbm, binary "P5" and "P6" of 8 bits), PNG
// (png_read.h).
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace linnet {

/// The longest side of a picture, in pixels.
inline constexpr std::int64_t most_picture_side = 1 << 14;

struct PictureShape {
    std::int64_t width = 0, height = 0, channels = 1;
    std::size_t bytes() const { return static_cast<std::size_t>(width * height * channels); }
    bool operator==(const PictureShape&) const = default;
};

/// Pictures of one shape, each [height, width, channels] of bytes.
struct Pictures {
    PictureShape shape;
    std::vector<std::uint8_t> pixels;
    std::size_t count() const { return shape.bytes() == 0 ? 0 : pixels.size() / shape.bytes(); }
    std::span<const std::uint8_t> operator[](std::size_t i) const {
        return std::span(pixels).subspan(i * shape.bytes(), shape.bytes());
    }
};

/// An IDX file of bytes in three dimensions, [count, height, width]. Error(Exit::input) for another magic
/// number, or where the file's size is not what its head says.
Pictures read_idx_pictures(const std::string& path);
/// One of bytes in one dimension, [count]; Error(Exit::input) where it has another count.
std::vector<std::uint8_t> read_idx_labels(const std::string& path, std::size_t count);
/// The name of the labels of an IDX file of pictures, as MNIST's are named: "a-labels-idx1-ubyte" of
/// "a-images-idx3-ubyte". Error(Exit::input) for another name.
std::string labels_beside(const std::string& path);

/// A PNG, a PGM, a PPM or an IDX file, told by its first bytes. Pictures of another size are resized where
/// that is asked for, colours averaged to grey where the model has one channel; otherwise they are refused.
Pictures read_pictures_file(const std::string& path, const PictureShape& wanted, bool resize);

/// [patches, patch · patch · channels] with values from 0 to 1, row by row; `free_first`: a row of zeros
/// before them.
std::vector<float> patches_of(const PictureShape& shape, std::span<const std::uint8_t> pixels,
                              std::int64_t patch, bool free_first);

}  // namespace linnet
