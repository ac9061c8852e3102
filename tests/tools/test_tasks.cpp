// The scripts that make data for recipes, and what their results are compared with.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;
namespace fs = std::filesystem;

namespace {

/// The shell's word for a script of the checkout; empty (and the test skipped) where there is none.
std::string script(const std::string& name) {
    const fs::path tools = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "tools";
    if (fs::exists(tools / name)) return "'" + (tools / name).string() + "'";
    skip("needs the checkout's tools/");
    return "";
}

}  // namespace

TEST_CASE("selective copying: prompts scatter the symbols that completions repeat in their order") {
    const std::string make = script("selective_copying.sh");
    if (make.empty()) return;
    for (const bool mixed : {false, true}) {
        CAPTURE(mixed);
        const Outcome made = run_shell(make + " 30 7" + (mixed ? " mixed" : ""));
        REQUIRE(made.exit == 0);
        std::istringstream lines(made.out);
        std::string line;
        int count = 0;
        bool shorter = false;
        while (std::getline(lines, line)) {
            count++;
            const auto record = nlohmann::json::parse(line);
            std::string prompt = record["prompt"], answer = record["completion"], symbols;
            REQUIRE(prompt.ends_with("|"));
            prompt.pop_back();
            for (char c : prompt)
                if (c != '.') symbols += c;
            CHECK(symbols == answer);
            shorter |= prompt.size() < 256;
            CHECK((mixed ? prompt.size() <= 256 && answer.size() <= 16
                         : prompt.size() == 256 && answer.size() == 16));
        }
        CHECK(count == 30);
        CHECK(shorter == mixed);
        CHECK(run_shell(make + " 30 7" + (mixed ? " mixed" : "")).out == made.out);
        CHECK(run_shell(make + " 30 8" + (mixed ? " mixed" : "")).out != made.out);
    }
    CHECK(run_shell(make + " 30 7 others").exit == 2);
    CHECK(run_shell(make).exit == 2);
}

TEST_CASE("repeated letters: every line is some letters twice") {
    const std::string make = script("repeated_letters.sh");
    if (make.empty()) return;
    const Outcome made = run_shell(make + " 200 3");
    REQUIRE(made.exit == 0);
    std::istringstream lines(made.out);
    std::size_t count = 0, shortest = 99, longest = 0;
    for (std::string line; std::getline(lines, line); count++) {
        const std::size_t half = line.size() / 2;
        CHECK(line.substr(0, half) == line.substr(half));
        shortest = std::min(shortest, half), longest = std::max(longest, half);
    }
    CHECK(count == 200);
    CHECK(shortest == 5);
    CHECK(longest == 22);
    CHECK(run_shell(make + " 200 3").out == made.out);
    CHECK(run_shell(make + " 200 4").out != made.out);
    CHECK(run_shell(make).exit == 2);
}

TEST_CASE("guesses without a model: the commonest token, and the one that mostly follows") {
    const std::string guess = script("guess_tokens.sh");
    if (guess.empty()) return;
    Workplace work;
    write_text(work.s / "train", "abaaacabaa");
    write_text(work.s / "test", "abazab");
    write_text(work.s / "config", tiny_config());
    REQUIRE(work("$LINNET train config --data text --out run --steps 1 --threads 1 --quiet --set "
                 "tokenizer.kind=byte")
                .exit == 0);
    const Outcome guessed = work(guess + " run/model.gguf train test");
    CHECK(guessed.err == "");
    // Tokens are bytes. What follows the first is guessed, b a z a b: always a, also behind a (3 of 6 times),
    // b and z, which never came.
    CHECK(guessed.out == "unigram 0.4000  bigram 0.4000  tokens 5\n");
    write_text(work.s / "train", "abacadab");  // behind a mostly b
    CHECK(work(guess + " run/model.gguf train test").out == "unigram 0.4000  bigram 0.8000  tokens 5\n");
    CHECK(work(guess + " run/model.gguf train").exit == 2);
    CHECK(work(guess + " run/model.gguf train nothing").exit != 0);
}
