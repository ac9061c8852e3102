#include <doctest/doctest.h>

#include <cerrno>

#include "base/error.h"
#include "support.h"

using namespace linnet;

namespace {
std::string line_of(std::string_view file, std::string_view where, std::string_view expected,
                    std::string_view got, std::string_view hint = {}) {
    try {
        fail_input(file, where, expected, got, hint);
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::input);
        return error.what();
    }
}
}  // namespace

TEST_CASE("an error is one line of file, place, expected and got; empty parts are left out") {
    CHECK(line_of("a.gguf", "key 'x'", "a number", "a string", "typo?") ==
          "a.gguf: key 'x': expected a number, got a string (typo?)");
    CHECK(line_of("a", "", "b", "c") == "a: expected b, got c");
    CHECK(line_of("a", "b", "", "c") == "a: b: got c");
    CHECK(line_of("", "b", "c", "") == "b: expected c");
    CHECK(line_of("a", "", "", "", "b") == "a (b)");
}

TEST_CASE("an error shows bytes that would end the line or steer a terminal as hexadecimal") {
    CHECK(line_of("a\nb", "", "x", "\x1b[2J\x7f") == "a\\x0ab: expected x, got \\x1b[2J\\x7f");
    CHECK(line_of("é", "", "x", "y") == "é: expected x, got y");
    CHECK(line_of("f",
                  "\xC2\x9B"
                  "2J",
                  "x", "\xFF") == "f: \\x9b2J: expected x, got \\xff");
}

TEST_CASE("a place or a value of any length leaves a line that can be read") {
    const std::string line = line_of("f", std::string(5000, 'w'), "x", std::string(5000, 'v'), "h");
    CHECK(line == "f: " + std::string(200, 'w') + "…: expected x, got " + std::string(200, 'v') + "… (h)");
}

TEST_CASE("a refusal of the operating system is told in its words, with exit code 4") {
    CHECK(test::refusal([] { fail_errno("f", "", ENOENT); }, Exit::io) == "f: No such file or directory");
}

TEST_CASE("a long name is cut at a whole character") {
    CHECK(quoted("short") == "'short'");
    CHECK(quoted("ééé", 3) == "'é…'");
    CHECK(quoted(std::string(100, 'a')) == "'" + std::string(60, 'a') + "…'");
}
