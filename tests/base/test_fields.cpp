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
    Repeating<std::int64_t> window = 0;
    Repeating<std::string> shape = "round";
    bool late = true;
};

std::vector<Field> rows(Settings& s) {
    return {{"a.count", &s.count, "", 1, 10},
            {"a.rate", &s.rate, "", 0, 1},
            {"a.b.on", &s.on, ""},
            {"kind", &s.kind, "", 0, 0, {"plain", "fancy"}},
            {"a.window", &s.window, "", 0, 100},
            {"shape", &s.shape, "", 0, 0, {"round", "flat"}},
            later("a.late", &s.late, "")};
}

std::vector<Field> table(Settings& s) {
    std::vector<Field> fields = rows(s);
    Settings defaults;
    take_defaults(fields, rows(defaults));
    return fields;
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
    CHECK(to_json(fields).dump() ==
          R"({"a":{"count":7,"rate":0.25,"b":{"on":true},"window":0},"kind":"fancy","shape":"round"})");
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
    const std::string lists = "shape=" + std::string(101, '[') + "," + std::string(101, ']');
    CHECK(set(lists.c_str()).find("shape: expected one of round, flat, got [[[") != std::string::npos);
}

TEST_CASE("a setting that may repeat takes a value or a list, and is printed as what it is") {
    Settings s;
    std::vector<Field> fields = table(s);
    auto printed = [&] { return to_json(fields)["a"]["window"].dump() + to_json(fields)["shape"].dump(); };
    apply_json(fields, parse_json(R"({"a": {"window": [64, 0]}, "shape": ["flat", "round"]})", "f"), "f");
    CHECK(printed() == R"([64,0]["flat","round"])");
    CHECK(s.window.at(0) == 64);
    CHECK(s.window.at(5) == 0);
    apply_setting(fields, "a.window=[1,2,3]");
    apply_setting(fields, "shape=[flat,flat,round]");
    CHECK(printed() == R"([1,2,3]["flat","flat","round"])");
    apply_setting(fields, R"(shape=["round"])");
    apply_setting(fields, "a.window=[7]");
    CHECK(printed() == R"(7"round")");
    apply_setting(fields, "shape=flat");
    CHECK(printed() == R"(7"flat")");
    auto set = [](const char* text) {
        return refusal([&](std::vector<Field>& f) { apply_setting(f, text); });
    };
    CHECK(set("a.window=[1,200]") == "--set: a.window[1]: expected 0 to 100, got 200");
    CHECK(set("a.window=[1,true]") == "--set: a.window[1]: expected a whole number, got true");
    CHECK(set("a.window=[[1]]") == "--set: a.window[0]: expected a whole number, got [1]");
    CHECK(set("a.window=[]") ==
          "--set: a.window: expected a whole number, or a list of them, got an empty list");
    CHECK(set("shape=[flat,oval]").starts_with("--set: shape[1]: expected one of round, flat, got oval"));
    CHECK(set("a.count=[1,2]") == "--set: a.count: expected a whole number, got [1,2]");
}

TEST_CASE("a list is made as short as it can be without saying anything else") {
    auto shortened = [](std::vector<std::int64_t> list, std::int64_t count) {
        Repeating<std::int64_t> r(std::move(list));
        r.shorten(count);
        return r.list();
    };
    using List = std::vector<std::int64_t>;
    CHECK(shortened({5, 5, 5, 5}, 4) == List{5});
    CHECK(shortened({5, 0, 5, 0}, 4) == List{5, 0});
    CHECK(shortened({1, 2, 1, 1, 2, 1}, 6) == List{1, 2, 1});
    CHECK(shortened({1, 2, 1, 2, 1}, 5) == List{1, 2});
    CHECK(shortened({1, 2, 3}, 3) == List{1, 2, 3});
    CHECK(shortened({1, 1, 2}, 2) == List{1});
}

TEST_CASE("a setting that files from before do not know is printed only where it differs") {
    Settings s;
    std::vector<Field> fields = table(s);
    CHECK(!to_json(fields)["a"].contains("late"));
    apply_setting(fields, "a.late=false");
    CHECK(to_json(fields)["a"]["late"] == false);
}

TEST_CASE("JSON faults are named by line and column") {
    auto parse = [](const std::string& text) {
        return refusal([&](std::vector<Field>&) { parse_json(text, "f.json"); });
    };
    CHECK(parse("{\n  \"a\": }") == "f.json: line 2, column 8: expected JSON, got '}'");
    CHECK(parse("").find("got the end of the file") != std::string::npos);
    CHECK(parse(R"({"a": 1, "a": 2})") == "f.json: a: expected each key once, got a second one");
    CHECK(parse("{} x").find("line 1, column 4") != std::string::npos);
    CHECK(parse(std::string("{}\n\0{", 5)) == "f.json: line 2, column 1: expected JSON, got '\\x00'");
    CHECK(parse((std::string(1 << 20, ' ') + "{}").c_str()) ==
          "f.json: expected at most 1 MiB of JSON, got 1048578 bytes");
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

TEST_CASE("text that may be anything is a value, or discarded where it is no JSON or nests too deep") {
    CHECK(parse_or_discard("[1]") == nlohmann::json({1}));
    CHECK(parse_or_discard<nlohmann::ordered_json>(R"({"b": 1, "a": 2})").dump() == R"({"b":1,"a":2})");
    for (const std::string& text :
         {std::string(), std::string("{"), std::string(101, '[') + std::string(101, ']')})
        CHECK(parse_or_discard(text).is_discarded());
}
