#include "data/labelled/picture_folders.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/error.h"
#include "data/labelled/png_made.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

void put(const Scratch& s, const std::string& path, const std::string& bytes) {
    std::filesystem::create_directories(std::filesystem::path(s / path).parent_path());
    write_text(s / path, bytes);
}

std::string refused(const Scratch& s, bool skip_bad = false) {
    try {
        read_picture_folders({s / "a"}, {2, 1, 1}, false, skip_bad);
    } catch (const Error& error) {
        const std::string line = error.what();
        return line.starts_with(s.path) ? line.substr(s.path.size() + 1) : line;
    }
    return "accepted";
}

}  // namespace

TEST_CASE("folders of pictures: a class for each, sorted, whatever form their files have") {
    Scratch s;
    put(s, "a/dog/2.png", png_of({2, 1, PNG_COLOR_TYPE_GRAY, 8}, {3, 4}));
    put(s, "a/dog/1.pgm", "P5 2 1 255 \x01\x02");
    put(s, "a/cat/x.ppm", "P6 2 1 255 \x09\x09\x09\x08\x08\x08");
    put(s, "a/.hidden/x", "no picture");
    put(s, "a/cat/.thumbnail", "no picture");
    put(s, "b/dog/1.pgm", "P5 2 1 255 \x05\x06");
    put(s, "b/eel/1.pgm", "P5 2 1 255 \x07\x07");
    const PictureShape shape{2, 1, 1};
    const LabelledPictures both = read_picture_folders({s / "a", s / "b"}, shape, false, false);
    CHECK(both.classes == std::vector<std::string>{"cat", "dog", "eel"});
    CHECK(both.labels == std::vector<std::int32_t>{0, 1, 1, 1, 2});
    CHECK(both.pictures.pixels == std::vector<std::uint8_t>{9, 8, 1, 2, 3, 4, 5, 6, 7, 7});
    put(s, "a/run/model.gguf", "no picture");
    CHECK(read_picture_folders({s / "a", s / "b"}, shape, false, false, s / "a/run/").labels == both.labels);
    std::filesystem::rename(s / "a/run", s / "a/cat/run");
    CHECK(read_picture_folders({s / "a", s / "b"}, shape, false, false, s / "a/cat/run").labels ==
          both.labels);
    std::filesystem::remove_all(s / "a/cat/run");
    put(s, "a/cat/large.pgm", "P5 4 1 255 \x01\x03\x05\x07");
    CHECK(refused(s) ==
          "a/cat/large.pgm: size: expected 2 x 1 pixels, got 4 x 1 pixels (--resize changes it)");
    CHECK(read_picture_folders({s / "a"}, shape, true, false).pictures[0][1] == 6);
    const LabelledPictures rest = read_picture_folders({s / "a"}, shape, false, true);
    CHECK(rest.skipped == 1);
    CHECK(rest.first_skipped.find("large.pgm") != std::string::npos);
    CHECK(rest.labels == std::vector<std::int32_t>{0, 1, 1});
}

TEST_CASE("folders of pictures that hold other things are refused by name") {
    Scratch s;
    std::filesystem::create_directories(s / "a");
    CHECK(refused(s) == "a: expected a folder for each class of pictures, got none");
    std::filesystem::create_directories(s / "a/cat");
    CHECK(refused(s) == "a: cat: expected pictures of this class, got none");
    put(s, "a/cat/x.jpg", "\xFF\xD8\xFF\xE0");
    const std::string way_out = " (in training, --skip-bad passes over such files)";
    CHECK(refused(s) ==
          "a/cat/x.jpg: expected a picture: PNG, PGM (P5), PPM (P6) or IDX, got a JPEG picture" + way_out);
    CHECK(refused(s, true) == "a: cat: expected pictures of this class, got none");
    put(s, "a/cat/x.jpg", "P5 2 1 255 \x01\x02");  // told by its bytes
    CHECK(refused(s) == "accepted");
    put(s, "a/list.txt", "cat");
    CHECK(refused(s) == "a/list.txt: expected a folder for each class of pictures, got a file" + way_out);
    put(s, "a/cat/Thumbs.db", std::string("\xD0\xCF\x11\xE0\0", 5));
    const LabelledPictures rest = read_picture_folders({s / "a"}, {2, 1, 1}, false, true);
    CHECK(rest.skipped == 2);
    CHECK(rest.first_skipped == s / "a/list.txt: expected a folder for each class of pictures, got a file");
    CHECK(rest.pictures.count() == 1);
    std::filesystem::remove(s / "a/list.txt");
    CHECK(refused(s) ==
          "a/cat/Thumbs.db: expected a picture: PNG, PGM (P5), PPM (P6) or IDX, got another file" + way_out);
    std::filesystem::remove(s / "a/cat/Thumbs.db");
    put(s, "b/1.png", "");  // a class's folder itself: none of its files is meant to be left out
    for (const bool skip_bad : {false, true})
        CHECK_THROWS_WITH(read_picture_folders({s / "b"}, {2, 1, 1}, false, skip_bad),
                          (s / "b/1.png: expected a folder for each class of pictures, got a file").c_str());
    put(s, "a/cat/x.gz", "\x1f\x8b");  // with a hint of its own
    CHECK(refused(s).ends_with("got a gzip file (gunzip unpacks it)"));
    std::filesystem::remove(s / "a/cat/x.gz");
    std::filesystem::create_directories(s / "a/cat/more");
    CHECK(refused(s) == "a/cat/more: expected a picture, got a folder in a class's folder");
    std::filesystem::remove(s / "a/cat/more");
    put(s, "a/\xFF/x", "P5 2 1 255 \x01\x02");
    CHECK(refused(s).find("name: expected UTF-8, got ") != std::string::npos);
    std::filesystem::remove_all(s / "a");
    CHECK(refused(s).find("a: No such file") != std::string::npos);
}
