// A struct's settings as a table: read from JSON, set from `key=value`, printed, all from the same rows.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/repeating.h"

namespace linnet {

/// One setting of one object: where it lives, what it may be. Keys are dotted paths: "model.ffn.width". A
/// setting that may repeat takes a value or a list of values; a list of one is printed as its value.
struct Field {
    std::string key;
    std::variant<std::int64_t*, double*, bool*, std::string*, Repeating<std::int64_t>*, Repeating<double>*,
                 Repeating<bool>*, Repeating<std::string>*>
        target;
    std::string help;
    double low = 0, high = 1e18;         // numbers: inclusive limits
    std::vector<std::string> choices{};  // strings: what is allowed; empty: anything
    /// The setting was added after files had been written: it is not printed where it has its default, so
    /// that those files stay as they are.
    bool came_later = false;
    nlohmann::ordered_json default_value{};  // of one that came later, from take_defaults()
};

/// A setting that came later.
template <class T>
Field later(std::string key, T* target, std::string help, double low = 0, double high = 1e18,
            std::vector<std::string> choices = {}) {
    return {std::move(key), target, std::move(help), low, high, std::move(choices), true};
}
/// Gives settings that came later the values that the same rows have in an object of defaults.
void take_defaults(std::vector<Field>& fields, const std::vector<Field>& of_defaults);

/// Sets fields from an object of nested objects. Unknown keys are errors that name the nearest key; so are
/// wrong kinds and values out of range. `file` begins the message; `prefix` is the object's own key.
void apply_json(std::vector<Field>& fields, const nlohmann::json& object, std::string_view file,
                const std::string& prefix = "");

/// Sets one field, with the same checks.
void set_field(std::vector<Field>& fields, std::string_view key, const nlohmann::json& value,
               std::string_view file);

/// "key=value"; the value is read as the field's kind. A list is [64,0]; strings in it need no quotes.
/// `place` begins the message: where it was given.
void apply_setting(std::vector<Field>& fields, std::string_view setting, std::string_view place = "--set");

/// The field's value: plain, or an array where it differs.
nlohmann::ordered_json value_of(const Field& field);

/// The fields as an object of nested objects, but those that came later and have their default.
nlohmann::ordered_json to_json(const std::vector<Field>& fields);

inline constexpr std::size_t largest_json = std::size_t{1} << 20;  // that parse_json takes

/// JSON text of at most 1 MiB to a value; Error(Exit::input) with file, line and column. Duplicate keys,
/// numbers beyond a double and nesting deeper than 100 are errors. `first_line`: that of the text; 0: a file.
nlohmann::json parse_json(std::string_view text, std::string_view file, std::size_t first_line = 0);

/// Arrays and objects stand more than 100 deep in each other. nlohmann reads such a text, but copies and
/// prints its value by recursion.
bool nests_too_deep(std::string_view json_text);
/// The value of text that may be anything: discarded where it is no JSON or nests too deep.
template <class Json = nlohmann::json>
Json parse_or_discard(std::string_view text) {
    return nests_too_deep(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
}

}  // namespace linnet
