#include "generate/grammar/json_schema.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fields.h"
#include "base/split.h"
#include "generate/grammar/json_text.h"
#include "generate/grammar/pattern.h"
#include "generate/grammar/schema_merge.h"

namespace linnet {
namespace {

/// The values of `format`, as patterns (RFC 3339, RFC 9562). No 29 February: a grammar does not know leap
/// years.
const std::vector<std::pair<std::string, std::string>>& formats() {
    static const std::string date =
        "[0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
        "02-(0[1-9]|1[0-9]|2[0-8]))";
    static const std::string time =
        "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";
    static const std::string hex = "[0-9a-fA-F]", byte = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])",
                             word = "[A-Za-z0-9_+-]{1,32}";
    static const std::vector<std::pair<std::string, std::string>> table{
        {"date", "^" + date + "$"},
        {"time", "^" + time + "$"},
        {"date-time", "^" + date + "T" + time + "$"},
        {"uuid", "^" + hex + "{8}(-" + hex + "{4}){3}-" + hex + "{12}$"},
        {"ipv4", "^(" + byte + "\\.){3}" + byte + "$"},
        {"email", "^" + word + "(\\." + word + ")?@([A-Za-z0-9]{1,32}\\.){1,3}[A-Za-z]{2,12}$"},
    };
    return table;
}

constexpr int deepest = 120;

/// A number as JSON writes it without an exponent, in as few digits as tell it from others.
std::string plain_decimal(const Schema& number) {
    if (number.is_number_integer()) return number.dump();
    char text[400];  // the smallest double has 324 zeros behind its point
    const auto end =
        std::to_chars(text, text + sizeof text, number.get<double>(), std::chars_format::fixed).ptr;
    return std::string(text, end);
}

class Reader {
  public:
    Reader(Schema root, std::string_view file) : schemas_(std::move(root), std::string(file)), file_(file) {}

    Grammar grammar() {
        if (const Schema& root = schemas_.root(); !root.is_object() && !root.is_boolean())
            fail("#", "a schema, which is an object, true or false", root.type_name());
        grammar_.root = grammar_.declare("#", "#");
        rules_["#"] = grammar_.root;
        waiting_.push_back("#");
        while (!waiting_.empty()) {  // not by recursion: references may make long chains
            const std::string at = std::exchange(waiting_.back(), {});
            waiting_.pop_back();
            grammar_.define(rules_[at], value(schemas_.resolve(at, at), at, 0));
        }
        grammar_.check(file_);
        return std::move(grammar_);
    }

  private:
    [[noreturn]] void fail(const std::string& path, std::string_view expected, std::string_view got,
                           std::string_view hint = {}) const {
        schemas_.fail(path, expected, got, hint);
    }

    ExprId value(const Schema& schema, const std::string& path, int depth) {
        if (depth > deepest)
            fail(path, "schemas nested at most " + std::to_string(deepest) + " deep", "more");
        return flat_value(schemas_.flat(schema, path), path, depth, merges(schema));
    }

    /// Whether flat() makes one of several schemas.
    static bool merges(const Schema& written) {
        return written.contains("$ref") || written.contains("allOf");
    }

    ExprId flat_value(const Schema& s, const std::string& path, int depth, bool merged) {
        if (s == false) fail(path, "a schema that some value fulfils", "false");
        if (s == true || s.empty()) return json_.any();
        if (s.contains("$ref")) return referred(s["$ref"].get<std::string>(), path);
        if (merged) return merged_value(s, path, depth);
        for (const char* word : {"anyOf", "oneOf"})
            if (s.contains(word)) return branches(s, word, path, depth);
        if (s.contains("const") || s.contains("enum")) return constants(s, path);
        std::vector<ExprId> choices;
        for (const std::string& type : types(s)) choices.push_back(typed(s, type, path, depth));
        if (choices.empty()) fail(path, "a schema that some value fulfils", "types that exclude each other");
        return grammar_.choice(std::move(choices));
    }

    /// What was made of several schemas may come again inside of itself, and has no name to be known by: each
    /// text of it is a rule.
    ExprId merged_value(const Schema& s, const std::string& path, int depth) {
        const auto [entry, fresh] = merged_.emplace(s.dump(), 0);
        const RuleId rule = fresh ? entry->second = grammar_.declare(path, path) : entry->second;
        if (fresh) grammar_.define(rule, flat_value(s, path, depth, false));
        return grammar_.reference(rule);
    }

    ExprId referred(const std::string& to, const std::string& path) {
        schemas_.resolve(to, path);
        auto [entry, fresh] = rules_.emplace(to, 0);
        if (fresh) {
            entry->second = grammar_.declare(to, to);
            waiting_.push_back(to);
        }
        return grammar_.reference(entry->second);
    }

    /// anyOf and oneOf: what stands beside them holds for every branch.
    ExprId branches(const Schema& s, const std::string& word, const std::string& path, int depth) {
        Schema rest = s;
        rest.erase(word);
        const bool alone = rest.empty();
        std::vector<ExprId> choices;
        std::vector<Schema> flat;
        for (const Schema& branch : s[word]) {
            const std::string place = path_to(path_to(path, word), std::to_string(flat.size()));
            Schema one = schemas_.flat(branch, place);
            if (!alone) one = schemas_.both(rest, one, place);
            if (word == "oneOf")
                for (std::size_t i = 0; i < flat.size(); i++)
                    if (!schemas_.disjoint(flat[i], one, place))
                        fail(place, "a branch that excludes the others",
                             "one that may hold beside branch " + std::to_string(i), "anyOf takes either");
            flat.push_back(one);
            if (one == false) continue;
            if (depth > deepest)
                fail(path, "schemas nested at most " + std::to_string(deepest) + " deep", "more");
            choices.push_back(flat_value(one, place, depth + 1, !alone || merges(branch)));
        }
        if (choices.empty()) fail(path_to(path, word), "a schema that some value fulfils", "none");
        return grammar_.choice(std::move(choices));
    }

    ExprId constants(const Schema& s, const std::string& path) {
        for (const auto& [word, unused] : s.items())
            if (word != "const" && word != "enum" && word != "type" && word != "nullable")
                fail(path_to(path, word), "only type beside const and enum", quoted(word));
        const std::vector<std::string> types = SchemaFile::types(s);
        std::vector<ExprId> choices;
        const Schema listed = s.contains("enum") ? s["enum"] : Schema::array({s["const"]});
        for (const Schema& v : listed) {
            if (s.contains("const") && v != s["const"]) continue;
            if (std::any_of(types.begin(), types.end(),
                            [&](const std::string& t) { return SchemaFile::is_type(v, t); }))
                choices.push_back(grammar_.literal(v.dump()));
        }
        if (choices.empty()) fail(path, "a value that fits the type", "none");
        return grammar_.choice(std::move(choices));
    }

    /// The types to write: those of `type`, or those that the keywords are about.
    std::vector<std::string> types(const Schema& s) {
        std::vector<std::string> all = SchemaFile::types(s);
        if (s.contains("type")) {
            if (std::find(all.begin(), all.end(), "number") != all.end()) std::erase(all, "integer");
            return all;
        }
        std::vector<std::string> about;
        for (const auto& [word, unused] : s.items()) {
            const std::string kind = find_word(word)->kind;
            if (!kind.empty() && std::find(about.begin(), about.end(), kind) == about.end())
                about.push_back(kind);
        }
        if (about.empty()) std::erase(all, "integer");
        if (!about.empty() && s.value("nullable", false)) about.emplace_back("null");
        return about.empty() ? all : about;
    }

    ExprId typed(const Schema& s, const std::string& type, const std::string& path, int depth) {
        if (type == "object") return object(s, path, depth);
        if (type == "array") return array(s, path, depth);
        if (type == "string") return string(s, path);
        if (type == "number" || type == "integer") return number(s, type == "integer", path);
        if (type == "null") return grammar_.literal("null");
        return grammar_.choice({grammar_.literal("true"), grammar_.literal("false")});
    }

    std::optional<std::int32_t> count(const Schema& s, const char* word) {
        if (!s.contains(word)) return std::nullopt;
        return static_cast<std::int32_t>(s[word].get<double>());
    }

    ExprId string(const Schema& s, const std::string& path) {
        const std::int32_t min = count(s, "minLength").value_or(0), max = count(s, "maxLength").value_or(-1);
        const char* shape = s.contains("pattern") ? "pattern" : s.contains("format") ? "format" : nullptr;
        if (!shape) {
            if (max >= 0 && max < min)
                fail(path_to(path, "maxLength"), "at least minLength", std::to_string(max));
            return json_.string(min, max);
        }
        for (const char* other : {"minLength", "maxLength", "format"})
            if (s.contains(other) && std::string_view(other) != shape)
                fail(path_to(path, other), std::string("nothing else beside ") + shape, quoted(other));
        std::string pattern = s[shape].get<std::string>();
        const std::string place = path_to(path, shape);
        if (std::string_view(shape) == "format") {
            std::vector<std::string_view> known;
            std::string found;
            for (const auto& [name, meaning] : formats()) {
                known.push_back(name);
                if (pattern == name) found = meaning;
            }
            if (found.empty()) fail(place, "one of " + joined(known), quoted(std::string_view(pattern)));
            pattern = found;
        }
        const ExprId quote = grammar_.literal("\"");
        const ExprId inside = read_pattern(pattern, grammar_, json_, [&](std::string_view found) {
            fail(place, "a regular expression without look-around, references, properties and anchors inside",
                 found);
        });
        return grammar_.rule_of(place, grammar_.sequence({quote, inside, quote}));
    }

    ExprId number(const Schema& s, bool whole, const std::string& path) {
        NumberRange range;
        auto bound = [&](const char* word, const char* exclusive, std::optional<std::string>& text, bool& out,
                         bool lower) {
            const Schema* value = s.contains(word) ? &s[word] : nullptr;
            const Schema* x = s.contains(exclusive) ? &s[exclusive] : nullptr;
            if (x && x->is_boolean())  // draft 4
                out = x->get<bool>() && value;
            else if (x && (!value || (lower ? *x >= *value : *x <= *value)))
                value = x, out = true;
            if (value) text = plain_decimal(*value);
        };
        bound("minimum", "exclusiveMinimum", range.low, range.low_exclusive, true);
        bound("maximum", "exclusiveMaximum", range.high, range.high_exclusive, false);
        const std::optional<ExprId> made = whole ? json_.integer(range) : json_.number(range);
        if (!made) {
            fail(path,
                 whole ? "a range with a whole number of at most 16 digits"
                       : "a range with a number of at most 15 digits",
                 "none");
        }
        return *made;
    }

    ExprId array(const Schema& s, const std::string& path, int depth) {
        std::vector<ExprId> first;
        const bool tuple = s.contains("items") && s["items"].is_array();  // draft 7
        const char* list = s.contains("prefixItems") ? "prefixItems" : "items";
        if (s.contains("prefixItems") || tuple)
            for (const Schema& one : s[list]) {
                const std::string place = path_to(path_to(path, list), std::to_string(first.size()));
                first.push_back(grammar_.rule_of(place, value(one, place, depth + 1)));
            }
        const char* more = tuple ? "additionalItems" : "items";
        Schema rest = first.empty();
        if (s.contains(more) && !(tuple && std::string_view(more) == "items")) rest = s[more];
        const std::int32_t min = count(s, "minItems").value_or(0);
        std::int32_t max = count(s, "maxItems").value_or(-1);
        const auto firsts = static_cast<std::int32_t>(first.size());
        if (rest == false && (max < 0 || max > firsts)) max = firsts;
        if (max >= 0 && max < min) fail(path, "room for minItems items", "for " + std::to_string(max));
        const std::string place = path_to(path, more);
        if (max >= 0 && max <= firsts) rest = false;
        const ExprId each =
            rest == false ? json_.space() : grammar_.rule_of(place, value(rest, place, depth + 1));
        if (first.empty()) return json_.members('[', each, min, max, ']');
        return tuple_of(first, rest == false ? std::nullopt : std::optional(each), min, max);
    }

    /// [ first, first, … each, each ] of min to max items: a rule for what may follow each of the first.
    ExprId tuple_of(const std::vector<ExprId>& first, std::optional<ExprId> each, std::int32_t min,
                    std::int32_t max) {
        const ExprId end = grammar_.sequence({json_.space(), grammar_.literal("]")});
        const ExprId comma = grammar_.sequence({grammar_.literal(","), json_.space()});
        const auto firsts = static_cast<std::int32_t>(first.size());
        ExprId tail = end;
        if (each)
            tail = grammar_.sequence(
                {grammar_.repeat(grammar_.sequence({comma, *each}), std::max(min - firsts, 0),
                                 max < 0 ? -1 : std::max(max - firsts, 0)),
                 end});
        for (std::int32_t i = firsts; i-- > 0;) {
            ExprId here = grammar_.sequence({first[static_cast<std::size_t>(i)], tail});
            if (max >= 0 && i >= max)
                here = end;
            else if (i > 0)
                here = grammar_.sequence({comma, here});
            if (i >= min && !(max >= 0 && i >= max))
                here = i > 0 ? grammar_.choice({here, end}) : grammar_.choice({here, grammar_.literal("]")});
            tail = grammar_.rule_of("items", here);
        }
        return grammar_.sequence({grammar_.literal("["), json_.space(), tail});
    }

    struct Member {
        ExprId text;  // name, colon, value
        bool required;
    };

    ExprId object(const Schema& s, const std::string& path, int depth) {
        const Schema none = Schema::object(), properties = s.value("properties", none),
                     required = s.value("required", Schema::array());
        Schema more = s.value("additionalProperties", Schema(!s.contains("properties")));
        if (properties.empty() && required.empty() && more == true) return json_.any_object();
        std::vector<Member> members;
        std::vector<std::string> names;
        auto needs = [&](const std::string& name) {
            return std::find(required.begin(), required.end(), Schema(name)) != required.end();
        };
        auto add = [&](const std::string& name, const Schema& of, const std::string& place) {
            names.push_back(name);
            const Schema flat = schemas_.flat(of, place);
            if (flat == false && !needs(name)) return;  // must not be there
            const ExprId inside = grammar_.rule_of(place, flat_value(flat, place, depth + 1, merges(of)));
            members.push_back(
                {grammar_.sequence({grammar_.literal(Schema(name).dump() + ":"), json_.space(), inside}),
                 needs(name)});
        };
        if (depth > deepest)
            fail(path, "schemas nested at most " + std::to_string(deepest) + " deep", "more");
        for (const auto& [name, of] : properties.items())
            add(name, of, path_to(path_to(path, "properties"), name));
        for (const Schema& name : required)
            if (std::find(names.begin(), names.end(), name.get<std::string>()) == names.end()) {
                const bool open = !s.contains("additionalProperties");
                add(name.get<std::string>(), open ? Schema(true) : more, path_to(path, "required"));
            }
        std::optional<ExprId> others;
        const std::string place = path_to(path, "additionalProperties");
        if (more != false) {
            const ExprId name = names.empty() ? json_.string(0, -1) : json_.string_but(names);
            others = grammar_.rule_of(place, grammar_.sequence({name, grammar_.literal(":"), json_.space(),
                                                                value(more, place, depth + 1)}));
        }
        return object_of(members, others);
    }

    /// A rule for what may follow each member, before the first comma and behind it.
    ExprId object_of(const std::vector<Member>& members, std::optional<ExprId> others) {
        const ExprId close = grammar_.literal("}");
        const ExprId end = grammar_.sequence({json_.space(), close});
        const ExprId comma = grammar_.sequence({grammar_.literal(","), json_.space()});
        ExprId first = close, later = end;  // where nothing, or something, was written
        if (others) {
            const ExprId more = grammar_.repeat(grammar_.sequence({comma, *others}), 0, -1);
            later = grammar_.rule_of("more members", grammar_.sequence({more, end}));
            first = grammar_.choice({close, grammar_.sequence({*others, later})});
        }
        for (std::size_t i = members.size(); i-- > 0;) {
            const ExprId text = grammar_.rule_of("member", members[i].text);
            const ExprId from_first = grammar_.sequence({text, later}),
                         from_later = grammar_.sequence({comma, text, later});
            const bool required = members[i].required;
            first = grammar_.rule_of("members", required ? from_first : grammar_.choice({from_first, first}));
            later = grammar_.rule_of("members", required ? from_later : grammar_.choice({from_later, later}));
        }
        return grammar_.sequence({grammar_.literal("{"), json_.space(), first});
    }

    SchemaFile schemas_;
    std::string_view file_;
    Grammar grammar_;
    JsonText json_{grammar_};
    std::map<std::string, RuleId> rules_;   // by reference
    std::map<std::string, RuleId> merged_;  // by text
    std::vector<std::string> waiting_;
};

}  // namespace

Grammar read_json_schema(std::string_view text, std::string_view file) {
    parse_json(text, file);  // says what is wrong, and where
    return Reader(Schema::parse(text), file).grammar();
}

}  // namespace linnet
