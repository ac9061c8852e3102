#include "generate/grammar/schema_merge.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/json_line.h"
#include "base/nearest.h"
#include "base/split.h"

namespace linnet {
namespace {

constexpr SchemaWord words[] = {
    {"type", ""},
    {"enum", ""},
    {"const", ""},
    {"anyOf", ""},
    {"oneOf", ""},
    {"allOf", ""},
    {"$ref", ""},
    {"nullable", ""},
    {"properties", "object"},
    {"required", "object"},
    {"additionalProperties", "object"},
    {"items", "array"},
    {"prefixItems", "array"},
    {"additionalItems", "array"},
    {"minItems", "array"},
    {"maxItems", "array"},
    {"uniqueItems", "array"},
    {"minLength", "string"},
    {"maxLength", "string"},
    {"pattern", "string"},
    {"format", "string"},
    {"minimum", "number"},
    {"maximum", "number"},
    {"exclusiveMinimum", "number"},
    {"exclusiveMaximum", "number"},
    {"title", "note"},
    {"description", "note"},
    {"default", "note"},
    {"examples", "note"},
    {"example", "note"},
    {"$schema", "note"},
    {"$id", "note"},
    {"$comment", "note"},
    {"$defs", "note"},
    {"definitions", "note"},
    {"deprecated", "note"},
    {"readOnly", "note"},
    {"writeOnly", "note"},
};
constexpr int deepest = 100;
constexpr const char* type_names[] = {"object", "array", "string", "number", "integer", "boolean", "null"};

/// Whether the value is of a kind that the keyword may have.
bool right_kind(std::string_view word, const Schema& v) {
    auto strings = [](const Schema& list) {
        return list.is_array() &&
               std::all_of(list.begin(), list.end(), [](const Schema& s) { return s.is_string(); });
    };
    auto schema = [](const Schema& s) { return s.is_object() || s.is_boolean(); };
    auto schemas = [&](const Schema& list) {
        return list.is_array() && !list.empty() && std::all_of(list.begin(), list.end(), schema);
    };
    if (word == "type") return v.is_string() || (strings(v) && !v.empty());
    if (word == "enum") return v.is_array() && !v.empty();
    if (word == "anyOf" || word == "oneOf" || word == "allOf") return schemas(v);
    if (word == "$ref" || word == "pattern" || word == "format") return v.is_string();
    if (word == "nullable" || word == "uniqueItems") return v.is_boolean();
    if (word == "properties") return v.is_object() && std::all_of(v.begin(), v.end(), schema);
    if (word == "required") return strings(v);
    if (word == "additionalProperties" || word == "additionalItems") return schema(v);
    if (word == "items") return schema(v) || schemas(v);
    if (word == "prefixItems") return schemas(v);
    if (word == "minItems" || word == "maxItems" || word == "minLength" || word == "maxLength")
        return v.is_number() && v.get<double>() >= 0 && v.get<double>() <= 1e6 &&
               v.get<double>() == static_cast<double>(v.get<std::int64_t>());
    if (word == "minimum" || word == "maximum") return v.is_number();
    if (word == "exclusiveMinimum" || word == "exclusiveMaximum") return v.is_number() || v.is_boolean();
    return true;
}

Schema type_list(const Schema& schema) {
    if (!schema.contains("type")) return nullptr;
    return schema["type"].is_array() ? schema["type"] : Schema::array({schema["type"]});
}

}  // namespace

const SchemaWord* find_word(std::string_view name) {
    const auto* found =
        std::find_if(std::begin(words), std::end(words), [&](const SchemaWord& w) { return name == w.name; });
    return found == std::end(words) ? nullptr : found;
}

std::string path_to(const std::string& path, std::string_view step) {
    std::string out = path + "/";
    for (char c : step) out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return out;
}

void SchemaFile::fail(const std::string& path, std::string_view expected, std::string_view got,
                      std::string_view hint) const {
    fail_input(file_, path, expected, got, hint);
}

/// What a fragment of a URI spells with %XX (RFC 3986, section 2.1).
std::string SchemaFile::percent_decoded(const std::string& reference, const std::string& path) const {
    std::string out;
    for (std::size_t i = 0; i < reference.size(); i++) {
        if (reference[i] != '%') {
            out += reference[i];
            continue;
        }
        std::uint8_t byte = 0;
        const char* digits = reference.data() + i + 1;
        if (reference.size() - i < 3 || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2)
            fail(path_to(path, "$ref"), "two hexadecimal digits behind each %", quoted(reference),
                 "% itself is %25");
        out += static_cast<char>(byte);
        i += 2;
    }
    return out;
}

const Schema& SchemaFile::resolve(const std::string& reference, const std::string& path) const {
    auto lost = [&]() { fail(path_to(path, "$ref"), "a schema of this file, \"#/…\"", quoted(reference)); };
    if (!reference.starts_with('#')) lost();
    const Schema* at = &root_;
    const std::string pointer = percent_decoded(reference, path);  // first, so that %7E1 is a ~1
    for (std::size_t begin = 1; begin < pointer.size();) {
        if (pointer[begin] != '/') lost();
        const std::size_t end = std::min(pointer.find('/', begin + 1), pointer.size());
        std::string step;
        for (std::size_t i = begin + 1; i < end; i++) {
            const char c = pointer[i], next = i + 1 < end ? pointer[i + 1] : '\0';
            if (c == '~' && (next == '0' || next == '1'))
                step += next == '0' ? '~' : '/', i++;
            else
                step += c;
        }
        if (at->is_object() && at->contains(step)) {
            at = &(*at)[step];
        } else if (at->is_array() && !step.empty() && step.size() < 6 &&
                   step.find_first_not_of("0123456789") == std::string::npos &&
                   static_cast<std::size_t>(std::stoi(step)) < at->size()) {
            at = &(*at)[static_cast<std::size_t>(std::stoi(step))];
        } else {
            lost();
        }
        begin = end;
    }
    if (!at->is_object() && !at->is_boolean()) lost();
    return *at;
}

void SchemaFile::check_words(const Schema& schema, const std::string& path) const {
    for (const auto& [word, value] : schema.items()) {
        if (!find_word(word))
            fail(path_to(path, word), "a keyword of JSON Schema that linnet supports", quoted(word),
                 did_you_mean(word, names_of(words), "README.md lists them"));
        if (!right_kind(word, value))
            fail(path_to(path, word), "a value that this keyword may have", quoted(dumped(value)));
    }
    // Names become as many nested expressions as they have characters.
    constexpr std::size_t longest_name = 4096;
    if (schema.contains("properties"))
        for (const auto& [name, ignored] : schema["properties"].items())
            if (name.size() > longest_name)
                fail(path_to(path, "properties"),
                     "names of at most " + std::to_string(longest_name) + " bytes",
                     std::to_string(name.size()));
    if (schema.contains("uniqueItems") && schema["uniqueItems"] == true)
        fail(path_to(path, "uniqueItems"), "false", "true", "a grammar cannot compare items");
    const Schema listed = type_list(schema);
    for (const Schema& type : listed)
        if (std::find(std::begin(type_names), std::end(type_names), type.get<std::string>()) ==
            std::end(type_names))
            fail(path_to(path, "type"), "object, array, string, number, integer, boolean or null",
                 quoted(type.get<std::string>()));
}

void SchemaFile::count_step(const std::string& path) const {
    constexpr std::int64_t most = 100'000;  // about a second; references may double them at each level
    if (++steps_ > most)
        fail(path, "a schema that can be merged in " + std::to_string(most) + " steps", "more");
}

Schema SchemaFile::flat(const Schema& schema, const std::string& path, int depth) const {
    count_step(path);
    if (depth > deepest)
        fail(path, "a schema that can be merged in " + std::to_string(deepest) + " steps", "more",
             "does it refer to itself?");
    if (schema.is_boolean()) return schema;
    check_words(schema, path);
    Schema rest = Schema::object();
    bool says = false;
    for (const auto& [word, value] : schema.items())
        if (word != "allOf" && word != "$ref" && std::string_view(find_word(word)->kind) != "note")
            rest[word] = value, says = true;
    if (rest.value("nullable", false) && rest.contains("type")) {  // of this type, which others may narrow
        rest["type"] = type_list(rest);
        rest["type"].push_back("null");
        rest.erase("nullable");
    }
    if (schema.contains("$ref")) {
        if (!says && !schema.contains("allOf")) return {{"$ref", schema["$ref"]}};
        const std::string to = schema["$ref"].get<std::string>();
        rest = both(flat(resolve(to, path), to, depth + 1), rest, path, depth + 1);
    }
    if (schema.contains("allOf")) {
        std::size_t i = 0;
        for (const Schema& part : schema["allOf"]) {
            const std::string place = path_to(path_to(path, "allOf"), std::to_string(i++));
            rest = both(rest, flat(part, place, depth + 1), place, depth + 1);
        }
    }
    return rest;
}

/// Whether `other` says the first items one by one, and `schema` all of them at once.
bool says_items_at_once(const Schema& schema, const Schema& other) {
    return other.contains("prefixItems") && !schema.contains("prefixItems") && schema.contains("items") &&
           !schema["items"].is_array();
}

Schema with_first_items(Schema schema, std::size_t count) {
    schema["prefixItems"] = Schema::array();
    for (std::size_t i = 0; i < count; i++) schema["prefixItems"].push_back(schema["items"]);
    return schema;
}

Schema SchemaFile::both(const Schema& a, const Schema& b, const std::string& path, int depth) const {
    count_step(path);
    if (a == false || b == false) return false;
    if (a == true) return b;
    if (b == true) return a;
    for (const Schema* one : {&a, &b})
        if (one->contains("$ref")) {
            const std::string to = (*one)["$ref"].get<std::string>();
            const Schema followed = flat(resolve(to, path), to, depth + 1);
            return one == &a ? both(followed, b, path, depth + 1) : both(a, followed, path, depth + 1);
        }
    if (says_items_at_once(a, b))
        return both(with_first_items(a, b["prefixItems"].size()), b, path, depth + 1);
    if (says_items_at_once(b, a))
        return both(a, with_first_items(b, a["prefixItems"].size()), path, depth + 1);
    Schema out = both_members(a, b, path, depth);
    for (const Schema* one : {&a, &b})
        for (const auto& [word, value] : one->items()) {
            if (word == "properties" || word == "required" || word == "additionalProperties" ||
                out.contains(word))
                continue;
            const Schema& other = one == &a ? b : a;
            out[word] = other.contains(word) ? both_words(word, value, other[word], path, depth) : value;
        }
    return out;
}

/// The keywords about objects. A member that one schema does not name falls under its additionalProperties.
Schema SchemaFile::both_members(const Schema& a, const Schema& b, const std::string& path, int depth) const {
    Schema out = Schema::object();
    Schema members = Schema::object();
    add_members(members, a, b, path, depth);
    add_members(members, b, a, path, depth);
    if (a.contains("properties") || b.contains("properties")) out["properties"] = members;
    Schema required = Schema::array();
    for (const Schema* one : {&a, &b})
        if (one->contains("required"))
            for (const Schema& name : (*one)["required"])
                if (std::find(required.begin(), required.end(), name) == required.end())
                    required.push_back(name);
    if (!required.empty()) out["required"] = required;
    const Schema more_a = a.value("additionalProperties", Schema(nullptr)),
                 more_b = b.value("additionalProperties", Schema(nullptr));
    if (!more_a.is_null() && !more_b.is_null())
        out["additionalProperties"] =
            both(flat(more_a, path, depth + 1), flat(more_b, path, depth + 1), path, depth + 1);
    else if (!more_a.is_null() || !more_b.is_null())
        out["additionalProperties"] = more_a.is_null() ? more_b : more_a;
    return out;
}

void SchemaFile::add_members(Schema& out, const Schema& of, const Schema& other, const std::string& path,
                             int depth) const {
    if (!of.contains("properties")) return;
    for (const auto& [name, schema] : of["properties"].items()) {
        if (out.contains(name)) continue;
        const std::string place = path_to(path_to(path, "properties"), name);
        Schema also = true;
        if (other.contains("properties") && other["properties"].contains(name))
            also = other["properties"][name];
        else if (other.contains("additionalProperties"))
            also = other["additionalProperties"];
        out[name] = also == true ? schema
                                 : both(flat(schema, place, depth + 1), flat(also, place, depth + 1), place,
                                        depth + 1);
    }
}

Schema SchemaFile::both_words(const std::string& word, const Schema& a, const Schema& b,
                              const std::string& path, int depth) const {
    if (a == b) return a;
    if (word == "minimum" || word == "exclusiveMinimum" || word == "minLength" || word == "minItems")
        if (a.is_number() && b.is_number()) return a > b ? a : b;
    if (word == "maximum" || word == "exclusiveMaximum" || word == "maxLength" || word == "maxItems")
        if (a.is_number() && b.is_number()) return a < b ? a : b;
    if (word == "nullable") return false;
    if (word == "uniqueItems") return false;
    if (word == "items" && !a.is_array() && !b.is_array()) {
        const std::string place = path_to(path, word);
        return both(flat(a, place, depth + 1), flat(b, place, depth + 1), place, depth + 1);
    }
    if (word == "prefixItems" && a.size() == b.size()) {
        Schema items = Schema::array();
        for (std::size_t i = 0; i < a.size(); i++) {
            const std::string place = path_to(path_to(path, word), std::to_string(i));
            items.push_back(
                both(flat(a[i], place, depth + 1), flat(b[i], place, depth + 1), place, depth + 1));
        }
        return items;
    }
    if (word == "enum") {
        Schema common = Schema::array();
        for (const Schema& value : a)
            if (std::find(b.begin(), b.end(), value) != b.end()) common.push_back(value);
        if (!common.empty()) return common;
    }
    if (word == "type") {
        Schema common = Schema::array();
        const Schema la = type_list({{"type", a}}), lb = type_list({{"type", b}});
        auto has = [](const Schema& list, const char* type) {
            return std::find(list.begin(), list.end(), Schema(type)) != list.end();
        };
        for (const char* type : type_names) {
            const bool whole = std::string_view(type) == "integer";
            if ((has(la, type) || (whole && has(la, "number"))) &&
                (has(lb, type) || (whole && has(lb, "number"))))
                if (!whole || !has(common, "number")) common.push_back(type);
        }
        if (!common.empty()) return common;
    }
    fail(path_to(path, word), "keywords that can be merged", quoted(dumped(a)) + " and " + quoted(dumped(b)));
}

bool SchemaFile::is_type(const Schema& value, std::string_view type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "null") return value.is_null();
    if (type == "number" || !value.is_number_float()) return value.is_number();
    return value.get<double>() == std::trunc(value.get<double>());  // 1.0 is an integer, too
}

std::vector<std::string> SchemaFile::types(const Schema& schema) {
    std::vector<std::string> allowed;
    const Schema listed = type_list(schema);
    for (const char* type : type_names) {
        bool may = listed.is_null() ||
                   std::find(listed.begin(), listed.end(), Schema(type)) != listed.end() ||
                   (std::string_view(type) == "null" && schema.value("nullable", false));
        auto is = [&](const Schema& v) { return is_type(v, type); };
        if (schema.contains("const")) may = may && is(schema["const"]);
        if (schema.contains("enum"))
            may = may && std::any_of(schema["enum"].begin(), schema["enum"].end(), is);
        if (may) allowed.emplace_back(type);
    }
    return allowed;
}

bool SchemaFile::disjoint(const Schema& a, const Schema& b, const std::string& path, int depth) const {
    if (a == false || b == false) return true;
    if (a.is_boolean() || b.is_boolean() || depth > 8) return false;
    for (const Schema* one : {&a, &b})
        if (one->contains("$ref")) {
            const std::string to = (*one)["$ref"].get<std::string>();
            const Schema followed = flat(resolve(to, path), to);
            return one == &a ? disjoint(followed, b, path, depth + 1)
                             : disjoint(a, followed, path, depth + 1);
        }
    auto values = [](const Schema& s) {
        return s.contains("const") ? Schema::array({s["const"]}) : s.value("enum", Schema(nullptr));
    };
    const Schema va = values(a), vb = values(b);
    if (!va.is_null() && !vb.is_null())
        return std::none_of(va.begin(), va.end(),
                            [&](const Schema& v) { return std::find(vb.begin(), vb.end(), v) != vb.end(); });
    bool common = false, objects_alone = true;
    for (const std::string& x : types(a))
        for (const std::string& y : types(b)) {
            if (x != y && !(x == "integer" && y == "number") && !(x == "number" && y == "integer")) continue;
            common = true;
            objects_alone &= x == "object";
        }
    if (!common || !objects_alone) return !common;
    for (const Schema* one : {&a, &b}) {
        const Schema& other = one == &a ? b : a;
        for (const Schema& name : one->value("required", Schema::array())) {
            const std::string key = name.get<std::string>();
            const Schema none = Schema::object(), p = one->value("properties", none),
                         q = other.value("properties", none);
            const std::string place = path_to(path_to(path, "properties"), key);
            if (!q.contains(key)) {
                if (other.value("additionalProperties", Schema(nullptr)) == false) return true;
            } else if (p.contains(key)) {
                const Schema required = other.value("required", Schema::array());
                if (std::find(required.begin(), required.end(), name) != required.end() &&
                    disjoint(flat(p[key], place), flat(q[key], place), place, depth + 1))
                    return true;
            }
        }
    }
    return false;
}

}  // namespace linnet
