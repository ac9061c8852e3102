// JSON read forwards: what is right is read value by value, what is wrong is refused with its byte.
#include "formats/json_reader.h"

#include <doctest/doctest.h>

#include <vector>

#include "base/error.h"
#include "support.h"

using namespace linnet;

namespace {

/// The refusal of reading `text` by `read(reader)` and then its end, without the file's name; or "accepted".
template <class Read>
std::string says(const std::string& text, const Read& read) {
    const std::string line = test::refusal([&] {
        JsonReader json(text, "x.json", "header");
        read(json);
        json.end();
    });
    return line.starts_with("x.json: ") ? line.substr(8) : line;
}

std::string skipping(const std::string& text) {
    return says(text, [](JsonReader& json) { json.skip(); });
}

std::string string_of(const std::string& text) {
    std::string read;
    const std::string line = says(text, [&](JsonReader& json) { read = json.string(); });
    return line == "accepted" ? read : line;
}

}  // namespace

TEST_CASE(
    "JsonReader takes every value of RFC 8259, with white space around each, whether it is asked for or "
    "not") {
    for (const char* text :
         {"{}", "[]", "\"\"", "true", "false", "null", "0", "-0", "-1", "12", "0.5", "-1.25e3", "1E+2",
          "1e-0", "{\"a\":1}", "[1,2]", " \t\r\n[ 1 , { \"a\" : [ ] , \"b\" : null } , \"x\" ] \n"})
        CHECK_MESSAGE(skipping(text) == "accepted", text);
    CHECK(string_of(R"("a\"\\\/\b\f\n\r\tb")") == "a\"\\/\b\f\n\r\tb");
    CHECK(string_of(R"("\u0041\u00e9\u4E2d\uD83d\uDE00")") == "A\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80");
    CHECK(string_of("\"\\u0000\"") == std::string(1, '\0'));
    CHECK(string_of("\"\xC3\xA9\xF0\x9F\x98\x80\"") == "\xC3\xA9\xF0\x9F\x98\x80");
    std::vector<std::uint64_t> numbers;
    const auto read = [&](JsonReader& json) {
        json.object([&](std::string_view key) {
            if (key == "skipped") return json.skip();
            json.array([&] { numbers.push_back(json.whole_number()); });
        });
    };
    CHECK(says(R"({"skipped": {"n": [1.5]}, "n": [0, 7, 18446744073709551615]})", read) == "accepted");
    CHECK(numbers == std::vector<std::uint64_t>{0, 7, UINT64_MAX});
}

TEST_CASE(
    "JsonReader refuses what is no JSON with the byte where it stands, what was expected and what is there") {
    struct Fault {
        std::string text, says;
    };
    const std::vector<Fault> values = {
        {"", "header, byte 0: expected a value, got its end"},
        {"  ", "header, byte 2: expected a value, got its end"},
        {"x", "header, byte 0: expected a value, got 'x'"},
        {"'a'", "header, byte 0: expected a value, got ''a''"},
        {"+1", "header, byte 0: expected a value, got '+1'"},
        {"tru", "header, byte 0: expected a value, got 'tru'"},
        {"falze", "header, byte 0: expected a value, got 'falze'"},
        {"nul", "header, byte 0: expected a value, got 'nul'"},
        {"-", "header, byte 1: expected a digit, got its end"},
        {"-a", "header, byte 1: expected a digit, got 'a'"},
        {"1.", "header, byte 2: expected a digit, got its end"},
        {"1.e5", "header, byte 2: expected a digit, got 'e5'"},
        {"1e", "header, byte 2: expected a digit, got its end"},
        {"1e+x", "header, byte 3: expected a digit, got 'x'"},
        {"01", "header, byte 1: expected the end of the JSON, got '1'"},
        {"1 2", "header, byte 2: expected the end of the JSON, got '2'"},
        {std::string("1\0", 2), "header, byte 1: expected the end of the JSON, got '\\x00'"},
        {"[1 2]", "header, byte 3: expected ',', got '2]'"},
        {"[1,]", "header, byte 3: expected a value behind the comma, got ']'"},
        {"[1", "header, byte 2: expected ',', got its end"},
        {"{\"a\" 1}", "header, byte 5: expected ':', got '1}'"},
        {"{\"a\":1,}", "header, byte 7: expected a value behind the comma, got '}'"},
        {"{a:1}", "header, byte 1: expected a string, got 'a:1}'"},
        {std::string(33, '['), "header, byte 32: expected values at most 32 deep, got deeper ones"},
        {"\"abc", "header, byte 4: expected the end of a string, got its end"},
        {"\"a\nb\"", "header, byte 2: expected a string without control characters, got one"},
        {"\"\xFF\"", "header, byte 1: expected UTF-8, got another encoding"},
        {"\"\xC3", "header, byte 1: expected UTF-8, got another encoding"},
        {"\"\\", "header, byte 2: expected an escape, got its end"},
        {"\"\\x41\"", "header, byte 2: expected an escape, got 'x41\"'"},
        {std::string("\"\\\0\"", 4), "header, byte 2: expected an escape, got '\\x00\"'"},
        {"\"\\u12", "header, byte 5: expected four hexadecimal digits, got its end"},
        {"\"\\u12g4\"", "header, byte 5: expected four hexadecimal digits, got 'g4\"'"},
        {"\"\\u12G4\"", "header, byte 5: expected four hexadecimal digits, got 'G4\"'"},
        {"\"\\u12:4\"", "header, byte 5: expected four hexadecimal digits, got ':4\"'"},
        {"\"\\u12@4\"", "header, byte 5: expected four hexadecimal digits, got '@4\"'"},
        {"\"\\u12`4\"", "header, byte 5: expected four hexadecimal digits, got '`4\"'"},
        {"\"\\u12/4\"", "header, byte 5: expected four hexadecimal digits, got '/4\"'"},
        {"\"\\ud800\"", "header, byte 7: expected a character, got half of a surrogate pair"},
        {"\"\\udfff\"", "header, byte 7: expected a character, got half of a surrogate pair"},
        {"\"\\ud800\\u0041\"",
         "header, byte 13: expected the second half of a surrogate pair, got another character"},
        {"\"\\ud800\\ue000\"",
         "header, byte 13: expected the second half of a surrogate pair, got another character"},
    };
    for (const Fault& fault : values) {
        CAPTURE(fault.text);
        CHECK(skipping(fault.text) == fault.says);
    }
    const std::vector<Fault> numbers = {
        {"", "header, byte 0: expected a whole number from 0, got its end"},
        {"-1", "header, byte 0: expected a whole number from 0, got '-1'"},
        {"00", "header, byte 2: expected a whole number, got '00'"},
        {"1.0", "header, byte 1: expected a whole number, got '1.0'"},
        {"1e2", "header, byte 1: expected a whole number, got '1e2'"},
        {"1E2", "header, byte 1: expected a whole number, got '1E2'"},
        {"18446744073709551616", "header, byte 19: expected a number below 2^64, got a larger one"},
        {"184467440737095516150", "header, byte 20: expected a number below 2^64, got a larger one"},
    };
    for (const Fault& fault : numbers) {
        CAPTURE(fault.text);
        CHECK(says(fault.text, [](JsonReader& json) { json.whole_number(); }) == fault.says);
    }
    const auto short_string = [](JsonReader& json) { json.string(3); };
    for (const char* text : {"\"abc\"", "\"a\xC3\xA9\"", R"("\u00e9\n")"})
        CHECK(says(text, short_string) == "accepted");
    for (const char* text : {"\"abcd\"", "\"ab\xC3\xA9\"", R"("\u00e9\n\n")"})
        CHECK(test::has(says(text, short_string), "expected a string of at most 3 bytes, got a longer one"));
    CHECK(says("[1]", [](JsonReader& json) { json.object([](std::string_view) {}); }) ==
          "header, byte 0: expected an object, got '[1]'");
    CHECK(says("{}", [](JsonReader& json) { json.array([] {}); }) ==
          "header, byte 0: expected an array, got '{}'");
}
