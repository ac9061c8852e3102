#include "support.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace linnet::test {
namespace {

int skip_count = 0;

std::string program_folder() {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path().string();
}

std::string quoted(const std::string& text) {
    std::string out = "'";
    for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out + "'";
}

}  // namespace

std::optional<std::string> shared_data(const std::string& name) {
    const char* folder = getenv("LINNET_SHARED");
    std::string path = (folder ? std::string(folder) : program_folder() + "/../../shared") + "/" + name;
    if (std::filesystem::exists(path)) return path;
    skip("needs " + name);
    return std::nullopt;
}

int skipped() {
    return skip_count;
}

void skip(const std::string& why) {
    std::printf("skipped: %s\n", why.c_str());
    skip_count++;
}

Scratch::Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "linnet-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("no scratch folder");
    path = pattern;
}

Scratch::~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
}

Outcome run_shell(const std::string& line) {
    Scratch scratch;
    std::string script = "LINNET=" + quoted(program_folder() + "/linnet") + "; export LINNET\n" + line + "\n";
    write_text(scratch / "script", script);
    std::string command = "bash " + quoted(scratch / "script") + " >" + quoted(scratch / "out") + " 2>" +
                          quoted(scratch / "err") + " </dev/null";
    int status = std::system(command.c_str());
    Outcome outcome;
    outcome.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.out = read_text(scratch / "out");
    outcome.err = read_text(scratch / "err");
    return outcome;
}

Outcome run_linnet(const std::vector<std::string>& arguments, const std::string& input) {
    Scratch scratch;
    write_text(scratch / "in", input);
    std::string line = "\"$LINNET\"";
    for (const std::string& argument : arguments) line += " " + quoted(argument);
    return run_shell(line + " <" + quoted(scratch / "in"));
}

std::string refusal(const std::function<void()>& act, Exit exit) {
    try {
        act();
    } catch (const Error& error) {
        CHECK(error.exit() == exit);
        return error.what();
    }
    return "accepted";
}

std::string killed_at(const std::string& command, const std::string& text, const std::string& file) {
    return command + " & pid=$!; while kill -0 $pid 2>/dev/null && ! grep -qF " + quoted(text) + " " +
           quoted(file) +
           " 2>/dev/null; do sleep 0.002; done; kill -9 $pid 2>/dev/null; wait $pid 2>/dev/null; true";
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

double number_of(const std::string& text, const std::string& key) {
    const std::size_t at = ("\n" + text).find("\n" + key + " ");
    if (at == std::string::npos) throw std::runtime_error("no line " + key + " in: " + text);
    return std::stod(text.substr(at + key.size() + 1));
}

void write_text(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
}

std::string read_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

}  // namespace linnet::test
