#include "commands/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <stdexcept>

#include "base/split.h"
#include "commands/commands.h"
#include "model/quantize/quantize_types.h"
#include "text/chat/template.h"
#include "text/split/pre_names.h"
#include "train/task/config.h"

namespace linnet {
namespace {

/// Every `key=` of a config, with its values where they can be named.
std::vector<std::string> settings() {
    RunConfig config;
    std::vector<std::string> words;
    for (const Field& field : run_fields(config)) {
        std::vector<std::string> values = field.choices;
        if (std::holds_alternative<bool*>(field.target)) values = {"true", "false"};
        if (values.empty()) words.push_back(field.key + "=");
        for (const std::string& value : values) words.push_back(field.key + "=" + value);
    }
    return words;
}

std::vector<std::string> pre_tokenizers() {
    return names_of(pre_names());
}

/// Commands, as the words that follow `linnet manual`.
std::vector<std::string> command_words() {
    std::vector<std::string> words;
    for (const Command& command : commands()) {
        std::string name = command.name;
        std::string last = name.substr(name.rfind(' ') + 1);
        if (std::find(words.begin(), words.end(), last) == words.end()) words.push_back(last);
    }
    return words;
}

std::vector<std::string> quantize_types() {
    return names_of(quantize_mixes());
}

std::vector<std::string> template_names() {
    return names_of(chat_templates());
}

struct Kind {
    std::string_view value;  // the name of the value in help
    Offer offer;
    std::vector<std::string> (*words)() = nullptr;
};

constexpr Kind kinds[] = {
    {"FILE", Offer::files},
    {"PATH", Offer::files},
    {"MODEL", Offer::files},
    {"TOKENIZER", Offer::files},
    {"OUT", Offer::files},
    {"DIR", Offer::folders},
    {"KEY=VALUE", Offer::words, settings},
    {"PRE", Offer::words, pre_tokenizers},
    {"TEMPLATE", Offer::words, template_names},
    {"COMMAND", Offer::words, command_words},
    {"N", Offer::nothing},
    {"X", Offer::nothing},
    {"K", Offer::nothing},
    {"P", Offer::nothing},
    {"R", Offer::nothing},
    {"S", Offer::nothing},
    {"SIZE", Offer::nothing},
    {"TIME", Offer::nothing},
    {"NAME", Offer::nothing},
    {"TEXT", Offer::nothing},
    {"LIST", Offer::nothing},
    {"BIAS", Offer::nothing},
    {"PATTERN=TYPE", Offer::nothing},
    {"TYPE", Offer::words, quantize_types},
};

void set_offer(Argument& argument, const std::string& owner) {
    if (argument.value.empty()) return;
    if (argument.value.find('|') != std::string::npos) {  // the choices themselves: see add_choice
        argument.offer = Offer::words;
        for (std::string_view word : split(argument.value, '|')) argument.words.emplace_back(word);
        return;
    }
    for (const Kind& kind : kinds) {
        if (kind.value != argument.value) continue;
        argument.offer = kind.offer;
        if (kind.words) argument.words = kind.words();
        return;
    }
    throw std::logic_error(owner + " " + argument.names.front() + ": no kind of value is named " +
                           argument.value);
}

}  // namespace

std::vector<Argument> arguments_of(const CLI::App& app) {
    std::vector<Argument> arguments;
    for (const CLI::Option* option : app.get_options()) {
        if (option->get_group().empty()) continue;
        Argument argument;
        argument.positional = !option->nonpositional();
        if (argument.positional) {
            argument.names = {option->get_name()};
        } else {
            for (const std::string& name : option->get_snames()) argument.names.push_back("-" + name);
            for (const std::string& name : option->get_lnames()) argument.names.push_back("--" + name);
        }
        if (option->get_items_expected_max() > 0) argument.value = option->get_type_name();
        argument.repeats = option->get_items_expected_max() > 1;
        argument.required = option->get_required();
        argument.everywhere = option->get_group() == "Everywhere";
        argument.help = option->get_description();
        argument.fallback = option->get_default_str();
        set_offer(argument, app.get_name());
        arguments.push_back(std::move(argument));
    }
    return arguments;
}

std::string spelled(const Argument& argument) {
    if (argument.positional) return argument.names.front() + (argument.repeats ? "..." : "");
    std::string text = argument.names.front().starts_with("--") ? "    " : "";
    for (std::size_t i = 0; i < argument.names.size(); i++) text += (i ? ", " : "") + argument.names[i];
    if (!argument.value.empty()) text += " " + argument.value;
    return text + (argument.repeats ? "..." : "");
}

std::string long_name(const Argument& argument) {
    for (const std::string& name : argument.names)
        if (name.starts_with("--")) return name;
    return argument.names.front();
}

std::string explained(const Argument& argument) {
    if (argument.required) return argument.help + " (required)";
    if (argument.fallback.empty()) return argument.help;
    return argument.help + " [" + argument.fallback + "]";
}

std::string usage_of(const std::vector<Argument>& arguments) {
    std::string text;
    bool options = false;
    for (const Argument& argument : arguments) {
        options |= !argument.positional;
        if (!argument.positional && argument.required)
            text += " " + long_name(argument) + " " + argument.value;
    }
    if (options) text += " [OPTIONS]";
    for (const Argument& argument : arguments)
        if (argument.positional)
            text += argument.required ? " " + spelled(argument) : " [" + spelled(argument) + "]";
    return text;
}

const CLI::App& app_of(const CLI::App& root, std::string_view name) {
    const CLI::App* app = &root;
    while (!name.empty()) {
        std::string word(name.substr(0, name.find(' ')));
        app = app->get_subcommand(word);
        name.remove_prefix(std::min(name.size(), word.size() + 1));
    }
    return *app;
}

const CLI::App& root_of(const CLI::App& app) {
    const CLI::App* root = &app;
    while (root->get_parent()) root = root->get_parent();
    return *root;
}

}  // namespace linnet
