#include <doctest/doctest.h>

#include <random>

#include "generate/stream.h"

using namespace linnet;

namespace {

/// All that leaves when `text` comes in pieces of these sizes.
template <class Filter>
std::string through(Filter& filter, std::string_view text, std::size_t piece) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); i += piece) out += filter.push(text.substr(i, piece));
    return out + filter.finish();
}

}  // namespace

TEST_CASE("a stop string is found however the text is cut") {
    for (std::size_t piece = 1; piece < 12; piece++) {
        StopFilter filter({"\n\n", "END"});
        CHECK(through(filter, "one\ntwo EN E END three", piece) == "one\ntwo EN E ");
        CHECK(filter.stopped());
        CHECK(filter.push("more").empty());
    }
}

TEST_CASE("the earliest of several stop strings counts") {
    StopFilter filter({"late", "early"});
    CHECK(filter.push("an early, then a late one") == "an ");
}

TEST_CASE("of stop strings that overlap the one counts that is whole first, however the text is cut") {
    for (std::size_t piece = 1; piece < 16; piece++) {
        CAPTURE(piece);
        StopFilter inside({"a long one", "lon"}), ends({"c", "abc", "bc"});
        CHECK(through(inside, "not a long one", piece) == "not a ");
        CHECK(through(ends, "xabcy", piece) == "x");
    }
}

TEST_CASE("only text that could begin a stop string is held back") {
    StopFilter filter({"aab"});
    CHECK(filter.push("xaa") == "x");
    CHECK(filter.push("a") == "a");  // aaa: the first a can no longer begin aab
    CHECK(filter.push("c") == "aac");
    CHECK(filter.push("a").empty());
    CHECK(filter.finish() == "a");
}

TEST_CASE("without stop strings all text passes at once") {
    StopFilter none({}), empty({""});
    CHECK(none.push("text") == "text");
    CHECK(empty.push("text") == "text");
}

TEST_CASE("whole characters pass, however they are cut") {
    std::string text = "aé中😀\xCC\x81z";
    for (std::size_t piece = 1; piece < 8; piece++) {
        Utf8Stream stream;
        CHECK(through(stream, text, piece) == text);
    }
}

TEST_CASE("bytes that belong to no character become one U+FFFD for each maximal subpart") {
    const std::string r = "\xEF\xBF\xBD";
    struct Case {
        std::string in, out;
    };
    // The first is the example of The Unicode Standard, table 3-8 (its truncated sequences: table 3-11).
    for (const Case& c : {Case{"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", r + r + r + r + r + r + r + r + "A"},
                          Case{"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", r + r + r + r + r + r + r + r + "A"},
                          Case{"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", r + r + r + r + r + "A" + r + r + "B"},
                          Case{"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", r + r + r + r + "A"},
                          Case{"ab\xE4\xB8", "ab" + r}, Case{"\xFF", r}}) {
        for (std::size_t piece = 1; piece < 10; piece++) {
            Utf8Stream stream;
            CHECK(through(stream, c.in, piece) == c.out);
        }
    }
}

TEST_CASE("what leaves is valid UTF-8 for random bytes, and the same for any cut") {
    std::mt19937 random(7);
    for (int round = 0; round < 2000; round++) {
        std::string bytes;
        for (int i = 0; i < 12; i++) bytes += static_cast<char>(random() % 3 ? 0x80 | random() : random());
        Utf8Stream whole, cut, again;
        std::string expected = through(whole, bytes, 100);
        CHECK(through(cut, bytes, 1 + random() % 4) == expected);
        CHECK(through(again, expected, 3) == expected);
    }
}
