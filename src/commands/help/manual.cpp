// `linnet manual`: pages for man(1), made from the table of commands and their arguments.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/split.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/help.h"
#include "commands/options.h"
#include "commands/version.h"

namespace linnet {
namespace {

struct Variable {
    const char* name;
    const char* meaning;
};
constexpr Variable environment[] = {
    {"LINNET_ISA", "instruction set of the kernels, where --isa is not given"},
    {"NO_COLOR", "set to anything: no colours on a terminal"},
    {"COLUMNS", "width of the terminal, where the terminal does not tell it"},
    {"TMPDIR", "where `tokenizer train` puts what its memory cannot hold (/tmp)"},
    {"XDG_STATE_HOME", "where `chat` keeps what was typed, in linnet/chat_history (~/.local/state)"},
};

/// What is installed for a command beside the program.
struct InstalledFile {
    std::string_view command;
    const char* path;  // below the folder that bin/linnet is in
    const char* meaning;
};
constexpr InstalledFile installed_files[] = {
    {"train", "share/doc/linnet/models/", "configs to begin from; README.md there explains every setting"},
    {"finetune", "share/doc/linnet/models/templates/", "chat templates; README.md there explains them"},
    {"chat", "share/doc/linnet/models/templates/", "chat templates; README.md there explains them"},
};

/// Text as roff reads it: no character of it is a command.
std::string roff(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (c == '\\')
            out += "\\e";
        else if (c == '-')
            out += "\\-";
        else if (c == '\'')
            out += "\\(aq";
        else if (c == '`')
            out += "\\(ga";
        else if (c == '^')
            out += "\\(ha";
        else if (c == '~')
            out += "\\(ti";
        else
            out += c;
    }
    return out.starts_with('.') ? "\\&" + out : out;
}

std::string bold(std::string_view text) {
    return "\\fB" + roff(text) + "\\fR";
}

std::string italic(std::string_view text) {
    return "\\fI" + roff(text) + "\\fR";
}

/// A name with its explanation beside it.
std::string item(const std::string& name, std::string_view text) {
    return ".TP\n" + name + "\n" + roff(text) + "\n";
}

std::string item(const Argument& argument) {
    std::string name;
    for (const std::string& part : argument.names)
        name += (name.empty() ? "" : ", ") + (argument.positional ? italic(part) : bold(part));
    if (!argument.positional && !argument.value.empty()) name += " " + italic(argument.value);
    if (argument.repeats) name += " ...";
    return item(name, explained(argument));
}

std::string section(const char* title, const std::string& content) {
    return content.empty() ? "" : std::string(".SH ") + title + "\n" + content;
}

std::string page_name(std::string_view command) {
    std::string name = "linnet" + (command.empty() ? "" : "-" + std::string(command));
    std::replace(name.begin(), name.end(), ' ', '-');
    return name;
}

std::string options(const std::vector<Argument>& arguments, bool positional, bool everywhere) {
    std::string out;
    for (const Argument& argument : arguments)
        if (argument.positional == positional && argument.everywhere == everywhere) out += item(argument);
    return out;
}

std::string example(std::string_view lines) {
    std::string out = ".nf\n";
    for (std::string_view line : split(lines, '\n')) out += roff(line) + "\n";
    return out + ".fi\n";
}

/// The commands whose name is one word longer than `name`.
std::vector<const Command*> children_of(std::string_view name) {
    std::vector<const Command*> children;
    for (const Command& command : commands()) {
        std::string_view other = command.name;
        std::size_t blank = other.rfind(' ');
        if ((blank == other.npos ? "" : other.substr(0, blank)) == name) children.push_back(&command);
    }
    return children;
}

std::string command_items(std::string_view under) {
    std::string out;
    for (const Command* child : children_of(under))
        out += item(bold(page_name(child->name)) + "(1)", child->summary);
    return out;
}

std::string files_of(std::string_view command) {
    std::string out;
    for (const InstalledFile& file : installed_files)
        if (file.command == command) out += item(bold(file.path), file.meaning);
    return out.empty() ? "" : roff("Below the folder that bin/linnet is installed in:") + "\n" + out;
}

std::string head(const std::string& name, std::string_view summary) {
    std::string title = name;
    std::transform(title.begin(), title.end(), title.begin(),
                   [](char c) { return 'a' <= c && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return ".\\\" Made by `linnet manual`.\n.TH " + title + " 1 \"\" \"linnet " + version_number +
           "\" \"User Commands\"\n.SH NAME\n" + name + " \\- " + roff(summary) + "\n";
}

std::string program_page(const CLI::App& root) {
    std::string exits, variables;
    for (const ExitCode& exit : exit_codes()) exits += item(bold(exit.code), exit.meaning);
    for (const Variable& variable : environment) variables += item(bold(variable.name), variable.meaning);
    return head("linnet", "train, fine-tune, quantize and run language models on CPUs") +
           section("SYNOPSIS", bold("linnet") + " [" + italic("OPTIONS") + "] " + italic("COMMAND") +
                                   " ...\n.br\n" + bold("linnet help") + " [" + italic("COMMAND") +
                                   " ...]\n.br\n" + bold("linnet help config") + " [" + italic("PATTERN") +
                                   "]\n") +
           section(
               "DESCRIPTION",
               roff(
                   "linnet trains a tokenizer and a transformer on a text, writes a GGUF file that llama.cpp "
                   "and its relatives load, measures it, and generates from it. Where no model is named, the "
                   "one built into the program serves. Results go to stdout; progress, notes and errors go "
                   "to "
                   "stderr. `linnet help config` lists every key of a CONFIG.") +
                   "\n") +
           section("COMMANDS", command_items("")) +
           section("OPTIONS", options(arguments_of(root), false, true)) + section("EXIT STATUS", exits) +
           section("ENVIRONMENT", variables) +
           section("EXAMPLES", example(std::string(commands()[0].example) +
                                       "\nlinnet train --data my.txt --out my-model"));
}

std::string command_page(const CLI::App& root, const Command& command) {
    const CLI::App& app = app_of(root, command.name);
    const std::vector<Argument> arguments = arguments_of(app);
    const std::string note = app.get_footer();
    std::string synopsis, also = ".BR linnet (1)";
    if (command.add)
        synopsis = bold("linnet " + std::string(command.name)) + roff(usage_of(arguments)) + "\n";
    if (!children_of(command.name).empty())
        synopsis += (synopsis.empty() ? "" : ".br\n") + bold("linnet " + std::string(command.name)) + " " +
                    italic("COMMAND") + " ...\n";
    std::string_view name = command.name;
    std::string parent(name.substr(0, name.find(' ')));
    for (const Command& other : commands()) {
        std::string_view of = other.name;
        if (of != name && of.substr(0, of.find(' ')) == parent)
            also += ",\n.BR " + roff(page_name(of)) + " (1)";
    }
    return head(page_name(name), command.summary) + section("SYNOPSIS", synopsis) +
           section("DESCRIPTION", note.empty() ? "" : roff(note) + "\n") +
           section("COMMANDS", command_items(name)) + section("ARGUMENTS", options(arguments, true, false)) +
           section("OPTIONS", options(arguments, false, false)) +
           section("OPTIONS OF EVERY COMMAND", options(arguments, false, true)) +
           section("FILES", files_of(name)) +
           section("EXIT STATUS", roff("0: done; see linnet(1) for the others.") + "\n") +
           section("EXAMPLES", example(command.example)) + section("SEE ALSO", also + "\n");
}

/// "bench train" of "bench train", "bench-train" or "linnet-bench-train"; null is linnet itself.
const Command* command_named(const std::string& typed) {
    constexpr std::string_view program = "linnet";
    std::string name = replaced(typed, "-", " ");
    if (name == program) name.clear();
    if (name.starts_with(std::string(program) + " ")) name.erase(0, program.size() + 1);
    if (name.empty()) return nullptr;
    for (const Command& command : commands())
        if (name == command.name) return &command;
    usage_error("COMMAND", "a command or a page of --list", linnet::quoted(typed),
                did_you_mean(name, names_of(commands())));
}

struct Wanted {
    std::vector<std::string> words;
    bool list = false;
};

int run(const Wanted& wanted, const CLI::App& root) {
    if (wanted.list) {
        std::string out = page_name("") + "\n";
        for (const Command& command : commands()) out += page_name(command.name) + "\n";
        write_stdout(out);
        return 0;
    }
    const Command* command = command_named(joined(wanted.words, " "));
    write_stdout(command ? command_page(root, *command) : program_page(root));
    return 0;
}

}  // namespace

Action add_manual(CLI::App& app, const Globals&) {
    auto wanted = std::make_shared<Wanted>();
    app.add_option("COMMAND", wanted->words, "the command, in one word or several; none: linnet itself")
        ->type_name("COMMAND");
    app.add_flag("--list", wanted->list, "print the names of the pages instead, one per line");
    return [wanted, &app] { return run(*wanted, root_of(app)); };
}

}  // namespace linnet
