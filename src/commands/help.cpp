#include "commands/help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "commands/commands.h"
#include "commands/version.h"

namespace linnet {
namespace {

constexpr std::size_t text_column = 30, line_width = 100;

/// `left` in its column, then `text` folded beside it.
std::string entry(const std::string& left, const std::string& text, std::size_t column = text_column) {
    std::string out = "  " + left;
    std::size_t at = out.size();
    if (at + 2 > column) {
        out += "\n";
        at = 0;
    }
    out.append(column - at, ' ');
    at = column;
    std::size_t begin = 0;
    while (begin < text.size()) {
        std::size_t end = std::min(text.find(' ', begin), text.size());
        if (at + (end - begin) > line_width && at > column) {
            out += "\n" + std::string(column, ' ');
            at = column;
        } else if (at > column) {
            out += ' ';
            at++;
        }
        out += text.substr(begin, end - begin);
        at += end - begin;
        begin = end + 1;
    }
    return out + "\n";
}

/// "-n, --tokens N" of an option; "FILE..." of an argument.
std::string spelled(const CLI::Option& option) {
    std::string text;
    for (const std::string& name : option.get_snames()) text += (text.empty() ? "-" : ", -") + name;
    if (option.get_snames().empty() && !option.get_lnames().empty()) text += "    ";
    for (const std::string& name : option.get_lnames())
        text += (text.empty() || text == "    " ? "--" : ", --") + name;
    if (option.get_items_expected_max() > 0 && !option.get_type_name().empty())
        text += " " + option.get_type_name();
    if (option.get_items_expected_max() > 1) text += "...";
    return text;
}

std::string explained(const CLI::Option& option) {
    std::string text = option.get_description();
    if (option.get_required()) return text + " (required)";
    if (!option.get_default_str().empty()) text += " [" + option.get_default_str() + "]";
    return text;
}

std::string usage(const CLI::App& app, const std::string& name, bool has_children) {
    std::string text = "usage: linnet " + name;
    bool options = false;
    for (const CLI::Option* option : app.get_options()) {
        options |= option->nonpositional();
        if (option->nonpositional() && option->get_required())
            text += " " + ("--" + option->get_lnames().front()) + " " + option->get_type_name();
    }
    if (options) text += " [OPTIONS]";
    for (const CLI::Option* option : app.get_options()) {
        if (option->nonpositional()) continue;
        std::string argument = option->get_name() + (option->get_items_expected_max() > 1 ? "..." : "");
        text += option->get_required() ? " " + argument : " [" + argument + "]";
    }
    if (has_children) text += std::string("\n       linnet ") + name + " COMMAND …";
    return text + "\n";
}

std::string option_group(const CLI::App& app, const std::string& group, const std::string& title) {
    std::string text;
    for (const CLI::Option* option : app.get_options())
        if (option->get_group() == group && option->nonpositional())
            text += entry(spelled(*option), explained(*option));
    return text.empty() ? text : "\n" + title + ":\n" + text;
}

std::string example_lines(std::string_view examples) {
    std::string text;
    for (std::size_t begin = 0; begin < examples.size();) {
        std::size_t end = std::min(examples.find('\n', begin), examples.size());
        text += "  " + std::string(examples.substr(begin, end - begin)) + "\n";
        begin = end + 1;
    }
    return text;
}

std::string command_list(std::string_view under) {
    std::string text;
    for (const Command& command : commands()) {
        std::string_view name = command.name;
        bool child = under.empty()
                         ? name.find(' ') == name.npos
                         : name.size() > under.size() && name.starts_with(under) && name[under.size()] == ' ';
        if (child) text += entry(std::string(name), command.summary, 22);
    }
    return text;
}

}  // namespace

std::string overview_text() {
    return std::string("linnet ") + version_number +
           ": from a text file to a language model that talks, on the CPU you own.\n"
           "\n"
           "Two commands to try:\n"
           "\n"
           "  linnet generate -p \"ROMEO:\" -n 200\n"
           "      the built-in model continues a play\n"
           "\n"
           "  linnet train --data my.txt --out my-model\n"
           "      trains a tokenizer and a model on your own text; then\n"
           "      linnet generate -m my-model/model.gguf\n"
           "\n"
           "Commands:\n" +
           command_list("") +
           "\n"
           "`linnet COMMAND --help` explains each, with its defaults and an example.\n";
}

std::string program_help(const CLI::App& root) {
    return "linnet: from a text file to a language model that talks, on the CPU you own.\n"
           "\nusage: linnet [OPTIONS] COMMAND …\n\ncommands:\n" +
           command_list("") + option_group(root, "Everywhere", "options, before or after the command") +
           "\nexample:\n"
           "  linnet generate -p \"ROMEO:\" -n 200\n"
           "\n"
           "Results go to stdout, all else to stderr. Exit codes: 0 done, 1 a bug of ours, 2 usage, 3 "
           "invalid input,\n"
           "4 I/O or memory, 5 training diverged or resume refused, 130/143 ended by a signal with the work "
           "saved.\n";
}

std::string command_help(const CLI::App& app, const Command& command) {
    std::string children = command_list(command.name), arguments;
    std::string text = std::string("linnet ") + command.name + ": " + command.summary + "\n\n";
    text += command.add ? usage(app, command.name, !children.empty())
                        : "usage: linnet " + std::string(command.name) + " COMMAND …\n";
    if (!children.empty()) text += "\ncommands:\n" + children;
    for (const CLI::Option* option : app.get_options())
        if (!option->nonpositional()) arguments += entry(option->get_name(), explained(*option));
    if (!arguments.empty()) text += "\narguments:\n" + arguments;
    text += option_group(app, "Options", "options");
    text += option_group(app, "Everywhere", "options of every command");
    text += "\nexample:\n" + example_lines(command.example);
    return text;
}

}  // namespace linnet
