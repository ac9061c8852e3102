// Bad input, of every kind that a command takes: one line, the right exit code, nothing on stdout.
#include <doctest/doctest.h>

#include <filesystem>

#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;

namespace {

void refused(const std::vector<std::string>& arguments, int exit, const std::string& message,
             const std::string& input = {}) {
    std::string line;
    for (const std::string& argument : arguments) line += argument + " ";
    CAPTURE(line);
    Outcome outcome = run_linnet(arguments, input);
    CHECK(outcome.exit == exit);
    CHECK(outcome.out.empty());
    CHECK_MESSAGE(is_one_error_line(outcome.err), outcome.err);
    CHECK_MESSAGE(has(outcome.err, message), outcome.err);
}

}  // namespace

TEST_CASE("a wrong command line is refused with exit code 2 and one line") {
    refused({"generate", "-n", "abc"}, 2, "--tokens: expected a whole number of at least -1, got 'abc'");
    refused({"generate", "-n", "1e3"}, 2, "got '1e3'");
    refused({"generate", "-n", "99999999999999999999"}, 2, "--tokens: expected a whole number");
    refused({"generate", "-n", ""}, 2, "got ''");
    refused({"generate", "-n"}, 2, "--tokens: expected");
    refused({"generate", "--temp", "-1"}, 2, "--temp: expected a number of at least 0, got '-1'");
    refused({"generate", "--temp", "1e300"}, 2, "--temp: expected a number from 0 to 1e+09, got '1e300'");
    for (const std::string seed : {"9223372036854775808", "99999999999999999999"})
        refused({"generate", "--seed", seed}, 2,
                "--seed: expected a whole number from 0 to 9200000000000000000, got '" + seed + "'");
    refused({"generate", "--temp", "nan"}, 2, "got 'nan'");
    refused({"generate", "--top-p", "1.5"}, 2, "--top-p: expected a number from 0 to 1, got '1.5'");
    refused({"generate", "--format", "txt"}, 2, "(did you mean text?)");
    refused({"generate", "-p", "a", "-f", "b"}, 2, "both");
    refused({"generate", "more"}, 2, "expected no further argument, got 'more'");
    refused({"generate", "-m", ""}, 2, "--model: expected a value, got an empty text");
    refused({"--threads", "two", "generate"}, 2,
            "--threads: expected a whole number from 1 to 1024, got 'two'");
    refused({"eval"}, 2, "--file: expected a value, got none");
    for (const char* size : {"999K", "1X", "512m", "0G", "M", "nan"})
        refused({"tokenizer", "train", "text", "-o", "x.json", "--mem", size}, 2,
                "--mem: expected a size of at least 1M, such as 512M or 4G, got '" + std::string(size) + "'");
    refused({"eval", "--file", "x", "--ctx", "1"}, 2, "--ctx: expected a whole number of at least 2");
    refused({"inspect"}, 2, "FILE: expected a file to inspect, got none");
    refused({"inspect", "a", "b"}, 2, "expected no further argument, got 'b'");
    refused({"train", "--out", "x"}, 2, "--data: expected a value, got none");
    refused({"train", "--data", "x", "--out", "y", "--time", "soon"}, 2,
            "--time: expected a time such as 90s");
    refused({"train", "--data", "x", "--out", "y", "--steps", "0"}, 2,
            "--steps: expected a whole number of at least 1");
    refused({"bench", "-r", "0"}, 2, "--repeats: expected a whole number from 1 to 1000");
    refused({"frobnicate"}, 2, "expected a known command, got 'frobnicate' (see linnet --help)");
    refused({"-x"}, 2, "expected a known option, got '-x'");
    refused({"gen\nerate\x1b[2J"}, 2, "expected a known command, got 'gen\\x0aerate\\x1b[2J'");
}

TEST_CASE("a model file that is none is refused by every command that opens one") {
    Scratch scratch;
    std::filesystem::create_directory(scratch / "folder");
    REQUIRE(run_shell("mkfifo '" + (scratch / "fifo") + "'").exit == 0);
    write_text(scratch / "empty", "");
    write_text(scratch / "text",
               "This is no model, it is a text that is long enough to hold a header of one.\n");
    std::string whole = read_text(tiny_model());
    write_text(scratch / "cut", whole.substr(0, whole.size() - 100));
    write_text(scratch / "header", whole.substr(0, 40));
    struct Case {
        std::string file, message;
        int exit;
    };
    for (const Case& c :
         {Case{"missing", "No such file or directory", 4}, Case{"folder", "folder", 3},
          Case{"fifo", "expected a regular file, got a FIFO", 3}, Case{"empty", "expected", 3},
          Case{"text", "expected", 3}, Case{"cut", "expected", 3}, Case{"header", "expected", 3}}) {
        std::string path = scratch / c.file;
        std::string message = c.file == "folder" ? "" : c.message;
        refused({"inspect", path}, c.exit, message);
        refused({"generate", "-m", path, "-p", "one"}, c.exit, message);
        refused({"inspect", "logits", "-m", path, "-p", "one"}, c.exit, message);
        refused({"eval", "-m", path, "--file", scratch / "text"}, c.exit, message);
        refused({"bench", "-m", path}, c.exit, message);
        refused({"bench", "tokenize", "-m", path, scratch / "text"}, c.exit, message);
        refused({"train", path, "--data", scratch / "text", "--out", scratch / "out"}, c.exit, message);
        CHECK_FALSE(std::filesystem::exists(scratch / "out"));
    }
}

TEST_CASE("a text that is none is refused by every command that reads one") {
    Scratch scratch;
    std::filesystem::create_directory(scratch / "folder");
    REQUIRE(run_shell("mkfifo '" + (scratch / "fifo") + "'").exit == 0);
    write_text(scratch / "config", tiny_config());
    for (const char* name : {"missing", "folder", "fifo"}) {
        std::string path = scratch / name;
        int exit = std::string(name) == "missing" ? 4 : 3;
        refused({"generate", "-m", tiny_model(), "-f", path}, exit, path);
        refused({"eval", "-m", tiny_model(), "--file", path}, exit, path);
        refused({"bench", "tokenize", "-m", tiny_model(), path}, exit, path);
        refused({"train", scratch / "config", "--data", path, "--out", scratch / "out"}, exit, path);
    }
    write_text(scratch / "short", "one two");
    refused({"eval", "-m", tiny_model(), "--file", scratch / "short", "--ctx", "32"}, 3,
            "expected a text of at least one window, 32 tokens, got 7 tokens (--ctx makes windows smaller)");
    refused({"train", scratch / "config", "--data", scratch / "short", "--out", scratch / "out"}, 3, "short");
    write_text(scratch / "blank", "");
    refused({"eval", "-m", tiny_model(), "--file", scratch / "blank"}, 3, "blank");
    refused({"bench", "tokenize", "-m", tiny_model(), scratch / "blank"}, 3,
            "expected a text, got an empty file");
    refused({"train", scratch / "config", "--data", scratch / "blank", "--out", scratch / "out"}, 3, "blank");
    CHECK_FALSE(std::filesystem::exists(scratch / "out/model.gguf"));
}

TEST_CASE("a prompt that the model cannot take is refused") {
    refused({"generate", "-m", tiny_model(), "-p", "one Ж"}, 3, "");  // not in its characters
    refused({"generate", "-m", tiny_model(), "-p", std::string(200, 'o')}, 3,
            "prompt: expected at most 32 tokens, got 200");
    refused({"inspect", "logits", "-m", tiny_model(), "-p", std::string(200, 'o')}, 3,
            "prompt: expected at most 32 tokens, got 200");
    refused({"generate", "-m", tiny_model(), "-p", "one", "--ctx", "64"}, 2, "64");  // the model has 32
    refused({"generate", "-m", tiny_model(), "-n", "5"}, 3, "", std::string("\xFF\xFE\0one", 6));
}

TEST_CASE("a config that contradicts itself names the key, and the nearest for an unknown one") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    write_text(scratch / "config", tiny_config());
    auto train = [&](const std::string& setting, const std::string& message) {
        refused({"train", scratch / "config", "--data", scratch / "text", "--out", scratch / "out", "--set",
                 setting},
                3, message);
        CHECK_FALSE(std::filesystem::exists(scratch / "out/model.gguf"));
    };
    train("model.heads=0", "model.heads");
    train("model.heads=3", "model.heads");
    train("model.widht=32", "did you mean model.width?");
    train("train.batch=lots", "train.batch");
    train("model.norm.kind=batch", "model.norm.kind");
    refused({"train", scratch / "config", "--data", scratch / "text", "--out", scratch / "out", "--set",
             "model.width"},
            2, "model.width");
    write_text(scratch / "config", "{\"model\": {");
    train("train.steps=5", "config");
    write_text(scratch / "config", "{\"model\": {}, \"model\": {}}");
    train("train.steps=5", "config");
}

TEST_CASE("an output folder that cannot be made is an I/O error that names it") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    write_text(scratch / "config", tiny_config());
    write_text(scratch / "file", "");
    refused({"train", scratch / "config", "--data", scratch / "text", "--out", (scratch / "file") + "/out"},
            4, scratch / "file");
}
