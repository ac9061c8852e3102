#include <doctest/doctest.h>

#include <vector>

#include "base/nearest.h"

using namespace linnet;

TEST_CASE("edit distance counts inserts, deletes, replacements and swaps") {
    CHECK(edit_distance("", "") == 0);
    CHECK(edit_distance("", "abc") == 3);
    CHECK(edit_distance("kitten", "sitting") == 3);
    CHECK(edit_distance("generate", "genreate") == 1);
    CHECK(edit_distance("Train", "train") == 0);
    CHECK(edit_distance(std::string(100000, 'a'), std::string(100000, 'b')) == 200);  // hostile names are cut
}

TEST_CASE("the nearest name is suggested, and none where nothing is like it") {
    std::vector<std::string> commands{"generate", "train",    "eval",     "inspect",
                                      "bench",    "tokenize", "tokenizer"};
    CHECK(nearest("genrate", commands) == "generate");
    CHECK(nearest("trian", commands) == "train");
    CHECK(nearest("gen", commands) == "generate");
    CHECK(nearest("tokenise", commands) == "tokenize");
    CHECK(nearest("evaluate", commands) == "eval");
    CHECK(!nearest("frobnicate", commands));
    CHECK(!nearest("", commands));
    CHECK(!nearest("x", {}));
}
