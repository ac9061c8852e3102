#include "base/fields.h"

#include <doctest/doctest.h>

#include "base/error.h"

using namespace linnet;

namespace {

struct Settings {
    std::int64_t count = 3;
    double rate = 0.5;
    bool on = false;
    std::string kind = "plain";
};

std::vector<Field> table(Settings& s) {
    return {{"a.count", &s.count, "", 1, 10},
            {"a.rate", &s.rate, "", 0, 1},
            {"a.b.on", &s.on, ""},
            {"kind", &s.kind, "", 0, 0, {"plain", "fancy"}}};
}

std::string refusal(const std::function<void(std::vector<Field>&)>& change, Exit exit = Exit::input) {
    Settings s;
    std::vector<Field> fields = table(s);
    try {
        change(fields);
    } catch (const Error& error) {
        CHECK(error.exit() == exit);
        return error.what();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("settings are read from JSON and from key=value, and printed as they were read") {
    Settings s;
    std::vector<Field> fields = table(s);
    apply_json(fields, parse_json(R"({"a": {"count": 7, "b": {"on": true}}})", "f"), "f");
    apply_setting(fields, "a.rate=0.25");
    apply_setting(fields, "kind=fancy");
    CHECK(s.count == 7);
    CHECK(s.on);
    CHECK(s.rate == 0.25);
    CHECK(to_json(fields).dump() == R"({"a":{"count":7,"rate":0.25,"b":{"on":true}},"kind":"fancy"})");
    apply_setting(fields, "a.count=1e1");  // a whole number, however it is written
    CHECK(s.count == 10);
}

TEST_CASE("what does not fit a setting is refused by its key") {
    auto set = [](const char* text, Exit exit = Exit::input) {
        return refusal([&](std::vector<Field>& f) { apply_setting(f, text); }, exit);
    };
    CHECK(set("a.cuont=3") ==
          "--set: a.cuont: expected a known key, got an unknown one (did you mean a.count?)");
    CHECK(set("a.count=11") == "--set: a.count: expected 1 to 10, got 11");
    CHECK(set("a.count=1.5") == "--set: a.count: expected a whole number, got 1.5");
    CHECK(set("a.count=many").find("expected a whole number, got \"many\"") != std::string::npos);
    CHECK(set("a.b.on=1") == "--set: a.b.on: expected true or false, got 1");
    CHECK(set("kind=fency") == "--set: kind: expected one of plain, fancy, got fency (did you mean fancy?)");
    CHECK(set("a.count", Exit::usage).find("expected key=value") != std::string::npos);
    CHECK(set("a.rate=nan").find("a.rate") != std::string::npos);
    CHECK(set("a.rate=1e400") == "--set: a.rate: expected a number, got \"1e400\"");
    CHECK(set("a.count=\xFF") == "--set: a.count: expected a whole number, got \"\xEF\xBF\xBD\"");
    CHECK(set("kind=\xFF").find("kind: expected text in UTF-8") != std::string::npos);
    const std::string deep = "a.count=" + std::string(300000, '[');
    CHECK(set(deep.c_str()).find("a.count: expected a whole number, got \"[[[") != std::string::npos);
}

TEST_CASE("JSON faults are named by line and column") {
    auto parse = [](const char* text) {
        return refusal([&](std::vector<Field>&) { parse_json(text, "f.json"); });
    };
    CHECK(parse("{\n  \"a\": }") == "f.json: line 2, column 8: expected JSON, got '}'");
    CHECK(parse("").find("got the end of the file") != std::string::npos);
    CHECK(parse(R"({"a": 1, "a": 2})") == "f.json: a: expected each key once, got a second one");
    CHECK(parse("{} x").find("line 1, column 4") != std::string::npos);
    std::string deep(100000, '[');
    CHECK(parse(deep.c_str()) == "f.json: expected JSON nested at most 100 deep, got deeper nesting");
    const std::string closed = R"({"a": )" + deep + std::string(100000, ']') + "}";
    CHECK(parse(closed.c_str()) == "f.json: expected JSON nested at most 100 deep, got deeper nesting");
    CHECK(parse(R"({"a": 1e400})") == "f.json: expected numbers up to 1.8e308, got a larger one");
}

TEST_CASE("a hundred levels of JSON are read; brackets in strings are no levels") {
    auto nested = [](int depth) {
        return std::string(static_cast<std::size_t>(depth), '[') +
               std::string(static_cast<std::size_t>(depth), ']');
    };
    CHECK(parse_json(nested(100), "f").is_array());
    CHECK_THROWS_AS(parse_json(nested(101), "f"), Error);
    CHECK(parse_json("\"\\\"" + std::string(500, '[') + "\"", "f").is_string());
}
