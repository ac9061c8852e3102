#include <doctest/doctest.h>

#include "base/error.h"
#include "generate/grammar/json_schema.h"
#include "generate/grammar/support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

bool allows(const std::string& schema, const std::string& text) {
    return accepts(read_json_schema(schema, "s"), text);
}

}  // namespace

TEST_CASE("what a schema's words allow and refuse") {
    struct Case {
        const char *schema, *allowed, *refused;
    };
    const Case cases[] = {
        {"true", "{\"a\": [1, -2.5e+3, null]}", "{\"a\": }"},
        {"{}", "[ true,\n  \"x\" ]", "[true,]"},
        {R"({"type": "string"})", R"("a\n\u00e9\\é")", R"("\uD800")"},
        {R"({"type": "string", "minLength": 2, "maxLength": 3})", R"("é\n")", R"("abcd")"},
        {R"({"type": "integer"})", "-120", "01"},
        {R"({"type": "integer", "minimum": -12, "maximum": 345})", "-12", "-13"},
        {R"({"type": "integer", "minimum": 7, "exclusiveMaximum": 1200})", "1199", "1200"},
        {R"({"type": "integer", "minimum": 1})", "9999999999999999", "0"},
        {R"({"type": "integer", "maximum": -1})", "-1", "0"},
        {R"({"type": "number", "minimum": 0, "maximum": 1})", "0.25", "1.5"},
        {R"({"type": "number", "exclusiveMinimum": 0, "maximum": 10})", "0.05", "0.0"},
        {R"({"type": "number", "minimum": -2.5, "exclusiveMaximum": 2})", "-1.75", "2"},
        {R"({"type": "number", "exclusiveMinimum": true, "minimum": 3, "maximum": 5})", "3.5", "3"},
        {R"({"type": "number", "minimum": 0, "maximum": 0.99})", "0.99", "0.991"},
        {R"({"type": "number", "minimum": 0.1, "maximum": 0.9})", "0.10", "0.09"},
        {R"({"type": "number", "minimum": 1e-7, "exclusiveMaximum": 2.5e-7})", "0.00000024999", "0.00000025"},
        {R"({"type": "number", "minimum": 1e12, "maximum": 1e30})", "1000000000000.25", "999999999999.5"},
        {R"({"type": "integer", "minimum": 0.5, "exclusiveMaximum": 2.5})", "2", "0"},
        {R"({"type": "integer", "minimum": 9007199254740993})", "9007199254740993", "9007199254740992"},
        {R"({"type": ["integer", "null"]})", "null", "true"},
        {R"({"allOf": [{"type": "string", "nullable": true}, {"type": "string", "maxLength": 3}]})",
         "\"abc\"", "null"},
        {R"({"allOf": [{"prefixItems": [{"type": ["string", "integer"]}]}, {"items": {"type": "integer"}}], "type": "array", "minItems": 1})",
         "[1, 2]", "[\"a\"]"},
        {R"({"type": "integer", "nullable": true})", "null", "\"\""},
        {R"({"enum": ["a", 1, {"x": [2]}]})", R"({"x":[2]})", "2"},
        {R"({"enum": ["a", 1], "type": "string"})", "\"a\"", "1"},
        {R"({"type": "integer", "enum": [1.0, 2.5]})", "1.0", "2.5"},
        {R"({"const": null})", "null", "0"},
        {R"({"properties": {"a": {"type": "null"}, "b": {}}, "required": ["b"]})", R"({"b": 2})",
         R"({"a": null})"},
        {R"({"properties": {"a": {"type": "null"}, "b": {}}})", R"({"a":null,"b": 2})",
         R"({"b": 2, "a": null})"},
        {R"({"properties": {"a": {}}})", "{}", R"({"c": 1})"},
        {R"({"properties": {"a": {}}, "additionalProperties": {"type": "null"}})",
         R"({"a": 1, "ab": null, "": null})", R"({"a": 1, "a": null})"},
        {R"({"properties": {"a": {}}, "additionalProperties": true})", R"({"b": 1})", R"({"\u0061": 1})"},
        {R"({"required": ["x"]})", R"({"x": 1, "y": 2})", "{}"},
        {R"({"type": "object"})", "{ }", "[]"},
        {R"({"properties": {"a": false, "b": {}}})", R"({"b": 1})", R"({"a": 1})"},
        {R"({"items": {"type": "null"}, "minItems": 2, "maxItems": 3})", "[null, null]", "[null]"},
        {R"({"prefixItems": [{"type": "null"}, {"type": "boolean"}], "minItems": 1})", "[null]",
         "[null, true, 1]"},
        {R"({"prefixItems": [{"const": 1}], "items": {"const": 2}, "maxItems": 3})", "[1, 2, 2]",
         "[1, 2, 2, 2]"},
        {R"({"items": [{"const": 1}], "additionalItems": false})", "[1]", "[2]"},
        {R"({"type": "array", "maxItems": 0})", "[]", "[1]"},
        {R"({"items": false})", "[]", "[1]"},
        {R"({"anyOf": [{"const": 1}, {"type": "string"}]})", "\"x\"", "2"},
        {R"({"oneOf": [{"type": "null"}, {"type": "boolean"}]})", "false", "0"},
        {R"({"type": "object", "properties": {"k": {"type": "integer"}}, "anyOf": [{"required": ["k"]}, {"properties": {"z": {"const": 0}}, "required": ["z"]}]})",
         R"({"k": 1, "z": 0})", "{}"},
        {R"({"allOf": [{"properties": {"a": {"minimum": 3}}}, {"properties": {"a": {"type": "integer", "maximum": 5}}, "required": ["a"]}]})",
         R"({"a": 4})", R"({"a": 6})"},
        {R"({"$ref": "#/$defs/l", "$defs": {"l": {"type": "array", "items": {"$ref": "#/$defs/l"}}}})",
         "[[], [[]]]", "[1]"},
        {R"({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"$ref": "#/definitions/c"}}, "definitions": {"c": {"const": 7}}})",
         "7", "8"},
        {R"({"$ref": "#/$defs/s", "maxLength": 1, "$defs": {"s": {"type": "string"}}})", "\"a\"", "\"ab\""},
        {R"({"$ref": "#/$defs/my%20t%7E1%25%C3%a9", "$defs": {"my t/%é": {"const": 7}}})", "7", "8"},
        {R"({"$ref": "#%2F$defs%2fa", "$defs": {"a": {"const": 7}}})", "7", "8"},
        {R"({"$ref": "#/$defs/n", "$defs": {"n": {"type": ["object", "null"], "required": ["v"], "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/n", "type": "object"}}}}})",
         R"({"v": 1, "next": {"v": 2, "next": {"v": 3}}})", R"({"v": 1, "next": {"v": 2, "next": null}})"},
        {R"({"$ref": "#/$defs/l", "minItems": 1, "$defs": {"l": {"items": {"$ref": "#/$defs/l", "maxItems": 1}}}})",
         "[[], [[[]]]]", "[[[], []]]"},
        {R"({"$defs": {"n": {"type": "object", "properties": {"of": {"allOf": [{"$ref": "#/$defs/n"}]}}}}, "allOf": [{"$ref": "#/$defs/n"}]})",
         R"({"of": {"of": {}}})", R"({"of": {"of": 1}})"},
        {R"({"$defs": {"n": {"type": "object", "properties": {"k": {"type": "integer"}, "of": {"items": {"required": ["k"], "anyOf": [{"$ref": "#/$defs/n"}, {"type": "object", "properties": {"z": {"const": 0}}}]}}}}}, "$ref": "#/$defs/n"})",
         R"({"of": [{"k": 1, "of": []}, {"z": 0, "k": 2}]})", R"({"of": [{"k": 1, "of": [{"z": 0}]}]})"},
        {R"({"pattern": "^a.c$"})", R"("a\"c")", R"("abcd")"},
        {R"({"pattern": "b+"})", R"("abbc")", R"("ac")"},
        {R"({"pattern": "^(?:x|yz){2}\\d?[^a-z]$"})", R"("xyz0-")", R"("xyz0a")"},
        {R"({"pattern": "^[\\w-]+\\u00e9?$"})", R"("a-_é")", R"("é")"},
        {R"({"format": "date"})", "\"2024-02-28\"", "\"2024-02-30\""},
        {R"({"format": "date-time"})", "\"1999-12-31T23:59:59.5Z\"", "\"1999-12-31 23:59:59\""},
        {R"({"format": "uuid"})", "\"123e4567-e89b-12d3-a456-426614174000\"", "\"123e4567\""},
    };
    for (const Case& c : cases) {
        CAPTURE(std::string(c.schema));
        CHECK_MESSAGE(allows(c.schema, c.allowed), std::string(c.allowed));
        CHECK_FALSE_MESSAGE(allows(c.schema, c.refused), std::string(c.refused));
    }
}

TEST_CASE("what a schema has that is not supported, or cannot be, is named by its path") {
    const std::pair<const char*, const char*> cases[] = {
        {"{", "s: line 1, column 2: expected JSON"},
        {R"({"type": "string", "type": "null"})", "expected each key once"},
        {"[]", "s: #: expected a schema, which is an object, true or false, got array"},
        {R"({"type": "integer", "minimum": 100000000000000000})", "#: expected a range with a whole number"},
        {R"({"not": {}})", "s: #/not: expected a keyword of JSON Schema that linnet supports, got 'not'"},
        {R"({"properties": {"a/b": {"patternProperties": {}}}})",
         "s: #/properties/a~1b/patternProperties: expected a keyword"},
        {R"({"proprties": {}})", "did you mean properties?"},
        {R"({"items": {"multipleOf": 2}})", "#/items/multipleOf"},
        {R"({"uniqueItems": true})", "#/uniqueItems: expected false, got true"},
        {R"({"type": "strin"})", "#/type: expected object, array"},
        {R"({"minLength": -1})", "#/minLength: expected a value that this keyword may have, got '-1'"},
        {R"({"minLength": 2, "maxLength": 1})", "#/maxLength: expected at least minLength"},
        {R"({"required": "a"})", "#/required: expected a value"},
        {R"_({"pattern": "a(?=b)"})_", "#/pattern: expected a regular expression without look-around"},
        {R"_({"pattern": "(a)\\1"})_", "got 1 at character 5"},
        {R"({"pattern": "a(b"})", "got its end"},
        {R"({"pattern": "a", "minLength": 3})", "#/minLength: expected nothing else beside pattern"},
        {R"({"format": "idn-email"})", "#/format: expected one of date, time"},
        {R"({"type": "integer", "minimum": 3, "maximum": 2})", "#: expected a range with a whole number"},
        {R"({"type": "integer", "minimum": 0.2, "maximum": 0.8})", "#: expected a range with a whole number"},
        {R"({"type": "number", "exclusiveMinimum": 0.2, "maximum": 0.2})",
         "#: expected a range with a number of at most 15 digits, got none"},
        {R"({"type": "number", "minimum": 1e-20, "maximum": 2e-20})",
         "#: expected a range with a number of at most 15 digits, got none"},
        {R"({"type": "integer", "enum": [2.5]})", "#: expected a value that fits the type, got none"},
        {R"({"$ref": "other.json"})", "#/$ref: expected a schema of this file"},
        {R"({"$ref": "#/$defs/x"})", "#/$ref: expected a schema of this file, \"#/…\", got '#/$defs/x'"},
        {R"({"$ref": "#/$defs/100%", "$defs": {"100%": {}}})",
         "s: #/$ref: expected two hexadecimal digits behind each %, got '#/$defs/100%' (% itself is %25)"},
        {R"({"$ref": "#/$defs/%4"})", "expected two hexadecimal digits"},
        {R"({"$ref": "#/$defs/%4g"})", "expected two hexadecimal digits"},
        {R"({"$ref": "#/$defs/%FF"})", "#/$ref: expected a schema of this file"},
        {R"({"$ref": "#/$defs/n", "properties": {"a": {"type": "object"}}, "$defs": {"n": {"properties": {"a": {"$ref": "#"}}}}})",
         "expected a schema that can be merged in 100 steps, got more (does it refer to itself?)"},
        {R"({"$ref": "#"})", "expected a rule that some finite text fulfils"},
        {R"({"properties": {"a": {"$ref": "#"}}, "required": ["a"]})",
         "expected a rule that some finite text fulfils"},
        {R"({"allOf": [{"$ref": "#"}]})", "does it refer to itself?"},
        {R"({"allOf": [{"pattern": "a"}, {"pattern": "b"}]})",
         "#/allOf/1/pattern: expected keywords that can be merged"},
        {R"({"allOf": [{"type": "null"}, {"type": "string"}]})",
         "#/allOf/1/type: expected keywords that can be merged"},
        {R"({"oneOf": [{"type": "number"}, {"type": "integer"}]})",
         "#/oneOf/1: expected a branch that excludes the others"},
        {R"({"enum": [1], "type": "string"})", "#: expected a value that fits the type"},
        {R"({"enum": [1], "minimum": 0})", "#/minimum: expected only type beside const and enum"},
        {"false", "#: expected a schema that some value fulfils"},
        {R"({"items": {"type": "null"}, "minItems": 2, "maxItems": 1})", "expected room for minItems items"},
        {R"({"required": ["a"], "additionalProperties": false})",
         "expected a schema that some value fulfils"},
    };
    for (const auto& [schema, message] : cases) {
        const std::string of(schema);
        CAPTURE(of);
        std::string line = "none";
        try {
            read_json_schema(schema, "s");
        } catch (const Error& error) {
            CHECK(error.exit() == Exit::input);
            line = error.what();
        }
        CHECK_MESSAGE(line.find(message) != line.npos, line);
        CHECK(line.find('\n') == line.npos);
    }
}

TEST_CASE(
    "a schema that doubles at each reference, and names without end, are refused and not worked through") {
    const auto refused = [](const std::string& schema) {
        try {
            read_json_schema(schema, "s");
        } catch (const Error& error) {
            return std::string(error.what());
        }
        return std::string("none");
    };
    std::string doubling = R"({"$ref": "#/$defs/a0", "$defs": {)";
    for (int i = 0; i < 40; i++) {
        const std::string next = R"({"$ref": "#/$defs/a)" + std::to_string(i + 1) + "\"}";
        doubling += "\"a" + std::to_string(i) + R"(": {"allOf": [)" + next + ", " + next + "]}, ";
    }
    doubling += R"("a40": {"type": "null"}}})";
    CHECK(refused(doubling).find("a schema that can be merged in") != std::string::npos);
    const std::string name(100'000, 'a');
    CHECK(refused(R"({"properties": {")" + name + R"(": {}}, "additionalProperties": true})")
              .find("#/properties: expected names of at most 4096 bytes") != std::string::npos);
}
