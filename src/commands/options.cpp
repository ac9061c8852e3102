#include "commands/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/nearest.h"
#include "base/split.h"
#include "model/engine/states.h"
#include "text/unicode/unicode.h"
#include "train/run_model.h"

namespace linnet {
namespace {

/// "--tokens" of "-n,--tokens"; "FILE" of "FILE".
std::string shown_name(const std::string& names) {
    std::size_t at = names.find("--");
    return at == std::string::npos ? names : names.substr(at, names.find(',', at) - at);
}

/// `tells_max`: there is a bound that a person may meet, or has met.
std::string range(const std::string& min, const std::string& max, bool tells_max) {
    return tells_max ? "from " + min + " to " + max : "of at least " + min;
}

std::string plain(double x) {
    char text[32];
    snprintf(text, sizeof text, "%g", x);
    return text;
}

}  // namespace

std::optional<double> cut_number(std::string& path, const char* option, const char* expected, double above,
                                 double most) {
    const std::size_t equals = path.rfind('=');
    std::error_code ignored;
    if (equals == std::string::npos || equals == 0 || std::filesystem::exists(path, ignored)) return {};
    const std::string before = path.substr(0, equals);
    const std::optional<double> number = parse_whole<double>(path.substr(equals + 1));
    if (!number && !std::filesystem::exists(before, ignored)) return {};  // a name after all
    if (!number || !(*number > above) || !(*number <= most))
        usage_error(option, expected, linnet::quoted(path));
    path = before;
    return number;
}

void usage_error(const std::string& option, const std::string& expected, const std::string& got,
                 const std::string& hint) {
    fail(Exit::usage, "", option, expected, got, hint);
}

CLI::Option* add_integer(CLI::App& app, const std::string& names, std::int64_t& value, std::int64_t min,
                         std::int64_t max, const std::string& help) {
    std::string name = shown_name(names);
    auto take = [&value, name, min, max](const std::string& text) {
        auto number = parse_whole<std::int64_t>(text);
        const bool digits = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
        const bool above = number ? *number > max : digits;
        if (!number || *number < min || *number > max)
            usage_error(
                name,
                "a whole number " + range(std::to_string(min), std::to_string(max), max < INT32_MAX || above),
                linnet::quoted(text));
        value = *number;
    };
    return app.add_option_function<std::string>(names, take, help)
        ->type_name("N")
        ->default_str(std::to_string(value));
}

CLI::Option* add_real(CLI::App& app, const std::string& names, double& value, double min, double max,
                      const std::string& help) {
    std::string name = shown_name(names);
    auto take = [&value, name, min, max](const std::string& text) {
        auto number = parse_whole<double>(text);
        if (!number || !std::isfinite(*number) || *number < min || *number > max)
            usage_error(name,
                        "a number " + range(plain(min), plain(max), max < 1e9 || (number && *number > max)),
                        linnet::quoted(text));
        value = *number;
    };
    return app.add_option_function<std::string>(names, take, help)->type_name("X")->default_str(plain(value));
}

CLI::Option* add_text(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
                      bool may_be_empty) {
    std::string name = shown_name(names);
    auto take = [&value, name, may_be_empty](const std::string& text) {
        if (text.empty() && !may_be_empty) usage_error(name, "a value", "an empty text");
        value = text;
    };
    CLI::Option* option = app.add_option_function<std::string>(names, take, help)->type_name("TEXT");
    return value.empty() ? option : option->default_str(value);
}

CLI::Option* add_texts(CLI::App& app, const std::string& names, std::vector<std::string>& values,
                       const std::string& help) {
    std::string name = shown_name(names);
    auto take = [&values, name](const std::vector<std::string>& given) {
        for (const std::string& text : given)
            if (text.empty()) usage_error(name, "a value", "an empty text");
        values = given;
    };
    return app.add_option_function<std::vector<std::string>>(names, take, help)
        ->allow_extra_args(false)
        ->type_name("TEXT")
        ->default_str("");
}

namespace {

/// `keep` is called with the name that was chosen.
CLI::Option* add_chosen(CLI::App& app, const std::string& names, const std::string& value,
                        std::vector<std::string> choices, const std::string& help,
                        const std::function<void(const std::string&)>& keep) {
    std::string name = shown_name(names), listed, value_name;
    for (std::size_t i = 0; i < choices.size(); i++) {
        listed += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
        value_name += (i == 0 ? "" : "|") + choices[i];
    }
    auto take = [keep, name, listed, choices](const std::string& text) {
        if (std::find(choices.begin(), choices.end(), text) == choices.end())
            usage_error(name, listed, linnet::quoted(text), did_you_mean(text, choices));
        keep(text);
    };
    // The choices are the value's name, which help shows and completions offer (arguments.h).
    return app.add_option_function<std::string>(names, take, help)->type_name(value_name)->default_str(value);
}

}  // namespace

CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& value,
                        std::vector<std::string> choices, const std::string& help) {
    return add_chosen(app, names, value, std::move(choices), help,
                      [&value](const std::string& text) { value = text; });
}

CLI::Option* add_state_type(CLI::App& app, DType& type) {
    std::vector<std::string> names;
    for (DType each : state_types()) names.emplace_back(info(each).name);
    return add_chosen(app, "--kv-type", std::string(info(type).name), names,
                      "type that keys and values of past tokens are kept in",
                      [&type](const std::string& text) { type = *dtype_from_name(text); });
}

CLI::Option* add_file(CLI::App& app, const std::string& name, std::string& path, const std::string& help) {
    return add_text(app, name, path, help)->type_name("FILE")->required();
}

void refuse_stdout(const std::string& option, const std::string& path) {
    if (path == "-")
        usage_error(option, "the name of a file or a folder", linnet::quoted(path),
                    "files do not go to stdout; ./- is one of that name");
}

CLI::Option* add_output(CLI::App& app, const std::string& names, std::string& path, const std::string& help) {
    const std::string name = shown_name(names);
    return add_text(app, names, path, help)
        ->each([name](const std::string& given) { refuse_stdout(name, given); })
        ->type_name("FILE");
}

CLI::Option* add_overwrite(CLI::App& app, bool& overwrite, const std::string& help) {
    return app.add_flag("--overwrite", overwrite, help);
}

void add_hidden_names(CLI::App& app, const std::string& names, CLI::Option* option) {
    // What they are given becomes the option's own before any option is looked at.
    if (option->get_items_expected_max() == 0)
        app.add_flag_callback(names, [option] { option->add_result("true"); })->trigger_on_parse()->group("");
    else
        app.add_option_function<std::string>(names,
                                             [option](const std::string& text) { option->add_result(text); })
            ->trigger_on_parse()
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
            ->group("");
}

std::string_view option_for(std::string_view name) {
    static constexpr std::string_view table[][2] = {
        {"max-tokens", "tokens"},  {"max-new-tokens", "tokens"}, {"max-length", "tokens"},
        {"num-predict", "tokens"}, {"prompt-file", "file"},      {"repetition-penalty", "repeat-penalty"},
    };
    std::string dashed(name);
    std::ranges::replace(dashed, '_', '-');
    for (const auto& [theirs, ours] : table)
        if (dashed == theirs) return ours;
    return {};
}

CLI::Option* add_files(CLI::App& app, const std::string& name, std::vector<std::string>& files,
                       const std::string& help) {
    CLI::Option* option = app.add_option(name, files, help)->type_name("FILE");
    add_hidden_names(app, "-f,--file", option);
    return option;
}

CLI::Option* add_context(CLI::App& app, std::int64_t& context, std::int64_t min, const std::string& help) {
    CLI::Option* option =
        add_integer(app, "--ctx", context, min, INT64_MAX, help)->default_str("the model's own");
    add_hidden_names(app, "-c,--ctx-size", option);
    return option;
}

CLI::Option* add_tokenizer(CLI::App& app, std::string& path) {
    CLI::Option* option = add_text(app, "-t,--tokenizer", path,
                                   "GGUF, tokenizer.json, .tiktoken or SentencePiece model, or a folder")
                              ->type_name("FILE")
                              ->default_str("the built-in model's");
    add_hidden_names(app, "-m,--model", option);
    return option;
}

CLI::Option* add_model(CLI::App& app, std::string& path) {
    auto take = [&path](const std::string& text) {
        if (text.empty()) usage_error("--model", "a value", "an empty text");
        path = model_of_run(text);
    };
    return app
        .add_option_function<std::string>("-m,--model", take,
                                          "GGUF file, Hugging Face folder, or the folder of a training run")
        ->type_name("MODEL")
        ->default_str("the built-in model");
}

namespace {

/// "1:30" and "1:30:00": minutes:seconds, hours:minutes:seconds, as Slurm and players write them.
std::optional<double> clock_time(std::string_view text) {
    double seconds = 0;
    int parts = 0;
    for (;; parts++) {
        const std::size_t colon = std::min(text.find(':'), text.size());
        const auto part = parse_whole<std::int64_t>(std::string(text.substr(0, colon)));
        if (!part || *part < 0 || (parts > 0 && *part > 59)) return std::nullopt;
        seconds = seconds * 60 + static_cast<double>(*part);
        if (colon == text.size()) break;
        text.remove_prefix(colon + 1);
    }
    return parts == 1 || parts == 2 ? std::optional(seconds) : std::nullopt;
}

}  // namespace

std::optional<double> number_of_unit(std::string_view text, std::span<const Unit> units) {
    for (const Unit& unit : units) {
        if (!text.ends_with(unit.name)) continue;
        const auto number = parse_whole<double>(std::string(text.substr(0, text.size() - unit.name.size())));
        if (number && std::isfinite(*number * unit.scale)) return *number * unit.scale;
    }
    return std::nullopt;
}

std::uint64_t parse_size(const std::string& option, const std::string& text, double least) {
    constexpr Unit units[] = {{"K", 1e3}, {"M", 1e6}, {"G", 1e9}, {"", 1}};
    const auto bytes = number_of_unit(text, units);
    if (!bytes || *bytes < least || *bytes > 1e15)
        usage_error(option,
                    (least > 1 ? "a size of at least " + plain(least / 1e6) + "M" : "a size") +
                        ", such as 512M or 4G",
                    linnet::quoted(text));
    return static_cast<std::uint64_t>(*bytes);
}

std::string counted(std::uint64_t count, const std::string& what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

double parse_duration(const std::string& option, const std::string& text) {
    constexpr Unit units[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"", 1}};
    const auto seconds = text.find(':') == std::string::npos ? number_of_unit(text, units) : clock_time(text);
    constexpr double most = 1e10;  // three centuries
    if (!seconds || *seconds <= 0 || *seconds > most)
        usage_error(option, "a time such as 90s, 10m, 1.5h, 2d or 1:30 (minutes:seconds)",
                    linnet::quoted(text));
    return *seconds;
}

void require_utf8(const std::string& option, const std::string& expected, const std::string& value) {
    if (valid_utf8_prefix(value) != value.size()) usage_error(option, expected, linnet::quoted(value));
}

void require_beside(const CLI::App& app, const std::string& option, const std::vector<std::string>& others) {
    if (app.get_option(option)->count() == 0) return;
    for (const std::string& other : others)
        if (app.get_option(other)->count() > 0) return;
    usage_error(option, joined(others, " or ") + " as well", others.size() == 2 ? "neither" : "none");
}

}  // namespace linnet
