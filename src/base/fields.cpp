#include "base/fields.h"

#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/json_line.h"
#include "base/nearest.h"
#include "base/split.h"
#include "base/utf8.h"

namespace linnet {
namespace {

using nlohmann::json;

std::string number_text(double x) {
    if (x >= 1e15 && x < 0x1p63) return std::to_string(static_cast<std::int64_t>(x));
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

[[noreturn]] void unknown_key(const std::vector<Field>& fields, std::string_view file,
                              const std::string& key) {
    std::vector<std::string> keys;
    for (const Field& f : fields) {
        keys.push_back(f.key);
        for (std::size_t dot = f.key.find('.'); dot != f.key.npos; dot = f.key.find('.', dot + 1))
            keys.push_back(f.key.substr(0, dot));  // of the objects that they stand in
    }
    fail_input(file, key, "a known key", "an unknown one", did_you_mean(key, keys));
}

template <class T>
constexpr bool repeats = requires {
    typename T::Element;
};

template <class T>
const char* kind_name() {
    if constexpr (std::is_same_v<T, std::int64_t>) return "a whole number";
    if constexpr (std::is_same_v<T, double>) return "a number";
    if constexpr (std::is_same_v<T, bool>) return "true or false";
    if constexpr (std::is_same_v<T, std::string>) return "a string";
}

bool is_utf8(std::string_view text) {
    for (const char *p = text.data(), *end = p + text.size(); p < end;) {
        const Char c = decode_utf8(p, end);
        if (!c.valid) return false;
        p += c.size;
    }
    return true;
}

/// One value of a field; `place` is its key, or key[i] in a list.
struct Place {
    const Field& field;
    std::string_view file;
    std::string place;

    template <class T>
    [[noreturn]] void wrong_kind(const json& value) const {
        fail_input(file, place, kind_name<T>(), dumped(value));
    }

    void check_range(const json& value) const {
        if (const auto x = value.get<double>(); x >= field.low && x <= field.high) return;
        std::string expected = field.high == 1e18 ? "at least " + number_text(field.low)
                                                  : number_text(field.low) + " to " + number_text(field.high);
        fail_input(file, place, expected,
                   value.is_number_integer() ? value.dump() : number_text(value.get<double>()));
    }

    void check_choice(const std::string& text) const {
        if (!is_utf8(text)) fail_input(file, place, "text in UTF-8", "other bytes", dumped(json(text)));
        if (field.choices.empty() || std::ranges::count(field.choices, text) > 0) return;
        fail_input(file, place, "one of " + joined(field.choices), text, did_you_mean(text, field.choices));
    }

    template <class T>
    T read(const json& value) const {
        if constexpr (std::is_same_v<T, std::int64_t>) {
            bool whole =
                value.is_number_integer() ||
                (value.is_number_float() && std::nearbyint(value.get<double>()) == value.get<double>() &&
                 std::abs(value.get<double>()) < 9e15);
            if (!whole) wrong_kind<T>(value);
        } else if constexpr (std::is_same_v<T, double>) {
            if (!value.is_number()) wrong_kind<T>(value);
        } else if constexpr (std::is_same_v<T, bool>) {
            if (!value.is_boolean()) wrong_kind<T>(value);
        } else {
            if (!value.is_string()) wrong_kind<T>(value);
            check_choice(value.get<std::string>());
        }
        if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double>) check_range(value);
        return value.get<T>();
    }
};

template <class T>
T read_one(const Field& field, const json& value, std::string_view file) {
    return Place{field, file, field.key}.read<T>(value);
}

template <class T>
Repeating<T> read_list(const Field& field, const json& list, std::string_view file) {
    if (list.empty())
        fail_input(file, field.key, kind_name<T>() + std::string(", or a list of them"), "an empty list");
    std::vector<T> values;
    for (const json& value : list) {
        const Place place{field, file, field.key + "[" + std::to_string(values.size()) + "]"};
        values.push_back(place.read<T>(value));
    }
    return Repeating<T>(std::move(values));
}

/// Stores `value`, checked, in the field.
void store(const Field& field, const json& value, std::string_view file) {
    auto put = [&]<class T>(T* to) {
        if constexpr (!repeats<T>)
            *to = read_one<T>(field, value, file);
        else if (value.is_array())
            *to = read_list<typename T::Element>(field, value, file);
        else
            *to = read_one<typename T::Element>(field, value, file);
    };
    std::visit(put, field.target);
}

const Field* find(const std::vector<Field>& fields, std::string_view key) {
    for (const Field& f : fields)
        if (f.key == key) return &f;
    return nullptr;
}

bool holds_text(const Field& field) {
    return std::holds_alternative<std::string*>(field.target) ||
           std::holds_alternative<Repeating<std::string>*>(field.target);
}

/// A string as it was typed; for a field that may repeat also [one,two] or ["one","two"].
json text_value(const Field& field, const std::string& text) {
    if (std::holds_alternative<std::string*>(field.target) || !text.starts_with('[') ||
        !text.ends_with(']') || nests_too_deep(text))
        return text;
    json list = parse_or_discard(text);
    if (!list.is_discarded()) return list;
    list = json::array();
    for (std::size_t begin = 1; begin < text.size();) {
        std::size_t end = std::min(text.find(',', begin), text.size() - 1);
        list.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return list;
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

void take_defaults(std::vector<Field>& fields, const std::vector<Field>& of_defaults) {
    for (std::size_t i = 0; i < fields.size(); i++)
        if (fields[i].came_later) fields[i].default_value = value_of(of_defaults[i]);
}

void set_field(std::vector<Field>& fields, std::string_view key, const json& value, std::string_view file) {
    const Field* field = find(fields, key);
    if (!field) unknown_key(fields, file, std::string(key));
    store(*field, value, file);
}

void apply_setting(std::vector<Field>& fields, std::string_view setting, std::string_view place) {
    std::size_t equals = setting.find('=');
    if (equals == std::string_view::npos || equals == 0)
        fail(Exit::usage, place, setting, "key=value", "no key or no '='");
    std::string key(setting.substr(0, equals)), text(setting.substr(equals + 1));
    const Field* field = find(fields, key);
    if (!field) unknown_key(fields, place, key);
    json value = holds_text(*field) ? text_value(*field, text) : parse_or_discard(text);
    if (value.is_discarded()) value = json(text);  // the field says what it expected
    store(*field, value, place);
}

nlohmann::ordered_json value_of(const Field& field) {
    return std::visit(
        [](auto* value) -> nlohmann::ordered_json {
            if constexpr (!repeats<std::decay_t<decltype(*value)>>)
                return *value;
            else if (value->is_list())
                return value->list();
            else
                return value->at(0);
        },
        field.target);
}

nlohmann::ordered_json to_json(const std::vector<Field>& fields) {
    nlohmann::ordered_json out = nlohmann::ordered_json::object();
    for (const Field& field : fields) {
        nlohmann::ordered_json value = value_of(field);
        if (field.came_later && value == field.default_value) continue;
        nlohmann::ordered_json* at = &out;
        std::size_t begin = 0;
        for (std::size_t dot; (dot = field.key.find('.', begin)) != std::string::npos; begin = dot + 1)
            at = &(*at)[field.key.substr(begin, dot - begin)];
        (*at)[field.key.substr(begin)] = std::move(value);
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

namespace {

/// The first key that an object has twice: nlohmann keeps the last, and a config that says two things is a
/// mistake. (A callback of parse() would do, but then the end of each object walks all that its list holds.)
struct RepeatedKey : nlohmann::json_sax<json> {
    std::optional<std::string> found;
    std::vector<std::set<std::string>> open;

    bool start_object(std::size_t) override { return open.emplace_back(), true; }
    bool end_object() override { return open.pop_back(), true; }
    bool key(std::string& name) override {
        if (!open.back().insert(name).second && !found) found = name;
        return true;
    }
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(json::number_integer_t) override { return true; }
    bool number_unsigned(json::number_unsigned_t) override { return true; }
    bool number_float(json::number_float_t, const std::string&) override { return true; }
    bool string(std::string&) override { return true; }
    bool binary(json::binary_t&) override { return true; }
    bool start_array(std::size_t) override { return true; }
    bool end_array() override { return true; }
    bool parse_error(std::size_t, const std::string&, const json::exception&) override {
        return false;  // which parse() says again
    }
};

[[noreturn]] void refuse_json(std::string_view text, std::size_t at, std::string_view file,
                              std::size_t first_line) {
    at = std::min(at, text.size());
    std::size_t line = std::max<std::size_t>(first_line, 1), column = 1;
    for (std::size_t i = 0; i < at; i++) text[i] == '\n' ? (line++, column = 1) : column++;
    fail_input(file, "line " + std::to_string(line) + ", column " + std::to_string(column), "JSON",
               at < text.size()  ? std::string("'") + text[at] + "'"
               : first_line == 0 ? "the end of the file"
                                 : "the end of the line");
}

}  // namespace

json parse_json(std::string_view text, std::string_view file, std::size_t first_line) {
    const std::string first = first_line > 0 ? "line " + std::to_string(first_line) : "";
    // nlohmann takes 80 bytes of memory and 300 ns for each byte of a dense text.
    if (text.size() > largest_json)
        fail_input(file, first, "at most 1 MiB of JSON", std::to_string(text.size()) + " bytes");
    if (nests_too_deep(text)) fail_input(file, first, "JSON nested at most 100 deep", "deeper nesting");
    try {
        RepeatedKey repeated;
        if (json::sax_parse(text.begin(), text.end(), &repeated)) {
            if (repeated.found)
                fail_input(file, (first.empty() ? "" : first + ": ") + *repeated.found, "each key once",
                           "a second one");
            // To nlohmann a NUL is the end, whatever follows.
            if (const std::size_t nul = text.find('\0'); nul != text.npos)
                refuse_json(text, nul, file, first_line);
        }
        return json::parse(text.begin(), text.end());
    } catch (const json::parse_error& error) {
        refuse_json(text, error.byte == 0 ? 0 : error.byte - 1, file, first_line);
    } catch (const json::out_of_range&) {  // has no place
        fail_input(file, first, "numbers up to 1.8e308", "a larger one");
    }
}

}  // namespace linnet
