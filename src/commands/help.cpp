#include "commands/help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "base/split.h"
#include "base/terminal.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/version.h"

namespace linnet {

int help_width() {
    constexpr int narrowest = 30, widest = 100;
    return stdout_is_terminal() ? std::clamp(stdout_width(), narrowest, widest) : widest;
}

namespace {

/// `left` in its column, then `text` folded beside it; below it on a narrow terminal.
std::string entry(const std::string& left, const std::string& text, int column = 30) {
    if (help_width() < 2 * column) column = 6;
    const auto indent = static_cast<std::size_t>(column);
    std::string out = "  " + left;
    if (out.size() + 2 > indent)
        out += "\n" + std::string(indent, ' ');
    else
        out.append(indent - out.size(), ' ');
    return out + folded(text, help_width(), column, column) + "\n";
}

std::string usage(const std::vector<Argument>& arguments, const std::string& name, bool has_children) {
    std::string text = "usage: linnet " + name + usage_of(arguments);
    if (has_children) text += std::string("\n       linnet ") + name + " COMMAND …";
    return text + "\n";
}

/// The options of every command, or those of its own, under a title.
std::string option_group(const std::vector<Argument>& arguments, bool everywhere, const std::string& title) {
    std::string text;
    for (const Argument& argument : arguments)
        if (argument.everywhere == everywhere && !argument.positional)
            text += entry(spelled(argument), explained(argument));
    return text.empty() ? text : "\n" + title + ":\n" + text;
}

std::string example_lines(std::string_view examples) {
    std::string text;
    for (std::string_view line : split(examples, '\n')) text += "  " + std::string(line) + "\n";
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

constexpr const char* one_line =
    "trains, fine-tunes, quantizes and runs language models on CPUs: one executable, no Python.\n";

}  // namespace

std::string overview_text() {
    return folded(std::string("linnet ") + version_number + ": " + one_line, help_width()) +
           "\n"
           "Two commands to try:\n"
           "\n"
           "  linnet generate -p \"ROMEO:\" -n 200\n"
           "      " +
           folded("the built-in model continues a play", help_width(), 6, 6) +
           "\n\n"
           "  linnet train --data my.txt --out my-model\n"
           "      " +
           folded("trains a tokenizer and a model on your own text; then", help_width(), 6, 6) +
           "\n"
           "      linnet generate -m my-model/model.gguf\n"
           "\n"
           "Commands:\n" +
           command_list("") +
           folded("\n`linnet COMMAND --help` explains each, with its defaults and an example.\n",
                  help_width());
}

std::span<const ExitCode> exit_codes() {
    static constexpr ExitCode table[] = {
        {"0", "done"},
        {"1", "a bug of linnet"},
        {"2", "the command line, or something is there already and --overwrite is not given"},
        {"3", "invalid input: a file's content, a config, a text"},
        {"4", "the operating system: unreadable, no space, no memory, a folder in use"},
        {"5", "training diverged, or a resume was refused"},
        {"129, 130, 143", "ended by SIGHUP, Ctrl-C or SIGTERM, with the work saved"},
    };
    return table;
}

std::string program_help(const CLI::App& root) {
    std::string codes;
    for (const ExitCode& exit : exit_codes()) codes += entry(exit.code, exit.meaning, 17);
    return folded(std::string("linnet: ") + one_line, help_width()) +
           "\nusage: linnet [OPTIONS] COMMAND …\n"
           "       linnet help [COMMAND …]\n"
           "       linnet help config [PATTERN]\n"
           "\ncommands:\n" +
           command_list("") + option_group(arguments_of(root), true, "options, before or after the command") +
           "\nexample:\n"
           "  linnet generate -p \"ROMEO:\" -n 200\n"
           "\n" +
           folded("Results go to stdout, all else to stderr. Exit codes:\n", help_width()) + codes;
}

std::string command_help(const CLI::App& app, const Command& command) {
    std::vector<Argument> arguments = arguments_of(app);
    std::string children = command_list(command.name), positional;
    std::string text = std::string("linnet ") + command.name + ": " + command.summary + "\n\n";
    text += command.add ? usage(arguments, command.name, !children.empty())
                        : "usage: linnet " + std::string(command.name) + " COMMAND …\n";
    if (!children.empty()) text += "\ncommands:\n" + children;
    for (const Argument& argument : arguments)
        if (argument.positional) positional += entry(spelled(argument), explained(argument));
    if (!positional.empty()) text += "\narguments:\n" + positional;
    text += option_group(arguments, false, "options");
    text += option_group(arguments, true, "options of every command");
    if (const std::string note = app.get_footer(); !note.empty())
        text += "\n" + folded(note, help_width()) + "\n";
    text += "\nexample:\n" + example_lines(command.example);
    return text;
}

}  // namespace linnet
