#include "base/fields.h"

#include <charconv>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/nearest.h"
#include "base/utf8.h"

namespace linnet {
namespace {

using nlohmann::json;

std::string number_text(double x) {
    char text[32];
    auto end = std::to_chars(text, text + sizeof text, x).ptr;
    return std::string(text, end);
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
    auto near = nearest(name, known);
    return near ? "did you mean " + *near + "?" : "";
}

[[noreturn]] void unknown_key(const std::vector<Field>& fields, std::string_view file,
                              const std::string& key) {
    std::vector<std::string> keys;
    for (const Field& f : fields) keys.push_back(f.key);
    fail_input(file, key, "a known key", "an unknown one", did_you_mean(key, keys));
}

struct Kind {
    std::string operator()(std::int64_t*) const { return "a whole number"; }
    std::string operator()(double*) const { return "a number"; }
    std::string operator()(bool*) const { return "true or false"; }
    std::string operator()(std::string*) const { return "a string"; }
};

void check_range(const Field& field, double value, std::string_view file) {
    if (value >= field.low && value <= field.high) return;
    std::string expected = field.high >= 1e18 ? "at least " + number_text(field.low)
                                              : number_text(field.low) + " to " + number_text(field.high);
    fail_input(file, field.key, expected, number_text(value));
}

/// A value for a message; bytes that are no UTF-8 (--set takes any) do not stop it.
std::string shown(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

bool is_utf8(std::string_view text) {
    const char *p = text.data(), *end = p + text.size();
    while (p < end) {
        const Char c = decode_utf8(p, end);
        if (!c.valid) return false;
        p += c.size;
    }
    return true;
}

/// Stores `value`, checked, in the field.
void store(const Field& field, const json& value, std::string_view file) {
    auto wrong = [&]() { fail_input(file, field.key, std::visit(Kind{}, field.target), shown(value)); };
    if (auto* to = std::get_if<std::int64_t*>(&field.target)) {
        bool whole = value.is_number_integer() ||
                     (value.is_number_float() && std::nearbyint(value.get<double>()) == value.get<double>() &&
                      std::abs(value.get<double>()) < 9e15);
        if (!whole) wrong();
        check_range(field, value.get<double>(), file);
        **to = value.get<std::int64_t>();
    } else if (auto* to = std::get_if<double*>(&field.target)) {
        if (!value.is_number()) wrong();
        check_range(field, value.get<double>(), file);
        **to = value.get<double>();
    } else if (auto* to = std::get_if<bool*>(&field.target)) {
        if (!value.is_boolean()) wrong();
        **to = value.get<bool>();
    } else {
        if (!value.is_string()) wrong();
        std::string text = value.get<std::string>();
        if (!is_utf8(text)) fail_input(file, field.key, "text in UTF-8", "other bytes", shown(value));
        bool allowed = field.choices.empty();
        std::string list;
        for (const std::string& choice : field.choices) {
            allowed |= choice == text;
            list += (list.empty() ? "" : ", ") + choice;
        }
        if (!allowed) {
            fail_input(file, field.key, "one of " + list, text, did_you_mean(text, field.choices));
        }
        *std::get<std::string*>(field.target) = text;
    }
}

const Field* find(const std::vector<Field>& fields, std::string_view key) {
    for (const Field& f : fields)
        if (f.key == key) return &f;
    return nullptr;
}

bool is_group(const std::vector<Field>& fields, const std::string& key) {
    for (const Field& f : fields)
        if (f.key.starts_with(key + ".")) return true;
    return false;
}

}  // namespace

void apply_json(std::vector<Field>& fields, const json& object, std::string_view file,
                const std::string& prefix) {
    if (!object.is_object())
        fail_input(file, prefix.empty() ? "top level" : prefix, "an object", object.type_name());
    for (const auto& [name, value] : object.items()) {
        std::string key = prefix.empty() ? name : prefix + "." + name;
        if (const Field* field = find(fields, key))
            store(*field, value, file);
        else if (is_group(fields, key))
            apply_json(fields, value, file, key);
        else
            unknown_key(fields, file, key);
    }
}

void set_field(std::vector<Field>& fields, std::string_view key, const json& value, std::string_view file) {
    const Field* field = find(fields, key);
    if (!field) unknown_key(fields, file, std::string(key));
    store(*field, value, file);
}

void apply_setting(std::vector<Field>& fields, std::string_view setting) {
    std::size_t equals = setting.find('=');
    if (equals == std::string_view::npos || equals == 0)
        fail(Exit::usage, "--set", setting, "key=value", "no key or no '='");
    std::string key(setting.substr(0, equals)), text(setting.substr(equals + 1));
    const Field* field = find(fields, key);
    if (!field) unknown_key(fields, "--set", key);
    const bool plain = std::holds_alternative<std::string*>(field->target) || nests_too_deep(text);
    json value = plain ? json(text) : json::parse(text, nullptr, false);
    if (value.is_discarded()) value = json(text);  // the field says what it expected
    store(*field, value, "--set");
}

nlohmann::ordered_json to_json(const std::vector<Field>& fields) {
    nlohmann::ordered_json out = nlohmann::ordered_json::object();
    for (const Field& field : fields) {
        nlohmann::ordered_json* at = &out;
        std::size_t begin = 0;
        for (std::size_t dot; (dot = field.key.find('.', begin)) != std::string::npos; begin = dot + 1)
            at = &(*at)[field.key.substr(begin, dot - begin)];
        std::visit([&](auto* value) { (*at)[field.key.substr(begin)] = *value; }, field.target);
    }
    return out;
}

bool nests_too_deep(std::string_view text) {
    constexpr int deepest = 100;
    int depth = 0;
    bool in_string = false;
    for (std::size_t i = 0; i < text.size(); i++) {
        const char c = text[i];
        if (in_string) {
            if (c == '\\') i++;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > deepest) return true;
        } else if (c == ']' || c == '}') {
            depth--;
        }
    }
    return false;
}

json parse_json(std::string_view text, std::string_view file) {
    if (nests_too_deep(text)) fail_input(file, "", "JSON nested at most 100 deep", "deeper nesting");
    // nlohmann keeps the last of two equal keys; a config that says two things is a mistake, so they are
    // refused here.
    std::vector<std::set<std::string>> open;
    std::string duplicate;
    auto watch = [&](int, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::object_start) open.emplace_back();
        if (event == json::parse_event_t::object_end && !open.empty()) open.pop_back();
        if (event == json::parse_event_t::key && !open.empty() &&
            !open.back().insert(parsed.get<std::string>()).second && duplicate.empty())
            duplicate = parsed.get<std::string>();
        return true;
    };
    try {
        json value = json::parse(text.begin(), text.end(), watch);
        if (!duplicate.empty()) fail_input(file, duplicate, "each key once", "a second one");
        return value;
    } catch (const json::parse_error& error) {
        std::size_t at = std::min(error.byte == 0 ? 0 : error.byte - 1, text.size());
        std::size_t line = 1, column = 1;
        for (std::size_t i = 0; i < at; i++) text[i] == '\n' ? (line++, column = 1) : column++;
        fail_input(file, "line " + std::to_string(line) + ", column " + std::to_string(column), "JSON",
                   at >= text.size() ? "the end of the file" : std::string("'") + text[at] + "'");
    } catch (const json::out_of_range&) {  // has no place
        fail_input(file, "", "numbers up to 1.8e308", "a larger one");
    }
}

}  // namespace linnet
