// Parsing, dispatch and the one place where errors become a line and an exit code.
#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/nearest.h"
#include "base/signals.h"
#include "base/split.h"
#include "base/terminal.h"
#include "commands/commands.h"
#include "commands/help.h"
#include "commands/options.h"
#include "commands/out_of_memory.h"
#include "commands/version.h"
#include "kernels/kernels.h"

namespace linnet {
namespace {

struct HelpWanted {
    const CLI::App* app;
    const Command* command;  // null: the program's
};
struct VersionWanted {};

struct Node {
    CLI::App* app;
    const Command* command;
    Action action;
};

void add_globals(CLI::App& app, Globals& globals, const Command* command) {
    auto threads = [&globals](const std::string& text) {
        const auto value = parse_whole<int>(text);
        if (!value || *value < 1 || *value > 1024)
            usage_error("--threads", "a whole number from 1 to 1024", linnet::quoted(text));
        globals.threads = *value;
    };
    const char* group = "Everywhere";
    app.set_help_flag();
    CLI::Option* option = app.add_option_function<std::string>("--threads", threads, "threads to use")
                              ->type_name("N")
                              ->default_str("physical cores")
                              ->group(group);
    // llama.cpp's short name, where a model runs or is made; where text is tokenized, -t is the tokenizer.
    if ((app.get_option_no_throw("--model") || app.get_option_no_throw("CONFIG")) &&
        !app.get_option_no_throw("-t"))
        add_hidden_names(app, "-t", option);
    add_text(app, "--isa", globals.isa,
             std::string("instruction set of the kernels, of ") + built_kernels() + " (or LINNET_ISA)")
        ->type_name("NAME")
        ->default_str("the best found")
        ->group(group);
    app.add_flag("--quiet", globals.quiet, "no progress on stderr")->group(group);
    // Both act the moment they are read, so that they win over a missing or wrong option beside them.
    app.add_flag_callback(
           "-V,--version", [] { throw VersionWanted(); }, "print version, compiler, instruction sets")
        ->trigger_on_parse()
        ->group(group);
    app.add_flag_callback(
           "-h,--help",
           [&app, command] {
               throw HelpWanted{&app, command};
           },
           "print this help")
        ->trigger_on_parse()
        ->group(group);
}

/// The table as a tree of CLI11 apps. Nodes in the table's order.
std::vector<Node> build(CLI::App& root, Globals& globals) {
    std::vector<Node> nodes;
    std::map<std::string, CLI::App*> by_name{{"", &root}};
    add_globals(root, globals, nullptr);
    root.require_subcommand(0, 1);
    for (const Command& command : commands()) {
        std::string name = command.name;
        std::size_t space = name.rfind(' ');
        CLI::App* parent = by_name.at(space == std::string::npos ? "" : name.substr(0, space));
        CLI::App* app =
            parent->add_subcommand(name.substr(space == std::string::npos ? 0 : space + 1), command.summary);
        by_name[name] = app;
        app->require_subcommand(0, 1);
        nodes.push_back({app, &command, command.add ? command.add(*app, globals) : Action()});
        add_globals(*app, globals, &command);
    }
    return nodes;
}

const CLI::App* innermost(const CLI::App* app) {
    while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
    return app;
}

std::string path_of(const CLI::App* app) {
    std::string path = app->get_name();
    for (const CLI::App* up = app->get_parent(); up; up = up->get_parent())
        path = up->get_name() + " " + path;
    return path;
}

/// What was left over is an unknown option or command: named, with the nearest known one.
void reject_unknown(const CLI::App& root) {
    for (const CLI::App* app = &root;; app = app->get_subcommands().front()) {
        std::vector<std::string> left = app->remaining(false), names;
        left.erase(std::remove(left.begin(), left.end(), "--"), left.end());
        if (!left.empty()) {
            std::string word = left.front();
            bool option = word.size() > 1 && word[0] == '-';
            word = word.substr(0, option ? word.find('=') : word.size());
            bool arguments = false;  // the command takes some, so a word too many is no mistyped command
            for (const CLI::Option* known : app->get_options()) arguments |= known->get_positional();
            if (option && word.size() > 2) {
                for (const CLI::Option* known : app->get_options()) {
                    if (known->get_group().empty()) continue;  // another program's name is no suggestion
                    for (const std::string& name : known->get_lnames()) names.push_back("--" + name);
                    for (const std::string& name : known->get_snames()) names.push_back("-" + name);
                }
            } else if (!option) {
                for (const CLI::App* child : app->get_subcommands(nullptr))
                    names.push_back(child->get_name());
            }
            std::string near = nearest(word, names).value_or("");
            const std::string ours(option && word.starts_with("--") ? option_for(word.substr(2)) : "");
            if (!ours.empty() && app->get_option_no_throw("--" + ours)) near = "--" + ours;
            bool command = !option && !names.empty() && (!near.empty() || !arguments);
            std::string expected = option    ? "a known option"
                                   : command ? "a known command"
                                             : "no further argument";
            std::string hint =
                !near.empty() ? "did you mean " + near + "?" : "see " + path_of(app) + " --help";
            fail(Exit::usage, "", app == &root ? "" : path_of(app).substr(root.get_name().size() + 1),
                 expected, linnet::quoted(word), hint);
        }
        if (app->get_subcommands().empty()) return;
    }
}

/// An option is no other one's value: `--stop -n 1` lacks the text (`--stop=-n` is one, and a prompt may be
/// any text). CLI11 would take it.
void refuse_options_as_values(const CLI::App& root, const std::vector<std::string>& words) {
    const CLI::App* app = &root;
    for (std::size_t i = 0; i + 1 < words.size() && words[i] != "--"; i++) {
        for (const CLI::App* child : app->get_subcommands(nullptr))
            if (words[i] == child->get_name()) app = child;
        const CLI::Option* option = words[i].starts_with('-') ? app->get_option_no_throw(words[i]) : nullptr;
        if (!option || option->get_items_expected_max() == 0) continue;
        const std::string& value = words[++i];
        if (value.size() > 1 && value[0] == '-' && app->get_option_no_throw(value) &&
            !option->check_lname("prompt"))
            usage_error(words[i - 1], "a value", "the option " + value);
    }
}

/// CLI11's own complaints, in our form. It words them for any program; three kinds are common enough to be
/// worded here.
[[noreturn]] void reject(const CLI::App& root, const CLI::ParseError& error) {
    reject_unknown(root);
    const CLI::App* app = innermost(&root);
    std::string what = error.what(), option = what.substr(0, what.find_first_of(": "));
    std::string help = "see " + path_of(app) + " --help";
    if (dynamic_cast<const CLI::RequiredError*>(&error)) usage_error(option, "a value", "none", help);
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error))
        usage_error(option, "one value", what.find("missing") != what.npos ? "none" : "more than one", help);
    if (dynamic_cast<const CLI::ExcludesError*>(&error)) {
        std::string other = what.substr(what.rfind(' ') + 1);
        usage_error(option, "not both " + option + " and " + other, "both", help);
    }
    fail(Exit::usage, "", "", "", what, help);
}

void choose_kernels(const Globals& globals) {
    const char* environment = std::getenv("LINNET_ISA");
    std::string isa = !globals.isa.empty() ? globals.isa : environment ? environment : "";
    if (isa.empty() || select_kernels(isa.c_str())) return;
    std::vector<std::string> usable;
    for (const KernelTable<float>* table : usable_kernels()) usable.emplace_back(table->name);
    usage_error(globals.isa.empty() ? "LINNET_ISA" : "--isa", "one of " + joined(usable),
                linnet::quoted(isa));
}

/// Of `linnet help WORDS` where `config`, which is no command, is the first word that is no option: the
/// patterns behind it. `words` keeps the options, of which the parser knows.
std::optional<std::vector<std::string>> take_config_topic(const CLI::App& root,
                                                          std::vector<std::string>& words) {
    std::vector<std::string> options, others;
    for (std::size_t i = 0; i < words.size(); i++) {
        const bool is_option = words[i].starts_with('-');
        (is_option ? options : others).push_back(words[i]);
        const CLI::Option* known = is_option ? root.get_option_no_throw(words[i]) : nullptr;
        if (known && known->get_items_expected_max() > 0 && i + 1 < words.size())
            options.push_back(words[++i]);
    }
    if (others.empty() || others.front() != config_topic) return std::nullopt;
    others.erase(others.begin());
    words = std::move(options);
    return others;
}

/// `linnet help train`, as people type it, is `linnet train --help`. Of `linnet help config` the patterns.
std::optional<std::vector<std::string>> take_help(const CLI::App& root, std::vector<std::string>& words) {
    if (words.empty() || words.front() != "help") return std::nullopt;
    words.erase(words.begin());
    if (words == std::vector<std::string>{"help"}) words.clear();
    if (auto patterns = take_config_topic(root, words)) {
        words.push_back("--help");
        return patterns;
    }
    const CLI::App* app = &root;
    for (const std::string& word : words) {
        if (word.starts_with('-')) break;  // an option, of which the parser knows
        std::vector<std::string> names;
        const CLI::App* next = nullptr;
        for (const CLI::App* child : app->get_subcommands(nullptr)) {
            names.push_back(child->get_name());
            if (word == child->get_name()) next = child;
        }
        if (app == &root) names.emplace_back(config_topic);
        if (!next)
            usage_error("help", names.empty() ? "no further word" : "a known command", linnet::quoted(word),
                        did_you_mean(word, names, "see linnet --help"));
        app = next;
    }
    words.push_back("--help");
    return std::nullopt;
}

int dispatch(int argc, char** argv) {
    Globals globals;
    CLI::App root("", "linnet");
    std::vector<Node> nodes = build(root, globals);
    std::vector<std::string> words(argv + 1, argv + argc);
    const std::optional<std::vector<std::string>> patterns = take_help(root, words);
    refuse_options_as_values(root, words);
    std::reverse(words.begin(), words.end());  // CLI11 takes them last first
    try {
        root.parse(words);
    } catch (const CLI::ParseError& error) {
        reject(root, error);
    } catch (const HelpWanted& help) {
        reject_unknown(root);
        write_stdout(patterns       ? config_help(*patterns)
                     : help.command ? command_help(*help.app, *help.command)
                                    : program_help(root));
        return 0;
    }
    const CLI::App* chosen = innermost(&root);
    set_quiet(globals.quiet);
    choose_kernels(globals);
    if (chosen == &root) {
        write_stdout(overview_text());
        return 0;
    }
    for (const Node& node : nodes) {
        if (node.app != chosen) continue;
        if (node.action) return node.action();
        write_stdout(command_help(*node.app, *node.command));
        return 0;
    }
    return static_cast<int>(Exit::bug);
}

constexpr char before_errors[] = "linnet: error: ";

int complain(const char* line, Exit exit) {
    std::fprintf(stderr, "%s%s\n", before_errors, line);
    return static_cast<int>(exit);
}

/// One line in a log; on a terminal folded at words, as notes are.
std::string for_reader(const char* line) {
    return stderr_is_terminal() ? folded(line, stderr_width(), 0, sizeof before_errors - 1) : line;
}

int bug(const std::exception& error) {
    const std::string line =
        std::string(error.what()) + " (a bug of linnet, not of your input; please report it)";
    return complain(line.c_str(), Exit::bug);
}

int run(int argc, char** argv) {
    try {
        int code = 0;
        try {
            code = dispatch(argc, argv);
        } catch (const VersionWanted&) {
            if (const char* isa = std::getenv("LINNET_ISA")) select_kernels(isa);  // those are told
            write_stdout(version_text());
        }
        flush_stdout();
        return code;
    } catch (const BrokenPipe&) {
        return static_cast<int>(Exit::ok);
    } catch (const Stopped& stopped) {
        return 128 + stopped.signal;
    } catch (const Error& error) {
        return complain(for_reader(error.what()).c_str(), error.exit());
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::system_error& error) {
        if (error.code() == std::errc::not_enough_memory) throw std::bad_alloc();
        return bug(error);
    } catch (const std::exception& error) {
        return bug(error);
    }
}

}  // namespace

int run_program(int argc, char** argv) {
    end_in_order_without_memory();
    int code = 0;
    try {
        prepare_standard_streams();
        code = run(argc, argv);
    } catch (const std::bad_alloc& refused) {  // also while another error was being told
        code = complain_of_memory(refused);
    }
    work_is_done(code);
    return code;
}

}  // namespace linnet
