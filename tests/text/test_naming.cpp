#include "text/naming.h"

#include <doctest/doctest.h>

#include "support.h"

using namespace linnet;

TEST_CASE("a fault of a text gets the text's name and the bytes before it; other errors stay as they are") {
    const auto fault = [] {
        throw TextError({.byte = 3, .expected = "UTF-8", .got = "a byte", .hint = "hint"});
    };
    CHECK(test::refusal(fault) == "text: byte 3: expected UTF-8, got a byte (hint)");
    const auto later = [&] { behind(10, [&] { behind(200, fault); }); };
    CHECK(test::refusal(later) == "text: byte 213: expected UTF-8, got a byte (hint)");
    CHECK(test::refusal([&] { naming("a.txt", later); }) ==
          "a.txt: byte 213: expected UTF-8, got a byte (hint)");
    int asked = 0;
    const auto name = [&] { return "text " + std::to_string(++asked); };
    CHECK(naming(name, [] { return 7; }) == 7);
    CHECK(asked == 0);
    CHECK(test::refusal([&] { naming(name, fault); }) == "text 1: byte 3: expected UTF-8, got a byte (hint)");
    CHECK(test::refusal([&] { naming("a.txt", [] { fail_input("texts", "", "one", "none"); }); }) ==
          "texts: expected one, got none");
    // What is found nowhere has no byte to move; a name that a text has stays.
    const auto whole = [] { throw TextError({.found_by = "tokenizer", .expected = "a", .got = "b"}); };
    CHECK(test::refusal([&] { naming("a.txt", [&] { behind(10, whole); }); }) ==
          "a.txt: tokenizer: expected a, got b");
    CHECK(test::refusal([&] { naming("all", [&] { naming("text", later); }); }) ==
          "text: byte 213: expected UTF-8, got a byte (hint)");
}
