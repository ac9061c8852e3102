// `linnet help config`: every key of a CONFIG, off the tables that read one.
#include <algorithm>
#include <charconv>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/fields.h"
#include "base/nearest.h"
#include "base/split.h"
#include "base/terminal.h"
#include "commands/help.h"
#include "commands/options.h"
#include "model/name_pattern.h"
#include "train/task/config.h"

namespace linnet {
namespace {

struct Setting {
    std::string key, values, fallback, help;  // fallback: the default as it is shown; may be empty

    std::string group() const { return key.substr(0, key.rfind('.')); }
};

std::string number_text(double x) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

/// Limits of whole numbers, with all their digits.
std::string whole_text(double x) {
    return std::to_string(static_cast<std::int64_t>(x));
}

template <class T>
bool holds(const Field& field) {
    return std::holds_alternative<T*>(field.target) || std::holds_alternative<Repeating<T>*>(field.target);
}

bool is_number(const Field& field) {
    return holds<std::int64_t>(field) || holds<double>(field);
}

std::string values_of_field(const Field& field) {
    std::string text = "TEXT";
    if (holds<bool>(field)) text = "true | false";
    if (holds<std::string>(field) && !field.choices.empty()) text = joined(field.choices, " | ");
    if (is_number(field)) {
        const auto limit = holds<double>(field) ? number_text : whole_text;
        text = holds<double>(field) ? "X, " : "N, ";
        text += field.high == Field().high ? "at least " + limit(field.low)
                                           : limit(field.low) + " to " + limit(field.high);
    }
    const bool by_layer = std::visit(
        [](auto* to) {
            return requires {
                to->list();
            };
        },
        field.target);
    return text + (by_layer ? ", by layer" : "");
}

std::string default_of(const Field& field) {
    const nlohmann::ordered_json value = value_of(field);
    // A default that is out of range stands for a setting that a CONFIG cannot leave out.
    if (is_number(field) && value.is_number() && value.get<double>() < field.low) return "(required)";
    const std::string text = value.is_string()         ? value.get<std::string>()
                             : value.is_number_float() ? number_text(value.get<double>())
                                                       : value.dump();
    return text.empty() ? "" : "[" + text + "]";
}

std::vector<Setting> all_settings() {
    RunConfig config;
    std::vector<Setting> all;
    for (const Field& field : run_fields(config))
        all.push_back({field.key, values_of_field(field), default_of(field), field.help});
    // A list of objects is in no table.
    all.push_back({"train.groups", "a list of objects", "[none]",
                   "parameters with rates of their own: match, a pattern of their names, and any key of "
                   "train.optimizer and schedule"});
    return all;
}

/// Columns of this page: a key and its help take a line each, mostly.
int columns() {
    return std::min(help_width(), 80);
}

std::string entry(const Setting& setting) {
    const std::string left = setting.key + " " + setting.values;
    std::string text =
        "  " + folded(left + (setting.fallback.empty() ? "" : " " + setting.fallback), columns(), 6, 2) +
        "\n";
    if (!setting.help.empty()) text += "      " + folded(setting.help, columns(), 6, 6) + "\n";
    return text;
}

constexpr const char* introduction =
    "What a CONFIG may say, and --set KEY=VALUE: each key with its values, its default in brackets, and what "
    "it means. N is a whole number, X any number; by layer: one value, or a list that repeats over the "
    "layers. "
    "A CONFIG is JSON: {\"train\": {\"steps\": 500}} says train.steps. models/README.md has more of each; "
    "config.json of a run has its values.";

/// What a wrong PATTERN may have been meant for: keys, and the beginnings and ends of them.
std::vector<std::string> near_names() {
    std::vector<std::string> names;
    for (const std::string& key : config_keys()) {
        names.push_back(key);
        for (std::size_t dot = key.find('.'); dot != key.npos; dot = key.find('.', dot + 1)) {
            names.push_back(key.substr(0, dot));
            names.push_back(key.substr(dot + 1));
        }
    }
    return names;
}

}  // namespace

std::vector<std::string> config_keys() {
    std::vector<std::string> keys;
    for (Setting& setting : all_settings()) keys.push_back(std::move(setting.key));
    return keys;
}

std::string config_help(std::span<const std::string> patterns) {
    if (patterns.size() > 1)
        usage_error("help config", "one PATTERN", std::to_string(patterns.size()) + " words",
                    "* stands for any text, as in train.*.kind");
    const std::string wanted = patterns.empty() ? "" : patterns.front();
    std::vector<std::pair<std::string, std::string>> groups;  // each with its entries
    for (const Setting& setting : all_settings()) {
        if (!matches("*" + wanted + "*", setting.key)) continue;
        auto group = std::ranges::find(groups, setting.group(), &std::pair<std::string, std::string>::first);
        if (group == groups.end()) group = groups.insert(group, {setting.group(), ""});
        group->second += entry(setting);
    }
    if (groups.empty())
        usage_error("help config", "a part of a key, in which * stands for any text", linnet::quoted(wanted),
                    did_you_mean(wanted, near_names(), "linnet help config lists them"));
    std::string text = wanted.empty() ? folded(introduction, columns()) + "\n\n" : "";
    for (const auto& [name, entries] : groups)
        text += (&name == &groups.front().first ? "" : "\n") + name + ":\n" + entries;
    return text;
}

}  // namespace linnet
