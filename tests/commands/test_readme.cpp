// README.md tells the truth: its commands run, and it names them all.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "commands/commands.h"
#include "commands/help.h"
#include "commands/tiny.h"
#include "model/architectures.h"
#include "support.h"
#include "train/task/config.h"

using namespace linnet;
using namespace linnet::test;

namespace {

std::filesystem::path root() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
}

/// The fenced sh block after the line `mark`.
std::string block_after(const std::string& readme, const std::string& mark) {
    std::size_t at = readme.find(mark + "\n```sh\n");
    REQUIRE_MESSAGE(at != std::string::npos, mark);
    std::size_t begin = at + mark.size() + 7;
    return readme.substr(begin, readme.find("```", begin) - begin);
}

/// Runs the block's lines in a folder with a text to learn from; linnet is on the PATH.
void run_block(const std::string& block) {
    Scratch scratch;
    std::string text;
    for (int i = 0; i < 20; i++) text += counting_text();
    write_text(scratch / "my.txt", text);
    std::istringstream lines(block);
    for (std::string line; std::getline(lines, line);) {
        CAPTURE(line);
        Outcome outcome =
            run_shell("set -e -o pipefail; PATH=${LINNET%/*}:$PATH; cd '" + scratch.path + "'\n" + line);
        CHECK_MESSAGE(outcome.exit == 0, outcome.err);
        CHECK((!outcome.out.empty() || has(line, "train") || has(line, "tune") || has(line, "merge") ||
               has(line, "convert")));
    }
}

/// The keys of models/README.md's table and what stands in brackets behind each. A row's keys begin as its
/// first one does: `train.clip` [1] `skip_outliers` [0].
std::map<std::string, std::string> keys_of_readme() {
    const std::string readme = read_text((root() / "models/README.md").string());
    std::istringstream lines(readme.substr(readme.find("\n## Keys\n")));
    std::map<std::string, std::string> keys;
    for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("| `")) continue;
        const std::string cell = line.substr(2, line.find(" | ") - 2);
        std::string before;
        for (std::size_t end, at = 0; (at = cell.find('`', at)) != cell.npos; at = end + 1) {
            end = cell.find('`', at + 1);
            REQUIRE_MESSAGE(end != cell.npos, line);
            const std::string key = before + cell.substr(at + 1, end - at - 1);
            if (before.empty()) before = key.substr(0, key.rfind('.') + 1);
            const bool bracket = cell.compare(end + 1, 2, " [") == 0;
            keys[key] = bracket ? cell.substr(end + 3, cell.find(']', end) - end - 3) : "";
        }
    }
    return keys;
}

}  // namespace

TEST_CASE("models/README.md has every key, and the defaults that it tells are those of the program") {
    RunConfig config;
    const std::map<std::string, std::string> keys = keys_of_readme();
    for (const Field& field : run_fields(config)) {
        CAPTURE(field.key);
        const auto found = keys.find(field.key);
        REQUIRE(found != keys.end());
        const std::string told = found->second;
        if (field.key.starts_with("model.") && told.empty()) continue;
        const nlohmann::json value = nlohmann::json::parse(told, nullptr, false);
        CHECK((value.is_discarded() ? nlohmann::json(told) : value) == nlohmann::json(value_of(field)));
    }
}

TEST_CASE("README's commands run on a text of one's own" * doctest::test_suite("long")) {
    run_block(block_after(read_text((root() / "README.md").string()), "<!-- tested -->"));
}

TEST_CASE("README's commands run on the built-in model") {
    if (!std::filesystem::exists(root() / "models/shakespeare.gguf"))
        return;  // a build without one says so itself
    for (const char* mark : {"<!-- tested, built-in model -->", "<!-- tested, many texts -->",
                             "<!-- tested, fine-tuning -->", "<!-- tested, samplers and grammars -->"})
        run_block(block_after(read_text((root() / "README.md").string()), mark));
}

TEST_CASE("README's sample is what its command prints, on every instruction set") {
    if (!std::filesystem::exists(root() / "models/shakespeare.gguf")) return;
    const std::string readme = read_text((root() / "README.md").string()),
                      mark = "```text\n$ linnet generate";
    const std::size_t begin = readme.find(mark);
    REQUIRE(begin != std::string::npos);
    const std::size_t line = begin + std::string("```text\n$ ").size(), end = readme.find("\n", line) + 1;
    const std::string command = readme.substr(line, end - line),
                      printed = readme.substr(end, readme.find("```", end) - end);
    std::istringstream words(run_linnet({"--version"}).out);
    for (std::string word; words >> word && word != "here:";) {
    }
    int sets = 0;
    for (std::string name; words >> name && name != "in"; sets++) {
        if (name.ends_with(';')) name.pop_back();
        CAPTURE(name);
        const Outcome outcome = run_shell("PATH=${LINNET%/*}:$PATH LINNET_ISA=" + name + " " + command);
        CHECK(outcome.exit == 0);
        CHECK(outcome.out == printed);
    }
    CHECK(sets > 0);
}

TEST_CASE("README names every command and every exit code") {
    std::string readme = read_text((root() / "README.md").string());
    for (const Command& command : commands())
        CHECK_MESSAGE(has(readme, "`linnet " + std::string(command.name) + "`"), command.name);
    for (const ExitCode& exit : exit_codes())
        CHECK_MESSAGE(has(readme, "\n| " + std::string(exit.code) + " |"), exit.code);
    CHECK(has(readme, "./tools/quickstart.sh"));
    CHECK(has(readme, "make test"));
}

TEST_CASE("README says which architectures other runtimes know") {
    const std::string readme = read_text((root() / "README.md").string());
    for (const Architecture* a : architectures())
        if (a != architectures().back()) CHECK_MESSAGE(has(readme, "\n| `" + a->name + "` |"), a->name);
}

TEST_CASE("README's links lead somewhere") {
    std::string readme = read_text((root() / "README.md").string());
    for (std::size_t at = readme.find("]("); at != std::string::npos; at = readme.find("](", at + 1)) {
        std::string target = readme.substr(at + 2, readme.find(')', at) - at - 2);
        if (!has(target, "://")) CHECK_MESSAGE(std::filesystem::exists(root() / target), target);
    }
}
