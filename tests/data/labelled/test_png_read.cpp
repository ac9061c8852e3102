#include "data/labelled/png_read.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "data/labelled/png_made.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

using Bytes = std::vector<std::uint8_t>;

Pictures read_back(const Scratch& s, const std::string& bytes) {
    write_text(s / "p.png", bytes);
    return read_png(MappedFile(s / "p.png"));
}

/// What is wrong with these bytes; empty: they are a picture.
std::string fault(const Scratch& s, const std::string& bytes) {
    try {
        read_back(s, bytes);
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::input);
        const std::string line = error.what(), name = s / "p.png: ";
        CHECK_MESSAGE(line.starts_with(name), line);
        return line.substr(std::min(name.size(), line.size()));
    }
    return "";
}

}  // namespace

TEST_CASE(
    "PNG of every colour type, depth and interlacing is read as 8 bits of grey or of colours, on white") {
    Scratch s;
    const std::vector<png_color> palette = {{10, 20, 30}, {200, 100, 0}};
    png_color_16 grey{}, colour{};
    grey.gray = 7, colour.red = 1, colour.green = 2, colour.blue = 3;
    struct Row {
        const char* name;
        PngForm form;
        Bytes stored, pixels;
        int channels;
    };
    const Row rows[] = {
        {"grey of 1", {3, 1, PNG_COLOR_TYPE_GRAY, 1}, {0xA0}, {255, 0, 255}, 1},
        {"grey of 2", {3, 1, PNG_COLOR_TYPE_GRAY, 2}, {0x1B}, {0, 85, 170}, 1},
        {"grey of 4", {2, 1, PNG_COLOR_TYPE_GRAY, 4}, {0x1F}, {17, 255}, 1},
        {"grey of 8", {2, 2, PNG_COLOR_TYPE_GRAY, 8}, {1, 2, 3, 4}, {1, 2, 3, 4}, 1},
        {"grey of 16", {2, 1, PNG_COLOR_TYPE_GRAY, 16}, {0x7F, 0xFF, 0x80, 0x80}, {127, 128}, 1},
        {"palette of 1", {2, 1, PNG_COLOR_TYPE_PALETTE, 1, palette}, {0x40}, {10, 20, 30, 200, 100, 0}, 3},
        {"palette of 8", {2, 1, PNG_COLOR_TYPE_PALETTE, 8, palette}, {1, 0}, {200, 100, 0, 10, 20, 30}, 3},
        {"palette, one entry half transparent",
         {2, 1, PNG_COLOR_TYPE_PALETTE, 8, palette, {51}},
         {1, 0},
         {200, 100, 0, 206, 208, 210},
         3},
        {"colours of 8", {1, 2, PNG_COLOR_TYPE_RGB, 8}, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4, 5, 6}, 3},
        {"colours of 16", {1, 1, PNG_COLOR_TYPE_RGB, 16}, {1, 0, 2, 0, 255, 255}, {1, 2, 255}, 3},
        {"grey with alpha", {3, 1, PNG_COLOR_TYPE_GA, 8}, {9, 255, 9, 0, 55, 51}, {9, 255, 215}, 1},
        {"grey with alpha of 16", {1, 1, PNG_COLOR_TYPE_GA, 16}, {0, 0, 255, 255}, {0}, 1},
        {"colours with alpha",
         {2, 1, PNG_COLOR_TYPE_RGBA, 8},
         {1, 2, 3, 255, 0, 100, 255, 102},
         {1, 2, 3, 153, 193, 255},
         3},
        {"one grey transparent", {2, 1, PNG_COLOR_TYPE_GRAY, 8, {}, {}, &grey}, {7, 8}, {255, 8}, 1},
        {"one colour transparent",
         {2, 1, PNG_COLOR_TYPE_RGB, 8, {}, {}, &colour},
         {1, 2, 3, 1, 2, 4},
         {255, 255, 255, 1, 2, 4},
         3},
    };
    for (const Row& row : rows)
        for (const bool interlaced : {false, true}) {
            CAPTURE(row.name);
            CAPTURE(interlaced);
            PngForm form = row.form;
            form.interlaced = interlaced;
            const Pictures read = read_back(s, png_of(form, row.stored));
            CHECK((read.shape == PictureShape{form.width, form.height, row.channels}));
            CHECK(read.pixels == row.pixels);
        }
    // As the other forms are: told by its first bytes, made the model's size and colours where asked.
    write_text(s / "p.png", png_of({2, 2, PNG_COLOR_TYPE_GRAY, 8}, {1, 2, 3, 4}));
    CHECK(read_pictures_file(s / "p.png", {2, 2, 1}, false)[0][3] == 4);
    CHECK(read_pictures_file(s / "p.png", {1, 1, 3}, true).pixels == Bytes{2, 2, 2});
    CHECK_THROWS_AS(read_pictures_file(s / "p.png", {1, 1, 1}, false), Error);
}

TEST_CASE("what a PNG says of gamma, profiles and texts changes nothing of its pixels") {
    Scratch s;
    const std::string plain = png_of({2, 1, PNG_COLOR_TYPE_GRAY, 8}, {50, 200});
    const std::size_t behind_head = png_signature.size() + 25;
    for (const std::string& chunk :
         {png_chunk("gAMA", big_endian(45455)), png_chunk("gAMA", big_endian(100000)),
          png_chunk("tEXt", std::string("a\0b", 3)), png_chunk("zTXt", "broken"), png_chunk("anCi", "x")}) {
        std::string more = plain;
        more.insert(behind_head, chunk);
        CHECK(read_back(s, more).pixels == Bytes{50, 200});
    }
    CHECK(read_back(s, plain + "what lies behind its end").pixels == Bytes{50, 200});
    std::string unknown = plain;
    unknown.insert(behind_head, png_chunk("ANCI", "x"));  // one that must be understood
    CHECK_FALSE(fault(s, unknown).empty());
}

TEST_CASE("a PNG cut short anywhere, or with any byte changed, is refused in one line") {
    Scratch s;
    const std::vector<png_color> palette = {{10, 20, 30}, {200, 100, 0}};
    for (const std::string& whole :
         {png_of({5, 4, PNG_COLOR_TYPE_GRAY, 8}, Bytes(20, 3)),
          png_of({5, 4, PNG_COLOR_TYPE_PALETTE, 8, palette, {9}, nullptr, true}, Bytes(20, 1))}) {
        REQUIRE(fault(s, whole).empty());
        for (std::size_t size = png_signature.size(); size < whole.size(); size++)
            CHECK_MESSAGE(!fault(s, whole.substr(0, size)).empty(), size);
        for (std::size_t at = png_signature.size(); at < whole.size(); at++) {
            std::string bad = whole;
            bad[at] = static_cast<char>(bad[at] ^ 0x21);
            CHECK_MESSAGE(!fault(s, bad).empty(), at);
        }
    }
    std::string bad = png_of({5, 4, PNG_COLOR_TYPE_GRAY, 8}, Bytes(20, 3));
    bad[bad.size() - 14] ^= 1;  // of the pixels' checksum
    CHECK(fault(s, bad) == "pixels: expected a whole PNG picture, got IDAT: CRC error");
    CHECK(fault(s, bad.substr(0, 40)) == "head: expected a whole PNG picture, got its end too early");
}

TEST_CASE("a PNG's size is bounded before there is memory for it") {
    Scratch s;
    CHECK(fault(s, png_saying(16385, 1, "x")) == "width: expected 1 to 16384, got 16385");
    CHECK(fault(s, png_saying(1, 0x7FFFFFFF, "x")) == "height: expected 1 to 16384, got 2147483647");
    CHECK(fault(s, png_saying(16384, 16384, "x")) ==
          "pixels: expected at least 260111 bytes of them, got a file of 58");
    for (const auto& [width, height] : {std::pair(0u, 1u), {1u, 0u}, {0x80000000u, 1u}, {0xFFFFFFFFu, 1u}})
        CHECK(
            fault(s, png_saying(width, height, "x")).starts_with("head: expected a whole PNG picture, got "));
    // Rows that are packed well enough, but fewer than the head says.
    const std::string three("\0abc", 4);
    Bytes packed(64);
    uLongf size = packed.size();
    REQUIRE(compress(packed.data(), &size, reinterpret_cast<const Bytef*>(three.data()), three.size()) ==
            Z_OK);
    const std::string_view rows(reinterpret_cast<const char*>(packed.data()), size);
    CHECK(read_back(s, png_saying(3, 1, rows)).pixels == Bytes{'a', 'b', 'c'});
    CHECK(fault(s, png_saying(3, 2, rows)) ==
          "pixels: expected a whole PNG picture, got Not enough image data");
    CHECK(fault(s, png_saying(3, 1, "no zlib stream"))
              .starts_with("pixels: expected a whole PNG picture, got "));
}
