#include "generate/grammar/support.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>

#include "generate/grammar/char_set.h"

namespace linnet::test {
namespace {

using Node = RandomGrammar::Node;
using Json = nlohmann::ordered_json;

const std::u32string alphabet = U"ab\"\\]é中😀\n-";

std::u32string some_chars(Dice& dice, std::size_t most) {
    std::u32string chars;
    for (std::size_t n = 1 + dice.below(most); n-- > 0;) chars += alphabet[dice.below(alphabet.size())];
    return chars;
}

Node random_node(Dice& dice, int depth, std::size_t rule, std::size_t rules) {
    Node node;
    const std::size_t kind = dice.below(depth > 0 ? 8 : 3);
    if (kind < 2) {
        node.kind = kind == 0 ? Node::text : Node::set;
        node.chars = some_chars(dice, 3);
        node.others = kind == 1 && dice.one_in(3);
    } else if (kind == 2) {  // a later rule, or behind a character and as one choice of two, any
        if (rule + 1 < rules && dice.one_in(2)) {
            node.kind = Node::rule;
            node.rule_number = static_cast<int>(rule + 1 + dice.below(rules - rule - 1));
        } else {
            Node open, again, both;
            open.kind = Node::text;
            open.chars = some_chars(dice, 1);
            again.kind = Node::rule;
            again.rule_number = static_cast<int>(dice.below(rules));
            both.parts = {open, again};
            if (dice.one_in(2)) both.parts.push_back(open);
            node.kind = Node::repeat;
            node.max = 1;
            node.parts = {both};
        }
    } else if (kind < 6) {
        node.kind = kind == 3 ? Node::choice : Node::sequence;
        for (std::size_t n = 1 + dice.below(3); n-- > 0;)
            node.parts.push_back(random_node(dice, depth - 1, rule, rules));
    } else {
        node.kind = Node::repeat;
        node.min = static_cast<int>(dice.below(3));
        node.max = dice.one_in(3) ? -1 : node.min + static_cast<int>(dice.below(4));
        node.parts = {random_node(dice, depth - 1, rule, rules)};
    }
    return node;
}

std::string spelled(char32_t c, Dice& dice) {
    char text[16];
    if (c == '\n') return "\\n";
    if (c < 0x80 && !dice.one_in(8))
        return (c == '"' || c == '\\' || c == ']' || c == '-' ? "\\" : "") +
               std::string(1, static_cast<char>(c));
    if (!dice.one_in(3) && c >= 0x80) return utf8_of(c);
    std::snprintf(text, sizeof text,
                  c < 0x80      ? "\\x%02X"
                  : c < 0x10000 ? "\\u%04x"
                                : "\\U%08X",
                  static_cast<unsigned>(c));
    return text;
}

std::string printed(const Node& node, Dice& dice) {
    std::string text;
    switch (node.kind) {
        case Node::text:
            for (char32_t c : node.chars) text += spelled(c, dice);
            return "\"" + text + "\"";
        case Node::set:
            for (char32_t c : node.chars) text += spelled(c, dice);
            return (node.others ? "[^" : "[") + text + "]";
        case Node::rule:
            return "r" + std::to_string(node.rule_number);
        case Node::repeat: {
            text = "( " + printed(node.parts[0], dice) + " )";
            if (node.min == 0 && node.max < 0) return text + "*";
            if (node.min == 1 && node.max < 0) return text + " +";
            if (node.min == 0 && node.max == 1) return text + "?";
            return text + "{" + std::to_string(node.min) +
                   (node.max == node.min ? ""
                    : node.max < 0       ? ","
                                         : ", " + std::to_string(node.max)) +
                   "}";
        }
        case Node::sequence:
        case Node::choice:
            for (const Node& part : node.parts)
                text += (text.empty()                ? ""
                         : node.kind == Node::choice ? " | "
                         : dice.one_in(9)            ? "\n # so\n"
                                                     : " ") +
                        printed(part, dice);
            return "(" + text + ")";
    }
    return text;
}

/// Every place where a match of a node that begins at `from` may end.
class Matcher {
  public:
    Matcher(const RandomGrammar& grammar, const std::u32string& text) : grammar_(grammar), text_(text) {}

    std::set<std::size_t> ends(const Node& node, std::size_t from) {
        if (node.kind != Node::rule) return ends_of(node, from);
        const std::pair<int, std::size_t> key{node.rule_number, from};
        if (auto known = known_.find(key); known != known_.end()) return known->second;
        std::set<std::size_t> found = ends(grammar_.rules[static_cast<std::size_t>(node.rule_number)], from);
        return known_[key] = found;
    }

  private:
    std::set<std::size_t> ends_of(const Node& node, std::size_t from) {
        std::set<std::size_t> found;
        if (node.kind == Node::text) {
            if (text_.compare(from, node.chars.size(), node.chars) == 0)
                found.insert(from + node.chars.size());
        } else if (node.kind == Node::set) {
            if (from < text_.size() && (node.chars.find(text_[from]) != node.chars.npos) != node.others)
                found.insert(from + 1);
        } else if (node.kind == Node::choice) {
            for (const Node& part : node.parts) found.merge(ends(part, from));
        } else if (node.kind == Node::sequence) {
            found = {from};
            for (const Node& part : node.parts) found = after(part, found);
        } else {
            std::set<std::size_t> now{from}, seen;
            for (int n = 0; n <= node.max || node.max < 0; n++) {
                if (n >= node.min) {
                    const std::size_t before = seen.size();
                    seen.insert(now.begin(), now.end());
                    if (seen.size() == before && n > node.min) break;
                }
                now = after(node.parts[0], now);
                if (now.empty()) break;
            }
            return seen;
        }
        return found;
    }
    std::set<std::size_t> after(const Node& node, const std::set<std::size_t>& starts) {
        std::set<std::size_t> found;
        for (std::size_t from : starts) found.merge(ends(node, from));
        return found;
    }
    const RandomGrammar& grammar_;
    const std::u32string& text_;
    std::map<std::pair<int, std::size_t>, std::set<std::size_t>> known_;
};

void append_example(const RandomGrammar& grammar, const Node& node, Dice& dice, std::u32string& out,
                    int depth) {
    switch (node.kind) {
        case Node::text:
            out += node.chars;
            break;
        case Node::set: {
            char32_t c = node.chars[dice.below(node.chars.size())];
            while (node.others && node.chars.find(c) != node.chars.npos)
                c = dice.one_in(2) ? alphabet[dice.below(alphabet.size())]
                                   : U'A' + static_cast<char32_t>(dice.below(5000));
            out += c;
            break;
        }
        case Node::rule:
            append_example(grammar, grammar.rules[static_cast<std::size_t>(node.rule_number)], dice, out,
                           depth + 1);
            break;
        case Node::choice:
            append_example(grammar, node.parts[dice.below(node.parts.size())], dice, out, depth);
            break;
        case Node::sequence:
            for (const Node& part : node.parts) append_example(grammar, part, dice, out, depth);
            break;
        case Node::repeat: {
            std::size_t n = static_cast<std::size_t>(node.min);
            if (depth < 6)
                n += dice.below(node.max < 0 ? 4 : static_cast<std::size_t>(node.max - node.min) + 1);
            for (; n-- > 0;) append_example(grammar, node.parts[0], dice, out, depth);
            break;
        }
    }
}

}  // namespace

RandomGrammar RandomGrammar::make(Dice& dice) {
    RandomGrammar grammar;
    const std::size_t rules = 1 + dice.below(5);
    for (std::size_t i = 0; i < rules; i++) grammar.rules.push_back(random_node(dice, 3, i, rules));
    return grammar;
}

std::string RandomGrammar::gbnf(Dice& dice) const {
    std::string text = "root ::= r0 # of chance\n";
    for (std::size_t i = 0; i < rules.size(); i++)
        text += "\nr" + std::to_string(i) + " ::= " + printed(rules[i], dice) + "\n";
    return text;
}

bool RandomGrammar::matches(const std::u32string& text) const {
    return Matcher(*this, text).ends(rules[0], 0).contains(text.size());
}

std::u32string RandomGrammar::example(Dice& dice) const {
    std::u32string out;
    append_example(*this, rules[0], dice, out, 0);
    return out;
}

namespace {

Json random_type(Dice& dice, int depth);

Json random_object(Dice& dice, int depth) {
    const std::vector<std::string> names{"a", "name", "é中", "with \"quotes\"", "ab", "n/m~o", "id"};
    Json s{{"type", "object"}}, required = Json::array();
    for (const std::string& name : names) {
        if (!dice.one_in(3)) continue;
        s["properties"][name] = random_type(dice, depth - 1);
        if (dice.one_in(2)) required.push_back(name);
    }
    if (dice.one_in(6)) required.push_back("elsewhere");
    if (!required.empty()) s["required"] = required;
    if (dice.one_in(4)) s["additionalProperties"] = random_type(dice, depth - 1);
    if (dice.one_in(4) && !s.contains("additionalProperties") && !dice.one_in(6)) {
        s["additionalProperties"] = dice.one_in(2);
        if (s["additionalProperties"] == false && s.contains("required"))
            std::erase(s["required"].get_ref<Json::array_t&>(), Json("elsewhere"));
    }
    return s;
}

Json random_array(Dice& dice, int depth) {
    Json s{{"type", "array"}};
    const std::size_t first = dice.one_in(2) ? 0 : 1 + dice.below(3);
    for (std::size_t i = 0; i < first; i++) s["prefixItems"].push_back(random_type(dice, depth - 1));
    if (first == 0 || dice.one_in(2)) s["items"] = random_type(dice, depth - 1);
    const bool closed = first > 0 && !s.contains("items");
    const std::size_t min = dice.below(closed ? first + 1 : 4);
    if (dice.one_in(2)) s["minItems"] = min;
    if (dice.one_in(2)) s["maxItems"] = min + dice.below(3);
    if (closed && dice.one_in(2)) s["items"] = false;
    return s;
}

Json random_string(Dice& dice) {
    const std::vector<std::string> patterns{"^[a-z]{2,5}$",
                                            "^(foo|ba[rz])+$",
                                            "x\\d?",
                                            "^\\w+@\\w+\\.(com|org)$|^none$",
                                            "^\"[^\"\\\\]*\"$",
                                            "^[A-F\\d]{4}(?:-[A-F\\d]{2}){1,3}$",
                                            "^a|b$",
                                            "^.{0,3}$"};
    const std::vector<std::string> formats{"date", "time", "date-time", "uuid", "ipv4", "email"};
    Json s{{"type", "string"}};
    const std::size_t kind = dice.below(5);
    if (kind == 0) s["pattern"] = patterns[dice.below(patterns.size())];
    if (kind == 1) s["format"] = formats[dice.below(formats.size())];
    if (kind > 2) {
        const std::size_t min = dice.below(4);
        if (dice.one_in(2)) s["minLength"] = min;
        if (dice.one_in(2)) s["maxLength"] = min + dice.below(30);
    }
    return s;
}

Json random_number(Dice& dice) {
    Json s{{"type", dice.one_in(2) ? "integer" : "number"}};
    const auto low = static_cast<std::int64_t>(dice.below(2000)) - 1000;
    const auto span = static_cast<std::int64_t>(2 + dice.below(dice.one_in(2) ? 5 : 3000));
    const bool fraction = s["type"] == "number" && dice.one_in(2);
    auto bound = [&](std::int64_t value) {
        return fraction ? Json(static_cast<double>(value) / 1000) : Json(value);
    };
    if (dice.one_in(2)) s[dice.one_in(2) ? "minimum" : "exclusiveMinimum"] = bound(low);
    if (dice.one_in(2)) s[dice.one_in(2) ? "maximum" : "exclusiveMaximum"] = bound(low + span);
    return s;
}

/// Branches that exclude each other by type or by a constant, or for anyOf any.
Json random_branches(Dice& dice, int depth) {
    if (dice.one_in(3)) {
        Json a = random_object(dice, depth - 1), b = random_object(dice, depth - 1);
        for (Json* s : {&a, &b}) {
            (*s)["properties"]["kind"] = {{"const", s == &a ? "first" : "second"}};
            (*s)["required"].push_back("kind");
        }
        return {{"oneOf", {a, b}}};
    }
    if (dice.one_in(2))
        return {{"oneOf", {random_string(dice), random_number(dice), random_array(dice, depth - 1)}}};
    return {{"anyOf", {random_type(dice, depth - 1), random_type(dice, depth - 1)}}};
}

Json random_type(Dice& dice, int depth) {
    if (depth <= 0 || dice.one_in(3)) {
        switch (dice.below(5)) {
            case 0:
                return random_number(dice);
            case 1:
                return {{"enum", {"red", 1, nullptr, "grün", {{"x", 1.5}}, false}}};
            case 2:
                return {{"type", Json::array({"boolean", "null"})}};
            case 3:
                return {{"const", "a \"constant\"\n"}};
            default:
                return random_string(dice);
        }
    }
    switch (dice.below(10)) {
        case 0:
        case 1:
        case 2:
            return random_object(dice, depth);
        case 3:
        case 4:
            return random_array(dice, depth);
        case 5:
            return random_branches(dice, depth);
        case 6:
            return {{"$ref", dice.one_in(2) ? "#/$defs/node" : "#/$defs/leaf"}};
        case 7: {
            Json a = random_object(dice, depth - 1),
                 b{{"properties", {{"added", random_type(dice, depth - 1)}}}};
            a.erase("additionalProperties");
            return {{"allOf", {a, b}}, {"required", {"added"}}};
        }
        case 8: {
            Json s = random_string(dice);
            s["nullable"] = true;
            return s;
        }
        default:
            return dice.one_in(2) ? Json(true) : Json::object();
    }
}

}  // namespace

nlohmann::ordered_json random_schema(Dice& dice) {
    Json s = random_type(dice, 3);
    if (!s.is_object()) s = Json::object();
    const Json node{{"type", "object"},
                    {"properties",
                     {{"value", random_type(dice, 0)},
                      {"next", {{"$ref", "#/$defs/node"}}},
                      {"list", {{"type", "array"}, {"items", {{"$ref", "#/$defs/node"}}}, {"maxItems", 2}}}}},
                    {"required", {"value"}}};
    s["$defs"] = {{"leaf", random_string(dice)}, {"node", node}};
    s["description"] = "made up";
    return s;
}

namespace {

const Json& referred(const Json& schema, const Json& root) {
    return root["$defs"][schema["$ref"].get<std::string>().substr(8)];
}

bool fits_type(const Json& v, const Json& type) {
    if (type.is_array())
        return std::any_of(type.begin(), type.end(), [&](const Json& t) { return fits_type(v, t); });
    const bool whole =
        v.is_number_integer() || (v.is_number_float() && v.get<double>() == std::floor(v.get<double>()));
    return (type == "object" && v.is_object()) || (type == "array" && v.is_array()) ||
           (type == "string" && v.is_string()) || (type == "number" && v.is_number()) ||
           (type == "integer" && whole) || (type == "boolean" && v.is_boolean()) ||
           (type == "null" && v.is_null());
}

bool fits_format(const std::string& text, const std::string& format) {
    const std::string date = "\\d{4}-\\d\\d-\\d\\d",
                      time = "\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?(Z|[+-]\\d\\d:\\d\\d)";
    const std::map<std::string, std::string> shapes{
        {"date", date},
        {"time", time},
        {"date-time", date + "T" + time},
        {"uuid", "[\\da-fA-F]{8}-([\\da-fA-F]{4}-){3}[\\da-fA-F]{12}"},
        {"ipv4", "(\\d{1,3}\\.){3}\\d{1,3}"},
        {"email", "[^@]+@[^@]+\\.[^@]+"}};
    if (!std::regex_match(text, std::regex(shapes.at(format)))) return false;
    if (format == "date" || format == "date-time") {
        const int month = std::stoi(text.substr(5, 2)), day = std::stoi(text.substr(8, 2));
        if (month < 1 || month > 12 || day < 1 ||
            day > (month == 2                                              ? 28
                   : month == 4 || month == 6 || month == 9 || month == 11 ? 30
                                                                           : 31))
            return false;
    }
    return true;
}

bool fits_object(const Json& v, const Json& s, const Json& root) {
    for (const Json& name : s.value("required", Json::array()))
        if (!v.contains(name.get<std::string>())) return false;
    for (const auto& [name, member] : v.items()) {
        if (s.contains("properties") && s["properties"].contains(name)) {
            if (!fulfils(member, s["properties"][name], root)) return false;
        } else if (s.contains("additionalProperties") && !fulfils(member, s["additionalProperties"], root)) {
            return false;
        }
    }
    return true;
}

bool fits_array(const Json& v, const Json& s, const Json& root) {
    if (v.size() < s.value("minItems", std::size_t{0}) || v.size() > s.value("maxItems", SIZE_MAX))
        return false;
    const Json first = s.value("prefixItems", Json::array());
    for (std::size_t i = 0; i < v.size(); i++) {
        if (i < first.size() ? !fulfils(v[i], first[i], root)
                             : s.contains("items") && !fulfils(v[i], s["items"], root))
            return false;
    }
    return true;
}

bool fits_string(const Json& v, const Json& s) {
    const std::string text = v.get<std::string>();
    const std::size_t length = code_points(text).size();
    if (length < s.value("minLength", std::size_t{0}) || length > s.value("maxLength", SIZE_MAX))
        return false;
    if (s.contains("format") && !fits_format(text, s["format"])) return false;
    // Every character that is not ASCII as one that is, for a matcher of bytes.
    std::string bytes;
    for (char32_t c : code_points(text)) bytes += c < 0x80 ? static_cast<char>(c) : '\x01';
    return !s.contains("pattern") || std::regex_search(bytes, std::regex(s["pattern"].get<std::string>()));
}

}  // namespace

bool fulfils(const Json& v, const Json& s, const Json& root) {
    if (s.is_boolean()) return s.get<bool>();
    if (s.contains("$ref") && !fulfils(v, referred(s, root), root)) return false;
    if (s.contains("type") && !fits_type(v, s["type"]) && !(v.is_null() && s.value("nullable", false)))
        return false;
    if (s.contains("const") && v != s["const"]) return false;
    if (s.contains("enum") && std::find(s["enum"].begin(), s["enum"].end(), v) == s["enum"].end())
        return false;
    for (const char* word : {"anyOf", "oneOf", "allOf"}) {
        if (!s.contains(word)) continue;
        const auto n =
            std::count_if(s[word].begin(), s[word].end(), [&](const Json& b) { return fulfils(v, b, root); });
        if (n == 0 || (std::string(word) == "oneOf" && n != 1) ||
            (std::string(word) == "allOf" && static_cast<std::size_t>(n) != s[word].size()))
            return false;
    }
    if (v.is_number()) {
        const double x = v.get<double>();
        if (s.contains("minimum") && x < s["minimum"].get<double>()) return false;
        if (s.contains("maximum") && x > s["maximum"].get<double>()) return false;
        if (s.contains("exclusiveMinimum") && x <= s["exclusiveMinimum"].get<double>()) return false;
        if (s.contains("exclusiveMaximum") && x >= s["exclusiveMaximum"].get<double>()) return false;
    }
    if (v.is_object()) return fits_object(v, s, root);
    if (v.is_array()) return fits_array(v, s, root);
    return !v.is_string() || fits_string(v, s);
}

FakeTokenizer byte_vocabulary() {
    std::vector<std::string> pieces;
    for (int byte = 0; byte < 256; byte++) pieces.push_back({static_cast<char>(byte)});
    for (const char* piece : {"{\"",          "\":",
                              "\": ",         "\",",
                              "\"}",          "\"},",
                              "\"]",          "],",
                              "}}",           "[]",
                              "{}",           ", \"",
                              "true",         "false",
                              "null",         "\n  ",
                              "    ",         "00",
                              "12",           "19",
                              "-1",           "0.",
                              "e+",           "\\u",
                              "\\n",          "\\\"",
                              "name",         "kind",
                              "first",        "second",
                              "va",           "lue",
                              "value\":",     "next",
                              "list\": [",    "ab",
                              "aba",          "\"\"",
                              "b]",           "é",
                              "中",           "é中",
                              "\xE4\xB8",     "\xAD\"",
                              "\xC3",         "\xA9\"",
                              "\xF0\x9F",     "\x98\x80",
                              "\x9F\x98\x80", "😀",
                              "😀\"",          "中\":",
                              "a\xC3",        "\"\xE4",
                              "\xB8\xAD",     "T0",
                              "Z\"",          "@a.",
                              "com",          "foo",
                              "bar",          "                                        "})
        pieces.emplace_back(piece);
    pieces.emplace_back();  // a control token
    pieces.emplace_back();  // the end
    FakeTokenizer tokenizer(pieces);
    tokenizer.end = static_cast<TokenId>(pieces.size() - 1);
    return tokenizer;
}

FakeTokenizer character_vocabulary() {
    FakeTokenizer tokenizer({"a", "b", "\"", "\\", "]", "-", "é", "\xE4\xB8", "\xAD", "ab", "aé", "é\xE4\xB8",
                             "\xAD\"", "\xF0\x9F\x98", "\xF0\x9F", "-\"a", ""});
    tokenizer.end = 16;
    return tokenizer;
}

Written write_random(const std::shared_ptr<TokenConstraint>& constraint, const FakeTokenizer& tokenizer,
                     Dice& dice, std::size_t most_tokens) {
    Written written;
    GenerateOptions options;
    options.tokens = static_cast<std::int64_t>(most_tokens);
    options.grammar = constraint;
    options.sampler.temperature = 2;
    options.sampler.top_k = 0;
    options.sampler.top_p = 1;
    options.sampler.min_p = 0;
    options.sampler.seed = dice.below(1 << 30);
    Continuation text(tokenizer, {0}, options,
                      [&](std::optional<TokenId>, std::string_view piece) { written.text += piece; });
    std::vector<float> logits(static_cast<std::size_t>(tokenizer.size()));
    const double late = static_cast<double>(most_tokens) / 8;
    for (; !text.ended(); written.tokens++) {
        const float haste =
            static_cast<float>(std::max(0.0, static_cast<double>(written.tokens) - late) / late * 6);
        for (std::size_t i = 0; i < logits.size(); i++) {
            const std::string_view piece = tokenizer.piece(static_cast<TokenId>(i));
            logits[i] = static_cast<float>(4 * dice.normal());
            if (piece.find_first_of("\"}]") != piece.npos) logits[i] += haste;
            if (tokenizer.is_end(static_cast<TokenId>(i))) logits[i] += 2 * haste - 4;
        }
        if (!text.take(logits)) throw std::runtime_error("nothing was picked");
    }
    written.result = text.result();
    return written;
}

std::size_t rounds(std::size_t few) {
    const char* asked = std::getenv("LINNET_TEST_GRAMMARS");
    return asked ? static_cast<std::size_t>(std::atoll(asked)) : few;
}

bool accepts(const Grammar& grammar, const std::string& text) {
    static const FakeTokenizer bytes = byte_vocabulary();
    static const auto vocabulary = std::make_shared<GrammarVocabulary>(bytes);
    GrammarCursor cursor(std::make_shared<TokenConstraint>(grammar, bytes, vocabulary, "g"), true);
    for (char c : text)
        if (!cursor.advance({&c, 1})) return false;
    return cursor.may_end();
}

}  // namespace linnet::test
