#include "data/labelled/images.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "data/binary_check.h"
#include "data/labelled/png_read.h"

namespace linnet {
namespace {

bool is_gzip(const MappedFile& file) {
    return file.text().starts_with("\x1f\x8b");
}

/// The head of an IDX file (bytes, so many dimensions) and its size checked against the file's.
std::vector<std::int64_t> idx_dimensions(const MappedFile& file, std::uint8_t rank) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.bytes().data());
    const std::size_t size = file.bytes().size(), head = 4 + std::size_t{4} * rank;
    auto number = [&](std::size_t at) {
        return std::int64_t{bytes[at]} << 24 | std::int64_t{bytes[at + 1]} << 16 |
               std::int64_t{bytes[at + 2]} << 8 | bytes[at + 3];
    };
    auto hex = [](std::int64_t n) {
        char text[16];
        std::snprintf(text, sizeof text, "0x%08llx", static_cast<unsigned long long>(n));
        return std::string(text);
    };
    if (size < head) fail_input(file.path(), "head", std::to_string(head) + " bytes", std::to_string(size));
    if (is_gzip(file)) fail_input(file.path(), "", "an IDX file", "a gzip file", "gunzip unpacks it");
    const std::int64_t magic = 0x0800 + rank;
    if (number(0) != magic)
        fail_input(file.path(), "magic number",
                   hex(magic) + " (IDX, bytes, " + std::to_string(rank) +
                       (rank == 1 ? " dimension)" : " dimensions)"),
                   hex(number(0)));
    std::vector<std::int64_t> dimensions;
    std::int64_t whole = 1;
    for (std::size_t d = 0; d < rank; d++) {
        dimensions.push_back(number(4 + 4 * d));
        if (d > 0 && (dimensions[d] < 1 || dimensions[d] > most_picture_side))
            fail_input(file.path(), "dimension " + std::to_string(d),
                       "1 to " + std::to_string(most_picture_side), std::to_string(dimensions[d]));
        whole *= dimensions[d];  // below 2^32 · 2^28
    }
    if (whole != static_cast<std::int64_t>(size - head))
        fail_input(file.path(), "size", std::to_string(whole) + " bytes behind the head, as it says",
                   std::to_string(size - head));
    if (dimensions[0] == 0) fail_input(file.path(), "count", "at least 1", "0");
    return dimensions;
}

/// The head of a PGM or PPM: numbers separated by white space, comments between them.
class NetpbmHead {
  public:
    explicit NetpbmHead(const MappedFile& file) : file_(file), text_(file.text()) {
        if (!text_.substr(at_).starts_with('#')) require_space("behind " + std::string(text_.substr(0, at_)));
    }
    std::int64_t number(const char* what, std::int64_t most) {
        skip();
        std::int64_t value = 0;
        const std::size_t begin = at_;
        for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])); at_++)
            if (value < std::int64_t{1} << 32) value = value * 10 + (text_[at_] - '0');
        if (at_ == begin || value < 1 || value > most)
            fail_input(file_.path(), what, "1 to " + std::to_string(most),
                       at_ == begin ? "nothing" : std::to_string(value));
        return value;
    }
    /// Where they begin: one white space stands before them.
    std::size_t pixels() const {
        require_space("before the pixels");
        return at_ + 1;
    }

  private:
    bool is_space() const { return std::isspace(static_cast<unsigned char>(text_[at_])) != 0; }
    /// Where the file does not end.
    void require_space(const std::string& where) const {
        if (at_ < text_.size() && !is_space())
            fail_input(file_.path(), "head", "white space " + where, quoted(text_.substr(at_, 1)));
    }
    void skip() {
        for (; at_ < text_.size() && (is_space() || text_[at_] == '#'); at_++)
            if (text_[at_] == '#') at_ = std::min(text_.find('\n', at_), text_.size() - 1);
    }
    const MappedFile& file_;
    std::string_view text_;
    std::size_t at_ = 2;
};

Pictures read_netpbm(const MappedFile& file) {
    Pictures picture;
    NetpbmHead head(file);
    picture.shape.channels = file.text()[1] == '6' ? 3 : 1;
    picture.shape.width = head.number("width", most_picture_side);
    picture.shape.height = head.number("height", most_picture_side);
    const std::int64_t most = head.number("largest value", 255);
    const std::size_t size = file.bytes().size(), wanted = picture.shape.bytes(), begin = head.pixels();
    if (size < begin || size - begin < wanted)
        fail_input(file.path(), "pixels", std::to_string(wanted) + " bytes",
                   std::to_string(size < begin ? 0 : size - begin));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.bytes().data()) + begin;
    picture.pixels.assign(bytes, bytes + wanted);
    if (most < 255)
        for (std::uint8_t& p : picture.pixels)
            p = static_cast<std::uint8_t>(std::min<std::int64_t>(p, most) * 255 / most);
    return picture;
}

Pictures to_grey(const Pictures& from) {
    Pictures grey;
    grey.shape = {from.shape.width, from.shape.height, 1};
    for (std::size_t i = 0; i + 2 < from.pixels.size(); i += 3)
        grey.pixels.push_back(static_cast<std::uint8_t>(
            (from.pixels[i] * 299 + from.pixels[i + 1] * 587 + from.pixels[i + 2] * 114 + 500) / 1000));
    return grey;
}

Pictures to_colours(const Pictures& from) {
    Pictures colours;
    colours.shape = {from.shape.width, from.shape.height, 3};
    for (std::uint8_t p : from.pixels) colours.pixels.insert(colours.pixels.end(), 3, p);
    return colours;
}

/// The mean of the pixels that a new one covers.
Pictures resized(const Pictures& from, const PictureShape& to) {
    Pictures out;
    out.shape = to;
    const PictureShape& s = from.shape;
    for (std::size_t n = 0; n < from.count(); n++)
        for (std::int64_t y = 0; y < to.height; y++)
            for (std::int64_t x = 0; x < to.width; x++) {
                const std::int64_t y0 = y * s.height / to.height, x0 = x * s.width / to.width;
                const std::int64_t y1 = std::max(y0 + 1, (y + 1) * s.height / to.height);
                const std::int64_t x1 = std::max(x0 + 1, (x + 1) * s.width / to.width);
                for (std::int64_t c = 0; c < s.channels; c++) {
                    std::int64_t sum = 0;
                    for (std::int64_t v = y0; v < y1; v++)
                        for (std::int64_t u = x0; u < x1; u++)
                            sum += from[n][static_cast<std::size_t>((v * s.width + u) * s.channels + c)];
                    out.pixels.push_back(static_cast<std::uint8_t>(sum / ((y1 - y0) * (x1 - x0))));
                }
            }
    return out;
}

[[noreturn]] void refuse_other(const MappedFile& file) {
    const std::string_view kind = binary_kind(file.text().substr(0, 4096));
    fail_input(file.path(), "", "a picture: PNG, PGM (P5), PPM (P6) or IDX",
               file.text().empty() ? "an empty file"
               : is_gzip(file)     ? "a gzip file"
               : kind.empty()      ? "another file"
                                   : kind,
               is_gzip(file) ? "gunzip unpacks it" : "");
}

std::string text_of(const PictureShape& s) {
    return std::to_string(s.width) + " x " + std::to_string(s.height) + " pixels" +
           (s.channels == 1 ? "" : " of " + std::to_string(s.channels) + " channels");
}

}  // namespace

Pictures read_idx_pictures(const std::string& path) {
    const MappedFile file(path);
    const std::vector<std::int64_t> d = idx_dimensions(file, 3);
    Pictures pictures;
    pictures.shape = {d[2], d[1], 1};
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.bytes().data());
    pictures.pixels.assign(bytes + 16, bytes + file.bytes().size());
    return pictures;
}

std::string labels_beside(const std::string& path) {
    const std::string pictures = "images-idx3", labels = "labels-idx1";
    const std::size_t at = path.rfind(pictures);
    if (at == std::string::npos)
        fail_input(path, "name", "one with " + pictures + " in it, beside one with " + labels, "another");
    return std::string(path).replace(at, pictures.size(), labels);
}

std::vector<std::uint8_t> read_idx_labels(const std::string& path, std::size_t count) {
    const MappedFile file(path);
    idx_dimensions(file, 1);
    if (file.bytes().size() - 8 != count)
        fail_input(path, "count", std::to_string(count) + ", as there are pictures",
                   std::to_string(file.bytes().size() - 8));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.bytes().data());
    return {bytes + 8, bytes + file.bytes().size()};
}

Pictures read_pictures_file(const std::string& path, const PictureShape& wanted, bool resize) {
    Pictures pictures;
    {
        const MappedFile file(path);
        if (file.text().starts_with("P5") || file.text().starts_with("P6"))
            pictures = read_netpbm(file);
        else if (file.text().starts_with(std::string_view("\0\0\x08", 3)))
            pictures = read_idx_pictures(path);
        else if (file.text().starts_with("\x89PNG\r\n\x1a\n"))
            pictures = read_png(file);
        else
            refuse_other(file);
    }
    if (pictures.shape.channels == 3 && wanted.channels == 1) pictures = to_grey(pictures);
    if (pictures.shape.channels == 1 && wanted.channels == 3) pictures = to_colours(pictures);
    if (pictures.shape == wanted) return pictures;
    if (!resize || pictures.shape.channels != wanted.channels)
        fail_input(path, "size", text_of(wanted), text_of(pictures.shape), "--resize changes it");
    return resized(pictures, wanted);
}

std::vector<float> patches_of(const PictureShape& shape, std::span<const std::uint8_t> pixels,
                              std::int64_t patch, bool free_first) {
    std::vector<float> rows;
    rows.reserve(shape.bytes() + static_cast<std::size_t>(patch * patch * shape.channels));
    if (free_first) rows.resize(static_cast<std::size_t>(patch * patch * shape.channels), 0.0F);
    for (std::int64_t y = 0; y < shape.height; y += patch)
        for (std::int64_t x = 0; x < shape.width; x += patch)
            for (std::int64_t v = y; v < y + patch; v++)
                for (std::int64_t i = x * shape.channels; i < (x + patch) * shape.channels; i++)
                    rows.push_back(
                        static_cast<float>(
                            pixels[static_cast<std::size_t>(v * shape.width * shape.channels + i)]) /
                        255.0F);
    return rows;
}

}  // namespace linnet
