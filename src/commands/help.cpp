#include "commands/help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "base/terminal.h"
#include "commands/commands.h"
#include "commands/version.h"

namespace linnet {
namespace {

/// Columns that help may take.
int width() {
    constexpr int narrowest = 30, widest = 100;
    return stdout_is_terminal() ? std::clamp(stdout_width(), narrowest, widest) : widest;
}

/// `left` in its column, then `text` folded beside it; below it on a narrow terminal.
std::string entry(const std::string& left, const std::string& text, int column = 30) {
    if (width() < 2 * column) column = 6;
    const auto indent = static_cast<std::size_t>(column);
    std::string out = "  " + left;
    if (out.size() + 2 > indent)
        out += "\n" + std::string(indent, ' ');
    else
        out.append(indent - out.size(), ' ');
    return out + folded(text, width(), column, column) + "\n";
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

namespace {

constexpr const char* one_line = "from a text file to a language model that talks, on the CPU you own.\n";

}  // namespace

std::string overview_text() {
    return folded(std::string("linnet ") + version_number + ": " + one_line, width()) +
           "\n"
           "Two commands to try:\n"
           "\n"
           "  linnet generate -p \"ROMEO:\" -n 200\n"
           "      " +
           folded("the built-in model continues a play", width(), 6, 6) +
           "\n\n"
           "  linnet train --data my.txt --out my-model\n"
           "      " +
           folded("trains a tokenizer and a model on your own text; then", width(), 6, 6) +
           "\n"
           "      linnet generate -m my-model/model.gguf\n"
           "\n"
           "Commands:\n" +
           command_list("") +
           folded("\n`linnet COMMAND --help` explains each, with its defaults and an example.\n", width());
}

std::string program_help(const CLI::App& root) {
    return folded(std::string("linnet: ") + one_line, width()) +
           "\nusage: linnet [OPTIONS] COMMAND …\n\ncommands:\n" + command_list("") +
           option_group(root, "Everywhere", "options, before or after the command") +
           "\nexample:\n"
           "  linnet generate -p \"ROMEO:\" -n 200\n"
           "\n" +
           folded(
               "Results go to stdout, all else to stderr. Exit codes: 0 done, 1 a bug of ours, 2 usage, "
               "3 invalid input, 4 I/O or memory, 5 training diverged or resume refused, 130/143 ended by a "
               "signal with the work saved.\n",
               width());
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
