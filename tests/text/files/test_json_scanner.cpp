#include "text/files/json_scanner.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/rng.h"

using namespace linnet;

namespace {

/// What nlohmann/json says of the line; nothing where the line is to be refused.
std::optional<std::string> by_library(const std::string& line, int& unsure) {
    struct Sax : nlohmann::json_sax<nlohmann::json> {
        std::optional<std::string> text;
        int depth = 0, found = 0;
        bool wanted = false, object = true;
        bool value() {
            if (depth == 0) object = false;
            if (depth == 1 && wanted) object = false;  // not a string
            wanted = false;
            return true;
        }
        bool null() override { return value(); }
        bool boolean(bool) override { return value(); }
        bool number_integer(number_integer_t) override { return value(); }
        bool number_unsigned(number_unsigned_t) override { return value(); }
        bool number_float(number_float_t, const string_t&) override { return value(); }
        bool string(string_t& s) override {
            if (depth == 1 && wanted) {
                text = s;
                found++;
                wanted = false;
                return true;
            }
            return value();
        }
        bool binary(binary_t&) override { return true; }
        bool start_object(std::size_t) override {
            if (depth == 1) value();
            depth++;
            return true;
        }
        bool end_object() override { return depth--, true; }
        bool start_array(std::size_t) override {
            if (depth <= 1) value();
            depth++;
            return true;
        }
        bool end_array() override { return depth--, true; }
        bool key(string_t& name) override {
            if (depth == 1) wanted = name == "text";
            return true;
        }
        std::string error;
        bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
            error = e.what();
            return false;
        }
    } sax;
    bool good = nlohmann::json::sax_parse(line, &sax);
    // The library checks UTF-8 and the range of numbers, which are not this function's affair.
    if (sax.error.find("UTF-8") != std::string::npos || sax.error.find("out of range") != std::string::npos)
        unsure++;
    if (!good || !sax.object || sax.found != 1) return std::nullopt;
    return sax.text;
}

std::optional<std::string> by_linnet(const std::string& line) {
    std::string out = "before";
    static JsonScanner scanner;  // keeps memory, and nothing else, between lines
    JsonFault error;
    if (!scanner.extract(line, "text", out, error)) {
        CHECK(out == "before");
        CHECK(error.at <= line.size());
        CHECK_FALSE(error.expected.empty());
        return std::nullopt;
    }
    return out.substr(6);
}

}  // namespace

TEST_CASE("the field is found wherever it stands, unescaped") {
    CHECK(by_linnet(R"({"text":"abc"})") == "abc");
    CHECK(
        by_linnet(
            R"( { "a" : [1, {"text":"no"}, "x\"]"] , "text" : "y\n\u00e9\ud83d\ude00\/" , "b":-1.5e+3 } )") ==
        "y\n\xC3\xA9\xF0\x9F\x98\x80/");
    CHECK(by_linnet(R"({"te\u0078t":""})") == "");
    CHECK(by_linnet("{\"text\":\"a\\u0000b\"}") == std::string("a\0b", 3));
}

TEST_CASE(
    "long strings are unescaped as nlohmann/json does, wherever their escapes stand; what ends one is "
    "found") {
    constexpr std::string_view pieces[] = {"\\n",      "\\\"",
                                           "\\\\",     "\\/",
                                           "\\u00e9",  "\\ud83d\\ude00",
                                           "\xC3\xA9", "plain ",
                                           "x",        "0123456789abcdef0123456789"};
    Rng rng(11, 4);
    int differences = 0, spoiled = 0, refused = 0;
    for (std::uint64_t i = 0; i < 3000; i++) {
        std::string body;
        const std::uint64_t size = rng.below(400, i << 10);
        for (std::uint64_t k = 1; body.size() < size; k++)
            body += pieces[rng.below(std::size(pieces), (i << 10) + k)];
        const std::string line = "{\"a\":\"" + body + "\",\"\\u0074ext\":\"" + body + "\"}";
        int unsure = 0;
        differences += by_linnet(line) != by_library(line, unsure);
        if (body.empty()) continue;
        // A control character, which only an escape before it could excuse.
        const std::size_t begin = line.size() - 2 - body.size();
        const std::size_t at = begin + rng.below(body.size(), (i << 10) + 1000);
        std::string bad = line;
        bad[at] = '\x01';
        spoiled++;
        JsonFault error;
        std::string out;
        refused += !JsonScanner().extract(bad, "text", out, error) && error.at <= at && out.empty();
    }
    CHECK(differences == 0);
    CHECK(refused == spoiled);
}

TEST_CASE("what is no such line is refused, and where it goes wrong is said") {
    for (const char* line :
         {"", "[]", "{}", "{\"text\":1}", "{\"text\":null}", "{\"text\":\"a\",\"text\":\"b\"}",
          "{\"text\":\"a\"", "{\"text\":\"a\"}x", "{\"text\":\"\\ud800\"}", "{\"text\":\"\\udc00\"}",
          "{\"text\":\"\\ud800\\u0041\"}", "{\"text\":\"\\x\"}", "{\"text\":\"a\tb\"}", "{\"text\":\"a\",}",
          "{\"a\":01,\"text\":\"b\"}", "{\"a\":1.,\"text\":\"b\"}", "{\"a\":[1,],\"text\":\"b\"}",
          "{\"a\":tru,\"text\":\"b\"}", "{'text':\"b\"}"})
        CHECK_FALSE(by_linnet(line));
    std::string deep = "{\"a\":" + std::string(100000, '[') + ",\"text\":\"b\"}";
    CHECK_FALSE(by_linnet(deep));
    struct Case {
        const char *line, *expected;
        std::size_t at;
    };
    for (const Case& c :
         {Case{"{\"a\": nul}", "a value", 6}, Case{"{\"a\":[1 2],\"text\":\"b\"}", "a comma", 8},
          Case{"{\"a\" 1}", "a colon", 5}, Case{"{\"a\":1,}", "a name", 7},
          Case{"{\"text\":\"b\"} {}", "nothing behind", 13}, Case{"{\"a\":\"b", "'\"'", 5},
          Case{"{\"a\":\"b\tc\"}", "control characters", 7}, Case{"{\"text\":\"b\xFF\"}", "UTF-8", 10}}) {
        CAPTURE(c.line);
        JsonFault fault;
        std::string out;
        CHECK_FALSE(JsonScanner().extract(c.line, "text", out, fault));
        CHECK(fault.at == c.at);
        CHECK(fault.expected.find(c.expected) != std::string::npos);
        CHECK(fault.utf8 == (std::string(c.expected) == "UTF-8"));
    }
    JsonFault fault;
    CHECK(JsonScanner(2).check("{\"a\":[1]}", fault));
    CHECK_FALSE(JsonScanner(2).check("{\"a\":[[1]]}", fault));
    CHECK(JsonScanner(2, false).check("{\"a\":1e400}", fault));
    CHECK_FALSE(JsonScanner(2, true).check("{\"a\":1e400}", fault));
    CHECK(fault.at == 5);
}

TEST_CASE("the extractor agrees with nlohmann/json on mutated lines") {
    const std::string seeds[] = {
        R"({"id":12,"text":"He said \"no\"\n\u00e9\ud83d\ude00","meta":{"a":[1,2.5e-3,true,null],"text":"x"}})",
        R"({"text":"","a":{},"b":[],"c":[[],{}],"d":-0})", R"([{"text":"a"}])"};
    const std::string alphabet = "{}[]\",:\\/bfnrtu0123456789eE+-. dD8aA\ttext\x01";
    Rng rng(11, 0);
    int good = 0, bad = 0, unsure = 0;
    std::uint64_t draw = 0;
    auto below = [&](std::size_t n) { return static_cast<std::size_t>(rng.below(n, draw++)); };
    for (int i = 0; i < 30000; i++) {
        std::string line = seeds[below(3)];
        for (std::size_t k = below(4); k > 0; k--) {
            std::size_t at = below(line.size());
            switch (below(3)) {
                case 0:
                    line[at] = alphabet[below(alphabet.size())];
                    break;
                case 1:
                    line.erase(at, 1 + below(3));
                    break;
                default:
                    line.insert(at, 1, alphabet[below(alphabet.size())]);
            }
        }
        int before = unsure;
        auto expected = by_library(line, unsure);
        if (unsure != before) continue;
        auto got = by_linnet(line);
        CHECK_MESSAGE(got == expected, line);
        (expected ? good : bad)++;
    }
    CHECK(good > 3000);
    CHECK(bad > 3000);
}
