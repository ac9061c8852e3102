// Promises that hold for every command, by walking the table.
#include <doctest/doctest.h>

#include <sstream>

#include "commands/commands.h"
#include "commands/tiny.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

std::vector<std::string> words(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> out;
    for (std::string word; in >> word;) out.push_back(word);
    return out;
}

std::vector<std::string> with(std::vector<std::string> args, const std::string& last) {
    args.push_back(last);
    return args;
}

std::vector<std::string> with_first(const std::string& first, std::vector<std::string> args) {
    args.insert(args.begin(), first);
    return args;
}

}  // namespace

TEST_CASE("every command has help: its line, its options, an example of itself") {
    for (const Command& command : commands()) {
        CAPTURE(command.name);
        Outcome help = run_linnet(with(words(command.name), "--help"));
        CHECK(help.exit == 0);
        CHECK(help.err.empty());
        CHECK(has(help.out, command.summary));
        CHECK(has(help.out, "usage: linnet " + std::string(command.name)));
        std::size_t example = help.out.find("\nexample:\n");
        REQUIRE(example != std::string::npos);
        CHECK(has(help.out.substr(example), "linnet " + std::string(command.name)));
        CHECK(has(help.out, "--threads N"));
        // `linnet help NAME` is the same page.
        CHECK(run_linnet(with_first("help", words(command.name))).out == help.out);
    }
}

TEST_CASE("help says of a command what that command takes") {
    const auto help = [](const std::string& command) {
        std::string line;
        for (const std::string& word : words(run_linnet(with(words(command), "--help")).out))
            line += word + " ";
        return line;
    };
    CHECK(has(help("train"), "a folder with one subfolder of pictures"));
    CHECK(has(help("bench train"), "a folder with one subfolder of pictures"));
    CHECK_FALSE(has(help("plan"), "pictures"));
    CHECK(has(help("train"), "JSON keys of pairs, classes, tags or prompts with answers,"));
    CHECK(has(help("eval"), "JSON keys of pairs, classes or tags,"));
    CHECK_FALSE(has(help("eval"), "prompt,completion"));
    for (const char* command : {"convert", "tokenizer train"})
        CHECK(has(help(command), "with K, M or G (powers of 1000)"));
    CHECK(has(help("bench machine"), "memory_read_streams, threads, isa"));
    for (const char* command : {"convert", "merge", "report", "tokenize", "tokenizer train", "quantize",
                                "embed", "inspect attention"})
        CHECK_MESSAGE(has(help(command), "replace OUT if it exists"), command);
}

TEST_CASE("help takes commands and nothing else") {
    const Outcome whole = run_linnet({"help"});
    CHECK(whole.out == run_linnet({"--help"}).out);
    CHECK(has(whole.out, "linnet help [COMMAND"));
    for (const auto& [rest, told] : {std::pair<const char*, const char*>{"trian", "did you mean train?"},
                                     {"train nosuch", "expected no further word, got 'nosuch'"},
                                     {"bench trian", "did you mean train?"},
                                     {"bench train x", "expected no further word, got 'x'"}}) {
        CAPTURE(rest);
        const Outcome outcome = run_linnet(with_first("help", words(rest)));
        CHECK(outcome.exit == 2);
        CHECK(outcome.out.empty());
        CHECK(is_one_error_line(outcome.err));
        CHECK_MESSAGE(has(outcome.err, told), outcome.err);
    }
}

TEST_CASE("commands that need an encoder, which the built-in model is not, want a model") {
    for (const char* command : {"embed", "predict"}) {
        CAPTURE(command);
        const Outcome outcome = run_linnet({command, "-p", "one"});
        CHECK(outcome.exit == 2);
        CHECK(has(outcome.err, "--model: expected a value, got none"));
        const std::string help = run_linnet({command, "--help"}).out;
        CHECK(has(help, "usage: linnet " + std::string(command) + " --model MODEL"));
        CHECK_FALSE(has(help, "built-in"));
    }
}

TEST_CASE("every option that help shows has a long name") {
    for (const Command& command : commands()) {
        std::istringstream help(run_linnet(with(words(command.name), "--help")).out);
        int short_names = 0;
        for (std::string line; std::getline(help, line);)
            if (line.starts_with("  -")) {
                short_names++;
                CHECK_MESSAGE(has(line, "--"), command.name << ": " << line);
            }
        CHECK_MESSAGE(short_names > 0, command.name);  // -h at least
    }
}

TEST_CASE("a command mistyped by one letter is suggested") {
    for (const Command& command : commands()) {
        std::vector<std::string> typed = words(command.name);
        std::string right = typed.back();
        if (std::string(command.name).starts_with("inspect ")) continue;  // `inspect lgits` names a file
        typed.back().erase(1, 1);
        CAPTURE(typed.back());
        Outcome outcome = run_linnet(typed);
        CHECK(outcome.exit == 2);
        CHECK(outcome.out.empty());
        CHECK(is_one_error_line(outcome.err));
        CHECK(has(outcome.err, "did you mean " + right + "?"));
    }
}

TEST_CASE("a file to inspect that is no file but nearly a command is answered with the command") {
    Outcome outcome = run_linnet({"inspect", "logit", "-p", "x"});
    CHECK(outcome.exit == 2);
    outcome = run_linnet({"inspect", "logit"});
    CHECK(outcome.exit == 4);
    CHECK(has(outcome.err, "logit: No such file or directory (did you mean linnet inspect logits?)"));
}

TEST_CASE("an unknown option is named, with the nearest, before anything else is complained about") {
    for (const Command& command : commands()) {
        if (!command.add) continue;
        CAPTURE(command.name);
        Outcome outcome = run_linnet(with(words(command.name), "--theads=3"));
        CHECK(outcome.exit == 2);
        CHECK(outcome.out.empty());
        CHECK(is_one_error_line(outcome.err));
        CHECK(has(outcome.err, "'--theads' (did you mean --threads?)"));
    }
}

TEST_CASE("bare linnet greets with commands to try; --help lists all of them; --version tells the build") {
    Outcome bare = run_linnet({});
    CHECK(bare.exit == 0);
    CHECK(has(bare.out, "linnet generate -p"));
    CHECK(has(bare.out, "linnet train --data"));
    Outcome help = run_linnet({"--help"});
    CHECK(help.exit == 0);
    for (const Command& command : commands())
        if (!has(command.name, " ")) CHECK(has(help.out, "  " + std::string(command.name) + " "));
    for (const char* key : {"linnet 0.", "revision", "compiler", "built:", "usable here:", "scalar"})
        CHECK(has(run_linnet({"--version"}).out, key));
    CHECK(run_linnet({"train", "--version"}).out == run_linnet({"--version"}).out);
}

TEST_CASE("global options stand before or after the command") {
    for (const auto& args : {std::vector<std::string>{"--isa", "scalar", "--version"},
                             std::vector<std::string>{"bench", "--isa", "scalar", "--version"}})
        CHECK(run_linnet(args).exit == 0);
    CHECK(run_linnet({"--threads", "0", "eval", "--file", "x"}).exit == 2);
    CHECK(run_linnet({"eval", "--file", "x", "--threads", "0"}).exit == 2);
    CHECK(run_linnet({"eval", "--file", "x", "--isa", "sse9"}).exit == 2);
    Outcome environment = run_shell("LINNET_ISA=sse9 \"$LINNET\" eval --file x");
    CHECK(environment.exit == 2);
    CHECK(has(environment.err, "LINNET_ISA: expected one of scalar"));
}
