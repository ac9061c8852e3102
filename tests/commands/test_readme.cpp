// README.md tells the truth: its commands run, and it names them all.
#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "commands/commands.h"
#include "commands/tiny.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

std::filesystem::path root() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path();
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
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
        CHECK((!outcome.out.empty() || has(line, "train")));
    }
}

}  // namespace

TEST_CASE("README's commands run on a text of one's own") {
    run_block(block_after(read_text((root() / "README.md").string()), "<!-- tested -->"));
}

TEST_CASE("README's commands run on the built-in model") {
    std::string block =
        block_after(read_text((root() / "README.md").string()), "<!-- tested, built-in model -->");
    if (!std::filesystem::exists(root() / "models/shakespeare.gguf"))
        return;  // a build without one says so itself
    run_block(block);
}

TEST_CASE("README names every command and every exit code, and the rooms explain themselves") {
    std::string readme = read_text((root() / "README.md").string());
    for (const Command& command : commands())
        CHECK_MESSAGE(has(readme, "`linnet " + std::string(command.name) + "`"), command.name);
    for (const char* code : {"| 0 |", "| 1 |", "| 2 |", "| 3 |", "| 4 |", "| 5 |", "| 129, 130, 143 |"})
        CHECK(has(readme, code));
    CHECK(has(readme, "./tools/quickstart.sh"));
    CHECK(has(readme, "make test"));
}

TEST_CASE("README's links lead somewhere") {
    std::string readme = read_text((root() / "README.md").string());
    for (std::size_t at = readme.find("]("); at != std::string::npos; at = readme.find("](", at + 1)) {
        std::string target = readme.substr(at + 2, readme.find(')', at) - at - 2);
        if (!has(target, "://")) CHECK_MESSAGE(std::filesystem::exists(root() / target), target);
    }
}
