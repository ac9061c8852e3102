// Labelled lines, pictures and scores: what is read, what is refused and where.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/split.h"
#include "data/labelled/images.h"
#include "data/labelled/lines.h"
#include "data/labelled/scores.h"
#include "support.h"

using namespace linnet;
using linnet::test::has;
using linnet::test::refusal;

namespace {

std::string head_of(std::uint32_t magic, std::initializer_list<std::uint32_t> dimensions) {
    std::string out;
    auto put = [&](std::uint32_t n) {
        for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(n >> shift & 0xff);
    };
    put(magic);
    for (std::uint32_t d : dimensions) put(d);
    return out;
}

}  // namespace

TEST_CASE("pairs, classes and tags are read from lines; a bad one is named by file and line") {
    test::Scratch s;
    const std::string path = s / "a.tsv";
    auto read = [&](LabelledKind kind, const std::string& text, bool skip = false) {
        test::write_text(path, text);
        LabelledOptions options;
        options.inputs = {path};
        options.skip_bad = skip;
        return read_labelled(kind, options);
    };
    std::filesystem::create_directories(s / "run");
    test::write_text(s / "run/log.jsonl", "the run's own");
    LabelledData pairs = read(LabelledKind::pairs, "cat\tK AE T\r\n\ndog\tD AO G");
    REQUIRE(pairs.all.size() == 2);
    CHECK(pairs.all[0].second == "K AE T");
    CHECK(read_labelled(LabelledKind::pairs, {.inputs = {s.path}, .except = s / "run"}).all.size() == 2);
    CHECK(pairs.place(pairs.all[1]) == path + ": line 3");
    LabelledData two = read(LabelledKind::classes, "a b\tc d\tyes\nx\ty\tno\n");
    CHECK(two.all[0].two);
    CHECK(two.all[0].second == "c d");
    CHECK(two.all[1].label == "no");
    CHECK(read(LabelledKind::tags, "the  cat\tDT NN\n").all[0].label == "DT NN");
    auto says = [&](LabelledKind kind, const std::string& text, const std::string& part) {
        const std::string line = refusal([&] { read(kind, text); });
        CHECK_MESSAGE(has(line, part), line);
    };
    says(LabelledKind::pairs, "a\tb\nc\n", path + ": line 2: expected a source, a tab, a target, got no tab");
    says(LabelledKind::pairs, "\tb\n",
         "line 1: expected a source, a tab, a target, got nothing before the tab");
    says(LabelledKind::pairs, "a\t \n",
         "line 1: expected a source, a tab, a target, got nothing behind a tab");
    says(LabelledKind::pairs, "a\tb\tc\n", "got 2 tabs");
    says(LabelledKind::tags, "a b\tX\n", "line 1: expected as many tags as words, 2, got 1");
    says(LabelledKind::classes, "a\xff\tb\n", "line 1: expected UTF-8");
    says(LabelledKind::pairs, "\n", "expected at least one example, got none");
    LabelledData rest = read(LabelledKind::pairs, "a\tb\nc\nd\te\n", true);
    CHECK(rest.all.size() == 2);
    CHECK(rest.skipped == 1);
    CHECK(has(rest.first_skipped, "line 2"));
}

TEST_CASE("examples come from the fields of JSON lines too") {
    test::Scratch s;
    LabelledOptions options;
    options.inputs = {s / "a.jsonl"};
    test::write_text(options.inputs[0], "{\"en\": \"cat\", \"es\": \"gato\", \"n\": 3}\n");
    options.fields = {"en", "es"};
    CHECK(read_labelled(LabelledKind::pairs, options).all[0].second == "gato");
    options.fields = {"en", "n"};
    CHECK(read_labelled(LabelledKind::classes, options).all[0].label == "3");
    options.fields = {"en", "fr"};
    CHECK(
        has(refusal([&] { read_labelled(LabelledKind::pairs, options); }), "line 1: expected the field fr"));
    CHECK(field_names("a,b") == std::vector<std::string>{"a", "b"});
}

TEST_CASE("pictures: IDX, PGM and PPM are read, and refused by what is wrong with them") {
    test::Scratch s;
    const std::string idx = s / "p-images-idx3-ubyte", pgm = s / "a.pgm";
    test::write_text(idx, head_of(0x803, {2, 2, 3}) + "abcdefghijkl");
    Pictures two = read_idx_pictures(idx);
    CHECK(two.count() == 2);
    CHECK((two.shape == PictureShape{3, 2, 1}));
    CHECK(two[1][0] == 'g');
    auto says = [&](const std::string& bytes, const std::string& part) {
        test::write_text(idx, bytes);
        const std::string line = refusal([&] { read_idx_pictures(idx); });
        CHECK_MESSAGE(has(line, part), line);
    };
    says(head_of(0x801, {12, 2, 3}) + "abcdefghijkl", "magic number: expected 0x00000803");
    says(head_of(0x803, {2, 2, 3}) + "abc", "size: expected 12 bytes behind the head, as it says, got 3");
    says(head_of(0x803, {0, 2, 3}), "count: expected at least 1, got 0");
    says(head_of(0x803, {4294967295U, 4294967295U, 3}), "dimension 1: expected 1 to 16384");
    says("ab", "head: expected 16 bytes, got 2");
    test::write_text(idx, head_of(0x801, {3}) + "abc");
    CHECK(read_idx_labels(idx, 3).size() == 3);

    test::write_text(pgm, "P5\n# a comment\n2 2\n255\n\x01\x02\x03\x04");
    const PictureShape small{2, 2, 1};
    CHECK(read_pictures_file(pgm, small, false)[0][3] == 4);
    CHECK(has(refusal([&] {
                  read_pictures_file(pgm, {4, 4, 1}, false);
              }),
              "size: expected 4 x 4 pixels, got 2 x 2 pixels"));
    CHECK(read_pictures_file(pgm, {4, 4, 1}, true)[0][15] == 4);
    CHECK(read_pictures_file(pgm, {1, 1, 1}, true)[0][0] == 2);
    test::write_text(pgm, "P6 1 1 255 \x64\x64\x64");
    CHECK(read_pictures_file(pgm, {1, 1, 1}, false)[0][0] == 100);
    test::write_text(pgm, "P5 2 2 255 ab");
    CHECK(has(refusal([&] { read_pictures_file(pgm, small, false); }), "pixels: expected 4 bytes, got 2"));
    test::write_text(pgm, "P5 0 2 255 ab");
    CHECK(has(refusal([&] { read_pictures_file(pgm, small, false); }), "width: expected 1 to 16384"));
    test::write_text(pgm, "hello");
    CHECK(has(refusal([&] { read_pictures_file(pgm, small, false); }), "expected a picture"));
    const std::uint8_t pixels[] = {0, 255, 51, 102, 1, 2, 3, 4};
    const std::vector<float> rows = patches_of({4, 2, 1}, pixels, 2, true);
    CHECK(rows.size() == 12);
    CHECK(rows[4] == 0.0F);
    CHECK(rows[5] == 1.0F);
    CHECK(rows[6] == doctest::Approx(1.0 / 255));
    CHECK(rows[8] == doctest::Approx(0.2));
}

TEST_CASE("answers are scored as the literature does") {
    CHECK(edit_distance(split("K AE T", ' '), split("K AA T S", ' ')) == 2);
    CHECK(edit_distance({}, characters("añb")) == 3);
    AnswerScores same;
    same.add("the cat sat on the mat", {"the cat sat on the mat"});
    CHECK(same.exact() == 1);
    CHECK(same.chrf() == doctest::Approx(100));
    CHECK(same.bleu() == doctest::Approx(100));
    AnswerScores two;
    two.add("K AE T", {"K AA T S", "K AE T S"});  // the nearest counts
    two.add("D AO G", {"D AO G"});
    CHECK(two.word_error() == doctest::Approx(1.0 / 7));
    CHECK(two.exact() == 0.5);
    AnswerScores part;
    part.add("the cat is on the mat", {"the cat sat on the mat"});
    CHECK(part.bleu() == 0);  // no four words in a row
    CHECK(part.chrf() > 50);
    CHECK(part.chrf() < 90);
    AnswerScores brief;  // all of its runs of words are right: the brevity penalty is what is left
    brief.add("the cat sat on", {"the cat sat on the mat"});
    CHECK(brief.bleu() == doctest::Approx(100 * std::exp(1 - 6.0 / 4)));
}
