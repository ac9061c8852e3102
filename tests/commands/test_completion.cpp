// Completions and manual pages say what --help says: these tests walk the table of commands, read each
// command's help, and ask the shells themselves.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "commands/commands.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

struct Shown {
    std::vector<std::string> options;                                       // every name: "-m", "--model"
    std::vector<std::pair<std::string, std::vector<std::string>>> choices;  // of a long name
};

std::vector<std::string> words(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> out;
    for (std::string word; in >> word;) out.push_back(word);
    return out;
}

bool installed(const std::string& program) {
    return run_shell("command -v " + program + " >/dev/null").exit == 0;
}

/// The option lines of a command's --help; "" is linnet itself.
Shown shown(const std::string& command) {
    std::vector<std::string> arguments = words(command);
    arguments.emplace_back("--help");
    std::istringstream help(run_linnet(arguments).out);
    Shown all;
    for (std::string line; std::getline(help, line);) {
        if (!line.starts_with("  -") && !line.starts_with("      --")) continue;
        for (std::string word : words(line)) {
            if (word.ends_with(',')) word.pop_back();
            if (word.starts_with('-')) {
                all.options.push_back(word);
            } else {
                if (!has(word, "|")) break;
                std::istringstream parts(word);
                all.choices.push_back({all.options.back(), {}});
                for (std::string part; std::getline(parts, part, '|');)
                    all.choices.back().second.push_back(part);
                break;
            }
            if (line.find(word + " ") == line.npos) break;
            if (line.find(word + "  ") != line.npos) break;  // the explanation follows
        }
    }
    return all;
}

/// Every command, and linnet itself.
std::vector<std::string> places() {
    std::vector<std::string> all{""};
    for (const Command& command : commands()) all.emplace_back(command.name);
    return all;
}

std::string after_linnet(const std::string& place, const std::string& rest) {
    return "linnet " + place + (place.empty() ? "" : " ") + rest;
}

/// Runs `ask` (shell text that completes $line) on many lines in one shell, and gives the replies of each.
class Completer {
  public:
    Completer(std::string shell, std::string ask) : shell_(std::move(shell)), ask_(std::move(ask)) {
        std::filesystem::create_directories(scratch_ / "a folder");
        write_text(scratch_ / "text.txt", "x");
        write_text(scratch_ / ("completion." + shell_), run_linnet({"completion", shell_}).out);
    }

    /// The replies to each line, a reply per line of text with a line feed before and after.
    std::vector<std::string> complete(const std::vector<std::string>& lines) const {
        std::string script = "cd '" + scratch_.path + "'\n";
        if (shell_ == "bash") script += "set -u\n";
        script += "source ./completion." + shell_ + "\n";
        for (const std::string& line : lines) script += "echo '=='\n" + replaced_line(line);
        write_text(scratch_ / "ask", script);
        Outcome outcome = run_shell(shell_ + (shell_ == "fish" ? " --no-config" : " --norc") + " '" +
                                    (scratch_ / "ask") + "'");
        CHECK_MESSAGE(outcome.err.empty(), outcome.err);
        std::vector<std::string> replies;
        std::istringstream out(outcome.out);
        for (std::string line; std::getline(out, line);) {
            if (line == "==")
                replies.emplace_back("\n");
            else if (!replies.empty())
                replies.back() += line.substr(0, line.find('\t')) + "\n";
        }
        REQUIRE(replies.size() == lines.size());
        return replies;
    }

  private:
    std::string replaced_line(const std::string& line) const {
        std::string text = ask_;
        text.replace(text.find("LINE"), 4, line);
        return text + "\n";
    }
    std::string shell_, ask_;
    Scratch scratch_;
};

void check_shell(const Completer& completer) {
    struct Question {
        std::string line;
        std::vector<std::string> expected, absent;
    };
    std::vector<Question> questions;
    for (const std::string& place : places()) {
        const Shown help = shown(place);
        CHECK(help.options.size() >= 5);  // at least those of every command
        std::vector<std::string> long_names, short_names;
        for (const std::string& name : help.options)
            (name.starts_with("--") ? long_names : short_names).push_back(name);
        questions.push_back({after_linnet(place, "--"), long_names, {}});
        questions.push_back({after_linnet(place, "-"), short_names, {}});
        for (const auto& [option, choices] : help.choices)
            questions.push_back({after_linnet(place, option + " "), choices, {"text.txt", "--quiet"}});
    }
    for (const Command& command : commands()) {
        std::string name = command.name;
        std::size_t blank = name.rfind(' ');
        std::string parent = blank == name.npos ? "" : name.substr(0, blank);
        questions.push_back({after_linnet(parent, ""), {name.substr(blank + 1)}, {}});
    }
    questions.push_back({"linnet generate -m ", {"text.txt", "a folder/"}, {"--quiet"}});
    questions.push_back({"linnet generate -p ", {}, {"text.txt"}});
    questions.push_back({"linnet tokenize te", {"text.txt"}, {}});
    questions.push_back({"linnet train --data te", {"text.txt"}, {}});
    questions.push_back({"linnet corpus -o ", {"a folder/"}, {"text.txt"}});
    questions.push_back({"linnet --threads 2 bench tr", {"train"}, {}});
    questions.push_back({"linnet train --set model.ffn.w", {"model.ffn.width="}, {}});
    questions.push_back({"linnet he", {"help"}, {}});
    questions.push_back({"linnet help be", {"bench"}, {}});
    questions.push_back({"linnet help bench tr", {"train"}, {}});
    questions.push_back({"linnet help con", {"config", "convert"}, {}});
    questions.push_back({"linnet con", {"convert"}, {"config"}});
    questions.push_back({"linnet help bench con", {}, {"config"}});
    questions.push_back({"linnet help config train.sched", {"train.schedule.kind"}, {"train.batch"}});
    questions.push_back({"linnet help config ", {"train.batch"}, {}});
    questions.push_back({"linnet help config train.batch ", {}, {"train.batch", "train.steps"}});
    questions.push_back({"linnet help config train.batch train.st", {}, {"train.steps"}});
    questions.push_back({"linnet eval --isa sc", {"scalar"}, {}});
    std::vector<std::string> lines;
    for (const Question& question : questions) lines.push_back(question.line);
    const std::vector<std::string> replies = completer.complete(lines);
    for (std::size_t i = 0; i < lines.size(); i++) {
        CAPTURE(lines[i]);
        CAPTURE(replies[i]);
        for (const std::string& word : questions[i].expected)
            CHECK_MESSAGE(has(replies[i], "\n" + word + "\n"), word);
        for (const std::string& word : questions[i].absent)
            CHECK_MESSAGE(!has(replies[i], "\n" + word + "\n"), word);
    }
}

/// Text that man would show: escapes of roff taken away.
std::string unescaped(std::string page) {
    for (auto [escape, text] : {std::pair{"\\-", "-"},
                                {"\\fB", ""},
                                {"\\fI", ""},
                                {"\\fR", ""},
                                {"\\(aq", "'"},
                                {"\\(ga", "`"},
                                {"\\(ha", "^"},
                                {"\\(ti", "~"},
                                {"\\e", "\\"}})
        for (std::size_t at = 0; (at = page.find(escape, at)) != page.npos;)
            page.replace(at, std::string(escape).size(), text);
    return page;
}

}  // namespace

TEST_CASE("bash completes every command, option, choice and file name") {
    // As readline does, words are divided at spaces and '='; folders get the slash that -o filenames adds.
    check_shell(Completer("bash",
                          "line='LINE'; COMP_WORDS=($line); [[ $line == *' ' ]] && COMP_WORDS+=('')\n"
                          "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=(); _linnet\n"
                          "for reply in ${COMPREPLY[@]+\"${COMPREPLY[@]}\"}; do\n"
                          "    [[ -d $reply ]] && reply+=/; printf '%s\\n' \"$reply\"\n"
                          "done"));
}

TEST_CASE("bash completes values after '=', which it takes for a word of its own") {
    Scratch scratch;
    write_text(scratch / "completion", run_linnet({"completion", "bash"}).out);
    auto complete = [&](const std::string& array) {
        return run_shell("source '" + (scratch / "completion") + "'; COMP_WORDS=(" + array +
                         "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _linnet; echo \"${COMPREPLY[*]}\"")
            .out;
    };
    CHECK(complete("linnet generate --format = ''") == "text ids jsonl\n");
    CHECK(complete("linnet generate --format =") == "text ids jsonl\n");
    CHECK(complete("linnet generate --format = js") == "jsonl\n");
    CHECK(complete("linnet train --isa = sc") == "scalar\n");
    CHECK(complete("linnet train --set tokenizer.kind = b") == "bpe byte\n");
    CHECK(complete("linnet train --set = tokenizer.kind = b") == "bpe byte\n");
}

TEST_CASE("fish completes every command, option, choice and file name") {
    if (!installed("fish")) return skip("needs fish");
    check_shell(Completer("fish", "complete -C 'LINE'"));
}

TEST_CASE("zsh's completion names every option of every command, and zsh can read it") {
    const std::string script = run_linnet({"completion", "zsh"}).out;
    for (const std::string& place : places()) {
        std::string name = place.empty() ? "''" : place;
        std::replace(name.begin(), name.end(), ' ', '/');
        CAPTURE(name);
        std::size_t begin = script.find("(" + name + ") _arguments");
        REQUIRE(begin != script.npos);
        const std::string part = script.substr(begin, script.find(" ;;\n", begin) - begin);
        const Shown help = shown(place);
        for (const std::string& option : help.options)
            CHECK_MESSAGE((has(part, ")" + option) || has(part, "*" + option)), option);
        for (const auto& [option, choices] : help.choices)
            for (const std::string& choice : choices)
                CHECK_MESSAGE((has(part, choice + " ") || has(part, choice + ")")), choice);
    }
    if (!installed("zsh")) return skip("needs zsh");
    Scratch scratch;
    write_text(scratch / "_linnet", script);
    Outcome outcome = run_shell("zsh -f -n '" + (scratch / "_linnet") + "'");
    CHECK_MESSAGE((outcome.exit == 0 && outcome.err.empty()), outcome.err);
}

TEST_CASE("manual pages name every command, option and choice, and groff reads them without a warning") {
    const std::vector<std::string> names = words(run_linnet({"manual", "--list"}).out);
    CHECK(names.size() == places().size());
    const std::string root = unescaped(run_linnet({"manual"}).out);
    Scratch scratch;
    for (const std::string& place : places()) {
        std::vector<std::string> arguments = words(place);
        arguments.insert(arguments.begin(), "manual");
        const Outcome page = run_linnet(arguments);
        CAPTURE(place);
        REQUIRE(page.exit == 0);
        std::string name = place.empty() ? "linnet" : "linnet-" + place;
        std::replace(name.begin(), name.end(), ' ', '-');
        CHECK(std::find(names.begin(), names.end(), name) != names.end());
        CHECK(run_linnet({"manual", name}).out == page.out);
        if (!place.empty() && !has(place, " ")) CHECK(has(root, name + "(1)"));
        const Shown help = shown(place);
        for (const std::string& option : help.options) {
            const std::string text = "\n" + unescaped(page.out);
            CHECK_MESSAGE((has(text, "\n" + option + "\n") || has(text, "\n" + option + " ") ||
                           has(text, "\n" + option + ",") || has(text, ", " + option + "\n") ||
                           has(text, ", " + option + " ")),
                          option);
        }
        for (const auto& [option, choices] : help.choices)
            for (const std::string& choice : choices) CHECK_MESSAGE(has(unescaped(page.out), choice), choice);
        write_text(scratch / (name + ".1"), page.out);
    }
    if (!installed("groff")) return skip("needs groff");
    Outcome read = run_shell("LC_ALL=C.UTF-8 groff -man -ww -Tutf8 -K utf8 -z '" + scratch.path + "'/*.1");
    CHECK_MESSAGE((read.exit == 0 && read.err.empty()), read.err);
}

TEST_CASE("manual pages say what is installed for a command, and where it keeps what") {
    auto page = [](const char* command) { return unescaped(run_linnet({"manual", command}).out); };
    CHECK(has(page("train"), "\n.SH FILES\n"));
    CHECK(has(page("train"), "share/doc/linnet/models/\n"));
    CHECK(has(page("chat"), "share/doc/linnet/models/templates/\n"));
    CHECK_FALSE(has(page("eval"), "\n.SH FILES\n"));
    CHECK(has(page("linnet"), "XDG_STATE_HOME\n"));
    for (const std::string& said : {page("chat"), run_linnet({"chat", "--help"}).out}) {
        CHECK(has(said, "/help"));
        CHECK(has(said, "~/.local/state/linnet/chat_history"));
    }
}

TEST_CASE("a page or a shell that does not exist is answered with the nearest") {
    Outcome page = run_linnet({"manual", "trian"});
    CHECK(page.exit == 2);
    CHECK(has(page.err, "got 'trian' (did you mean train?)"));
    CHECK(has(run_linnet({"manual", "linnet-trian"}).err, "got 'linnet-trian' (did you mean train?)"));
    CHECK(has(run_linnet({"manual", "no", "such"}).err, "got 'no such'\n"));
    Outcome shell = run_linnet({"completion", "fisch"});
    CHECK(shell.exit == 2);
    CHECK(has(shell.err, "did you mean fish?"));
}
