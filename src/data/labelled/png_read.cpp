#include "data/labelled/png_read.h"

#include <png.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "base/error.h"

namespace linnet {
namespace {

/// What libpng's callbacks need: the bytes that are left, and why a call was given up.
struct Source {
    const std::byte* next;
    std::size_t left;
    bool no_memory = false;
    char problem[120] = "";
};

/// libpng is C: it is left by its longjmp, never by an exception.
[[noreturn]] void give_up(png_structp png, png_const_charp message) {
    auto* source = static_cast<Source*>(png_get_error_ptr(png));
    std::snprintf(source->problem, sizeof source->problem, "%s", message);
    png_longjmp(png, 1);
}

void ignore(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, std::size_t count) {
    auto* source = static_cast<Source*>(png_get_io_ptr(png));
    if (count > source->left) png_error(png, "its end too early");
    std::memcpy(to, source->next, count);
    source->next += count, source->left -= count;
}

void* allocate(png_structp png, png_alloc_size_t bytes) {
    void* memory = std::malloc(bytes);
    if (!memory) static_cast<Source*>(png_get_mem_ptr(png))->no_memory = true;
    return memory;
}

void release(png_structp, void* memory) {
    std::free(memory);
}

class PngReader {
  public:
    explicit PngReader(const MappedFile& file)
        : file_(file), source_{file.bytes().data(), file.bytes().size()} {
        png_ = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &source_, give_up, ignore, &source_, allocate,
                                        release);
        if (png_) info_ = png_create_info_struct(png_);
        if (info_) return;
        png_destroy_read_struct(&png_, &info_, nullptr);
        throw std::bad_alloc();
    }
    PngReader(const PngReader&) = delete;
    PngReader& operator=(const PngReader&) = delete;
    ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

    Pictures read() {
        if (!read_head()) refuse("head");
        check_size();
        if (!choose_form()) refuse("head");
        Pictures picture;
        channels_ = png_get_channels(png_, info_);
        picture.shape = {png_get_image_width(png_, info_), png_get_image_height(png_, info_), channels_};
        const auto row = static_cast<std::size_t>(picture.shape.width * channels_);
        if (const std::size_t found = png_get_rowbytes(png_, info_); found != row)
            fail_input(file_.path(), "head", "rows of " + std::to_string(row) + " bytes",
                       std::to_string(found));
        picture.pixels.resize(picture.shape.bytes());
        rows_.resize(static_cast<std::size_t>(picture.shape.height));
        for (std::size_t y = 0; y < rows_.size(); y++) rows_[y] = picture.pixels.data() + y * row;
        if (!read_rows()) refuse("pixels");
        return channels_ % 2 == 0 ? on_white(std::move(picture)) : picture;
    }

  private:
    [[noreturn]] void refuse(const char* where) const {
        if (source_.no_memory) throw std::bad_alloc();
        fail_input(file_.path(), where, "a whole PNG picture", source_.problem);
    }

    // Nothing with a destructor may begin to live in these three: libpng's errors jump over it.
    bool read_head() {
        if (setjmp(png_jmpbuf(png_))) return false;  // NOLINT(cert-err52-cpp)
        png_set_read_fn(png_, &source_, read_bytes);
        png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_size() names the side
        png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);  // texts, profiles, times
        png_set_crc_action(png_, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
        png_read_info(png_, info_);
        return true;
    }
    /// 8 bits of grey or of colours, with alpha where the file has it.
    bool choose_form() {
        if (setjmp(png_jmpbuf(png_))) return false;  // NOLINT(cert-err52-cpp)
        const int colour = png_get_color_type(png_, info_);
        if (colour == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
        if (colour == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
        if (png_get_valid(png_, info_, PNG_INFO_tRNS)) png_set_tRNS_to_alpha(png_);
        png_set_scale_16(png_);
        png_set_interlace_handling(png_);
        png_read_update_info(png_, info_);
        return true;
    }
    bool read_rows() {
        if (setjmp(png_jmpbuf(png_))) return false;  // NOLINT(cert-err52-cpp)
        png_read_image(png_, rows_.data());
        png_read_end(png_, nullptr);
        return true;
    }

    /// Before there is any memory for pixels: no longer than a picture's sides may be, nor more than the file
    /// can hold, as deflate packs at most 1032 bytes into one.
    void check_size() const {
        constexpr std::int64_t most_packed = 1032;
        const std::int64_t width = png_get_image_width(png_, info_),
                           height = png_get_image_height(png_, info_);
        for (auto [side, length] : {std::pair("width", width), {"height", height}})
            if (length > most_picture_side)
                fail_input(file_.path(), side, "1 to " + std::to_string(most_picture_side),
                           std::to_string(length));
        const std::int64_t bits = width * png_get_channels(png_, info_) * png_get_bit_depth(png_, info_),
                           least = (bits + 7) / 8 * height / most_packed;
        if (static_cast<std::int64_t>(file_.bytes().size()) < least)
            fail_input(file_.path(), "pixels", "at least " + std::to_string(least) + " bytes of them",
                       "a file of " + std::to_string(file_.bytes().size()));
    }

    /// The picture without its last channel, by whose share its others cover white.
    static Pictures on_white(Pictures picture) {
        const auto from = static_cast<std::size_t>(picture.shape.channels), to = from - 1;
        const std::size_t count = picture.pixels.size() / from;
        for (std::size_t i = 0; i < count; i++) {
            const unsigned alpha = picture.pixels[i * from + to];
            for (std::size_t c = 0; c < to; c++)
                picture.pixels[i * to + c] = static_cast<std::uint8_t>(
                    (picture.pixels[i * from + c] * alpha + 255 * (255 - alpha) + 127) / 255);
        }
        picture.shape.channels--;
        picture.pixels.resize(count * to);
        return picture;
    }

    const MappedFile& file_;
    Source source_;
    png_structp png_ = nullptr;
    png_infop info_ = nullptr;
    std::int64_t channels_ = 0;
    std::vector<png_bytep> rows_;
};

}  // namespace

Pictures read_png(const MappedFile& file) {
    return PngReader(file).read();
}

}  // namespace linnet
