// `linnet completion SHELL`: scripts for bash, zsh and fish, each a walk over the commands and their
// arguments. A script first finds the command that the line has reached, as a place such as
// "tokenizer/train".
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "base/file.h"
#include "base/split.h"
#include "commands/arguments.h"
#include "commands/commands.h"
#include "commands/help.h"
#include "commands/options.h"
#include "kernels/kernels.h"

namespace linnet {
namespace {

/// No commands of the table. The words behind `help` are completed as if it were not there, but for its page
/// of keys.
constexpr Command help_word{"help", "print the help of a command", "", nullptr};
constexpr Command config_word{config_topic, "list the keys of a CONFIG", "", nullptr};

/// Where keys are offered. Its next word is the one PATTERN; behind that is no place, so nothing is offered.
std::string keys_place() {
    return std::string(help_word.name) + "/" + config_word.name;
}

struct Place {
    std::string name;  // "", "tokenizer", "tokenizer/train", "help/config"
    std::vector<Argument> arguments;
    std::vector<const Command*> children;
};

std::string last_word(const Command& command) {
    return replaced(command.name, " ", "/").substr(std::string_view(command.name).rfind(' ') + 1);
}

/// With the sets of --isa, which are too many to be its value's name in help.
std::vector<Argument> completed_arguments(const CLI::App& app) {
    std::vector<Argument> arguments = arguments_of(app);
    for (Argument& argument : arguments) {
        if (long_name(argument) != "--isa") continue;
        argument.offer = Offer::words;
        for (std::string_view set : split(built_kernels(), ' ')) argument.words.emplace_back(set);
    }
    return arguments;
}

std::vector<Place> places(const CLI::App& root) {
    std::vector<Place> all{{"", completed_arguments(root), {}}};
    for (const Command& command : commands())
        all.push_back(
            {replaced(command.name, " ", "/"), completed_arguments(app_of(root, command.name)), {}});
    for (const Command& command : commands()) {
        std::string name = replaced(command.name, " ", "/");
        std::string parent = name.find('/') == name.npos ? "" : name.substr(0, name.rfind('/'));
        std::find_if(all.begin(), all.end(), [&](const Place& place) {
            return place.name == parent;
        })->children.push_back(&command);
    }
    Place help{help_word.name, all[0].arguments, all[0].children};
    help.children.push_back(&config_word);
    all[0].children.push_back(&help_word);
    Argument pattern;
    pattern.names = {"PATTERN"};
    pattern.positional = true;
    pattern.value = pattern.names[0];
    pattern.help = "a part of a key";
    pattern.offer = Offer::words;
    pattern.words = config_keys();
    all.push_back(std::move(help));
    all.push_back({keys_place(), {std::move(pattern)}, {}});
    return all;
}

/// "/train|tokenizer/train|…", each a place and the word that leads on from it.
std::string steps(const std::vector<Place>& all) {
    std::string text;
    for (const Place& place : all)
        for (const Command* child : place.children)
            if (place.name != help_word.name || child == &config_word)
                text += (text.empty() ? "" : "|") + place.name + "/" + last_word(*child);
    return text;
}

/// In single quotes of a shell; fish knows two escapes in them.
std::string in_quotes(const std::string& text, bool fish = false) {
    if (fish) return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
    return "'" + replaced(text, "'", "'\\''") + "'";
}

const Argument* positional_of(const Place& place) {
    for (const Argument& argument : place.arguments)
        if (argument.positional) return &argument;
    return nullptr;
}

// ---- bash ----

std::string bash_offer(const Argument& argument) {
    switch (argument.offer) {
        case Offer::files:
            return "kind=files";
        case Offer::folders:
            return "kind=folders";
        case Offer::words:
            return "words=" + in_quotes(joined(argument.words, " "));
        case Offer::nothing:
            break;
    }
    return "kind=nothing";
}

/// The case arms of options that take a value: what is offered for it.
std::string bash_values(const std::vector<Place>& all) {
    std::string out;
    for (const Place& place : all) {
        for (const Argument& argument : place.arguments) {
            if (argument.positional || argument.value.empty()) continue;
            std::string pattern;
            for (const std::string& name : argument.names)
                pattern += (pattern.empty() ? "" : "|") + place.name + ":" + name;
            out += "        " + pattern + ") " + bash_offer(argument) + " ;;\n";
        }
    }
    return out;
}

/// The case arms of places: their options, and what else may stand there.
std::string bash_places(const std::vector<Place>& all) {
    std::string out;
    for (const Place& place : all) {
        std::string options, words, offer;
        for (const Argument& argument : place.arguments)
            if (!argument.positional) options += (options.empty() ? "" : " ") + joined(argument.names, " ");
        for (const Command* child : place.children) words += (words.empty() ? "" : " ") + last_word(*child);
        if (const Argument* positional = positional_of(place)) {
            if (positional->offer == Offer::words)
                words += (words.empty() ? "" : " ") + joined(positional->words, " ");
            else
                offer = "; " + bash_offer(*positional);
        }
        out += "                " + (place.name.empty() ? "''" : place.name) +
               ") options=" + in_quotes(options) + "; words=" + in_quotes(words) + offer + " ;;\n";
    }
    return out;
}

/// bash divides words at '=' too, so "--set model.layers=4" and "--format=ids" are put together again; what
/// is offered then replaces the part after the last '='.
std::string bash_script(const std::vector<Place>& all) {
    return "# bash completion for linnet, made by `linnet completion bash`\n"
           "_linnet() {\n"
           "    local word option='' place='' kind='' words='' options='' i n=-1\n"
           "    local -a line=()\n"
           "    for ((i = 0; i <= COMP_CWORD; i++)); do\n"
           "        word=${COMP_WORDS[i]}\n"
           "        if ((i > 1)) && [[ $word == = || ${COMP_WORDS[i - 1]} == = ]]; then\n"
           "            line[n]+=$word\n"
           "        else\n"
           "            line[++n]=$word\n"
           "        fi\n"
           "    done\n"
           "    word=${line[n]}\n"
           "    for ((i = 1; i < n; i++)); do\n"
           "        [[ $place == help && ${line[i]} != config ]] && place=''\n"
           "        case $place/${line[i]} in\n"
           "            " +
           steps(all) +
           ")\n"
           "                place=${place:+$place/}${line[i]} ;;\n"
           "            " +
           keys_place() +
           "/[!-]*)\n"
           "                place=" +
           keys_place() +
           "/PATTERN ;;\n"
           "        esac\n"
           "    done\n"
           "    case $word in\n"
           "        --*=*) option=${word%%=*} word=${word#*=} ;;\n"
           "        *) ((n > 0)) && option=${line[n - 1]} ;;\n"
           "    esac\n"
           "    case $place:$option in\n" +
           bash_values(all) +
           "        *)\n"
           "            case $place in\n" +
           bash_places(all) +
           "            esac\n"
           "            [[ $word == -* ]] && words=$options kind='' ;;\n"
           "    esac\n"
           "    COMPREPLY=()\n"
           "    [[ -n $words ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "    local IFS=$'\\n'\n"
           "    case $kind in\n"
           "        files) COMPREPLY+=($(compgen -f -- \"$word\")) ;;\n"
           "        folders) COMPREPLY+=($(compgen -d -- \"$word\")) ;;\n"
           "    esac\n"
           "    ((${#COMPREPLY[@]})) || return 0\n"
           "    [[ $kind == f* ]] && compopt -o filenames 2>/dev/null\n"
           "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n"
           "    [[ $word == *=* ]] && COMPREPLY=(\"${COMPREPLY[@]#\"${word%\"${word##*=}\"}\"}\")\n"
           "    return 0\n"
           "}\n"
           "complete -F _linnet linnet\n";
}

// ---- zsh ----

/// The action of an _arguments specification.
std::string zsh_offer(const Argument& argument) {
    switch (argument.offer) {
        case Offer::files:
            return "_files";
        case Offer::folders:
            return "_files -/";
        case Offer::words:
            break;
        case Offer::nothing:
            return " ";
    }
    std::string open, whole;
    for (const std::string& word : argument.words) (word.ends_with('=') ? open : whole) += " " + word;
    if (open.empty()) return "(" + whole.substr(1) + ")";
    return "{ compadd -S \"\" --" + open + "; compadd --" + whole + " }";
}

std::string zsh_text(const std::string& text) {
    return replaced(replaced(replaced(replaced(text, "\\", "\\\\"), "[", "\\["), "]", "\\]"), ":", "\\:");
}

std::string zsh_argument(const Argument& argument) {
    std::string value = ":" + zsh_text(argument.value) + ":" + zsh_offer(argument);
    if (argument.positional)
        return in_quotes((argument.repeats ? "*" : argument.required ? "" : ":") + value);
    std::string help = "[" + zsh_text(argument.help) + "]" + (argument.value.empty() ? "" : value);
    std::string exclude = argument.repeats ? "*" : "(" + joined(argument.names, " ") + ")";
    if (argument.names.back() == "--help" || argument.names.back() == "--version") exclude = "(- *)";
    std::string out;
    for (const std::string& name : argument.names) {
        // "=": after it or in the next word; "+": in the same word or the next.
        const char* how = argument.value.empty() ? "" : name.starts_with("--") ? "=" : "+";
        out += (out.empty() ? "" : " ") + in_quotes(exclude + name + how + help);
    }
    return out;
}

std::string zsh_script(const std::vector<Place>& all) {
    std::string out =
        "#compdef linnet\n"
        "# zsh completion for linnet, made by `linnet completion zsh`\n"
        "_linnet_commands() {\n"
        "    local -a list\n"
        "    case $1 in\n";
    for (const Place& place : all) {
        if (place.children.empty()) continue;
        out += "        " + (place.name.empty() ? "''" : place.name) + ") list=(\n";
        for (const Command* child : place.children)
            out += "            " +
                   in_quotes(last_word(*child) + ":" + replaced(child->summary, ":", "\\:")) + "\n";
        out += "        ) ;;\n";
    }
    out +=
        "    esac\n"
        "    _describe -t commands command list\n"
        "}\n"
        "_linnet() {\n"
        "    local place=\n"
        "    local -i i=2\n"
        "    while (( i < CURRENT )); do\n"
        "        [[ $place == help && $words[i] != config ]] && place=\n"
        "        case $place/$words[i] in\n"
        "            (" +
        steps(all) +
        ")\n"
        "                place=${place:+$place/}$words[i]\n"
        "                words[i]=()\n"
        "                (( CURRENT-- )) ;;\n"
        "            (*) (( i++ )) ;;\n"
        "        esac\n"
        "    done\n"
        "    case $place in\n";
    for (const Place& place : all) {
        out += "        (" + (place.name.empty() ? "''" : place.name) + ") _arguments -s -S";
        bool positional = false;
        for (const Argument& argument : place.arguments) {
            std::string spec = zsh_argument(argument);
            if (argument.positional && !place.children.empty() && !positional)
                spec = in_quotes("*:command or " + zsh_text(argument.value) + ":{ _linnet_commands " +
                                 place.name + "; " + zsh_offer(argument) + " }");
            positional |= argument.positional;
            out += " \\\n            " + spec;
        }
        if (!place.children.empty() && !positional)
            out += " \\\n            " + in_quotes("*:command:{ _linnet_commands " +
                                                   (place.name.empty() ? "\"\"" : place.name) + " }");
        out += " ;;\n";
    }
    return out +
           "    esac\n"
           "}\n"
           "# Sourced, or called the first time by the completion system.\n"
           "if [[ $funcstack[1] == _linnet ]]; then _linnet \"$@\"; else compdef _linnet linnet; fi\n";
}

// ---- fish ----

std::string fish_offer(const Argument& argument) {
    switch (argument.offer) {
        case Offer::files:
            return " -rF";
        case Offer::folders:
            return " -xa '(__fish_complete_directories)'";
        case Offer::words:
            return " -xa " + in_quotes(joined(argument.words, " "), true);
        case Offer::nothing:
            break;
    }
    return " -x";
}

std::string fish_script(const std::vector<Place>& all) {
    std::string out =
        "# fish completion for linnet, made by `linnet completion fish`\n"
        "function __linnet_at -a wanted\n"
        "    set -l place\n"
        "    for word in (commandline -opc)[2..-1]\n"
        "        test \"$place\" = help; and test \"$word\" != config; and set place\n"
        "        switch \"$place/$word\"\n"
        "            case " +
        replaced(steps(all), "|", " ") +
        "\n"
        "                set place (string trim -lc / -- \"$place/$word\")\n"
        "            case '" +
        keys_place() +
        "/-*'\n"
        "            case '" +
        keys_place() +
        "/*'\n"
        "                set place " +
        keys_place() +
        "/PATTERN\n"
        "        end\n"
        "    end\n"
        "    test \"$place\" = \"$wanted\"\n"
        "end\n"
        "complete -c linnet -e\n"
        "complete -c linnet -f\n";
    for (const Place& place : all) {
        const std::string begin = "complete -c linnet -n '__linnet_at \"" + place.name + "\"'";
        for (const Command* child : place.children)
            out += begin + " -a " + last_word(*child) + " -d " + in_quotes(child->summary, true) + "\n";
        for (const Argument& argument : place.arguments) {
            out += begin;
            if (argument.positional) {
                out += argument.offer == Offer::files ? " -F" : fish_offer(argument);
            } else {
                for (const std::string& name : argument.names)
                    out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
                if (!argument.value.empty()) out += fish_offer(argument);
            }
            out += " -d " + in_quotes(argument.help, true) + "\n";
        }
    }
    return out;
}

struct Shell {
    const char* name;
    std::string (*script)(const std::vector<Place>&);
};
constexpr Shell shells[] = {{"bash", bash_script}, {"zsh", zsh_script}, {"fish", fish_script}};

}  // namespace

Action add_completion(CLI::App& app, const Globals&) {
    auto wanted = std::make_shared<std::string>();
    add_choice(app, "SHELL", *wanted, names_of(shells), "bash, zsh or fish")->required();
    return [wanted, &app] {
        for (const Shell& shell : shells)
            if (shell.name == *wanted) write_stdout(shell.script(places(root_of(app))));
        return 0;
    };
}

}  // namespace linnet
