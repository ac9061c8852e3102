// linnet generate, on a model that the program made itself.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "commands/pseudo_terminal.h"
#include "commands/records.h"
#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;
using nlohmann::json;

namespace {

std::string made(std::vector<std::string> arguments, const std::string& input = {}) {
    arguments.insert(arguments.begin(), {"generate", "-m", tiny_model()});
    Outcome outcome = run_linnet(arguments, input);
    CHECK_MESSAGE(outcome.exit == 0, outcome.err);
    return outcome.out;
}

}  // namespace

TEST_CASE("generate takes its prompt from -p, a file or stdin alike") {
    Scratch scratch;
    write_text(scratch / "prompt", "one two ");
    std::string text = made({"-p", "one two ", "-n", "20", "--temp", "0"});
    CHECK(text.size() == 21);  // 20 characters and a newline
    CHECK(made({"-f", scratch / "prompt", "-n", "20", "--temp", "0"}) == text);
    CHECK(made({"-n", "20", "--temp", "0"}, "one two ") == text);
    CHECK(made({"-p", "one two ", "-n", "20", "--temp", "0", "--echo"}) == "one two " + text);
}

TEST_CASE("generate gives the same text for a seed, for any number of threads, and others for other seeds") {
    std::string text = made({"-p", "one", "-n", "25", "--seed", "5", "--temp", "1.5", "--threads", "1"});
    CHECK(made({"-p", "one", "-n", "25", "--seed", "5", "--temp", "1.5", "--threads", "2"}) == text);
    CHECK(made({"-p", "one", "-n", "25", "--seed", "6", "--temp", "1.5"}) != text);
}

TEST_CASE("generate begins by itself where there is no prompt") {
    CHECK(made({"-n", "10"}).size() > 1);
}

TEST_CASE("generate says on a terminal that there is no prompt") {
    const std::string nothing = "no prompt: begins from nothing (-f - to type one)";
    PseudoTerminal terminal({"generate", "-m", tiny_model(), "-n", "2"}, {});
    CHECK_MESSAGE(terminal.shows(nothing), terminal.printed());
    CHECK(terminal.exit() == 0);
    PseudoTerminal with({"generate", "-m", tiny_model(), "-n", "2", "-p", "one"}, {});
    CHECK(with.exit() == 0);
    CHECK_MESSAGE(!has(with.printed(), "no prompt"), with.printed());
    CHECK_FALSE(has(run_linnet({"generate", "-m", tiny_model(), "-n", "2"}).err, "no prompt"));
    CHECK(has(run_linnet({"generate", "--help"}).out, "text to continue [stdin, where it is no terminal]"));
}

TEST_CASE("names that other programs have for options are answered with ours") {
    for (const auto& [theirs, ours] : {std::pair<const char*, const char*>{"--max-tokens", "--tokens"},
                                       {"--max-new-tokens", "--tokens"},
                                       {"--max_tokens", "--tokens"},
                                       {"--repetition_penalty", "--repeat-penalty"},
                                       {"--num-predict", "--tokens"},
                                       {"--prompt-file", "--file"},
                                       {"--repetition-penalty", "--repeat-penalty"}}) {
        const Outcome outcome = run_linnet({"generate", theirs, "1"});
        CHECK(outcome.exit == 2);
        CHECK(is_one_error_line(outcome.err));
        CHECK_MESSAGE(has(outcome.err, "(did you mean " + std::string(ours) + "?)"), outcome.err);
    }
    CHECK_FALSE(
        has(run_linnet({"inspect", "x", "--max-tokens", "1"}).err, "--tokens?"));  // has no such option
}

TEST_CASE("generate names the text that its vocabulary cannot spell") {
    Scratch scratch;
    write_text(scratch / "prompt", "one #");
    auto refusal = [](const std::vector<std::string>& more, const std::string& input = {}) {
        std::vector<std::string> all{"generate", "-m", tiny_model()};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome outcome = run_linnet(all, input);
        CHECK(outcome.exit == 3);
        CHECK(is_one_error_line(outcome.err));
        return outcome.err;
    };
    const std::string fault = ": byte 4: expected a character of the vocabulary, got '#'";
    CHECK(has(refusal({"-f", scratch / "prompt"}), "error: " + (scratch / "prompt") + fault));
    CHECK(has(refusal({"-p", "one #"}), "error: --prompt" + fault));
    CHECK(has(refusal({}, "one #"), "error: stdin" + fault));
    CHECK(has(refusal({"--batch-file", "-"}, "{\"prompt\": \"one #\"}\n"),
              "error: stdin: line 1: prompt" + fault));
}

TEST_CASE("a context of one token is said in the singular") {
    const Outcome outcome = run_linnet({"generate", "-m", tiny_model(), "-p", "o", "-n", "5", "--ctx", "1"});
    CHECK_MESSAGE(has(outcome.err, "the context of 1 token is full; "), outcome.err);
    const Outcome kept = run_linnet(
        {"generate", "-m", tiny_model(), "-p", "o", "-n", "5", "--ctx", "1", "--ctx-shift", "--keep", "1"});
    CHECK_MESSAGE(has(kept.err, "--keep: expected at most 0 in a context of 1 token, got 1"), kept.err);
}

TEST_CASE("a draft of another vocabulary is told whose it needs") {
    if (run_linnet({"generate", "-p", "a", "-n", "1"}).exit != 0) return skip("needs the built-in model");
    const Outcome refused = run_linnet({"generate", "-p", "a", "-n", "1", "--draft", tiny_model()});
    CHECK(refused.exit == 3);
    CHECK_MESSAGE(has(refused.err, "(a draft model needs the vocabulary of the built-in model)"),
                  refused.err);
}

TEST_CASE("generate ends before a stop string") {
    std::string text = made({"-p", "one two ", "-n", "20", "--temp", "0"});
    std::string stop = text.substr(7, 3);
    CHECK(made({"-p", "one two ", "-n", "20", "--temp", "0", "--stop", stop}) ==
          text.substr(0, text.find(stop)) + (text[text.find(stop) - 1] == '\n' ? "" : "\n"));
}

TEST_CASE("the formats of generate agree: ids, and one JSON object per line") {
    std::string text = made({"-p", "one ", "-n", "12", "--temp", "0"});
    std::istringstream ids(made({"-p", "one ", "-n", "12", "--temp", "0", "--format", "ids"}));
    std::istringstream lines(made({"-p", "one ", "-n", "12", "--temp", "0", "--format", "jsonl"}));
    std::string joined;
    int records = 0;
    for (std::string line; std::getline(lines, line); records++) {
        json record = json::parse(line);
        joined += record.value("text", "");
        int id = -1;
        if (record.contains("id")) {
            REQUIRE(bool(ids >> id));
            CHECK(record["id"] == id);
        } else {
            CHECK(record["end"] == "length");
            CHECK(record["tokens"] == 12);
            CHECK(record["prompt_tokens"] == 4);
        }
    }
    CHECK(records == 13);
    CHECK(joined + "\n" == text);
    Outcome full = run_linnet({"generate", "-m", tiny_model(), "-p", "one", "-n", "99", "--format", "jsonl"});
    CHECK(has(full.out, R"({"end":"context","prompt_tokens":3,"tokens":30)"));
}

TEST_CASE("--samples writes texts that differ, the same for any number of slots and threads") {
    const std::vector<std::string> line{"-p", "one two ", "-n", "12", "--temp", "1.5", "--seed", "9"};
    auto samples = [&](std::vector<std::string> more) {
        more.insert(more.begin(), line.begin(), line.end());
        return made(more);
    };
    const std::string out = samples({"--samples", "5", "--json"});
    const std::vector<json> all = records(out);
    REQUIRE(all.size() == 5);
    for (std::size_t i = 0; i < 5; i++) {
        CHECK(all[i]["sample"] == i);
        CHECK(all[i]["tokens"] == 12);
        CHECK(all[i]["prompt_tokens"] == 8);
        CHECK(all[i]["seed"] == 9);
        for (std::size_t k = 0; k < i; k++) CHECK(all[i]["text"] != all[k]["text"]);
    }
    CHECK(all[0]["text"].get<std::string>() + "\n" == samples({}));  // the first is what is written alone
    for (const char* threads : {"1", "2", "3"})
        for (const char* slots : {"1", "2", "8"})
            CHECK(samples({"--samples", "5", "--json", "--threads", threads, "--parallel", slots}) == out);
    CHECK(has(samples({"--samples", "2", "--echo"}), "==> sample 2 of 2 <==\none two "));
    std::istringstream ids(samples({"--samples", "5", "--format", "ids"}));
    std::string one;
    for (std::size_t i = 0; std::getline(ids, one); i++) {
        std::string expected;
        for (int id : all.at(i)["ids"]) expected += (expected.empty() ? "" : " ") + std::to_string(id);
        CHECK(one == expected);
    }
}

namespace {

const std::vector<std::string> prompts{
    "one two ", "three ", "four five six ", "t", "seven eight nine ten\\n", "one two three ", "six", "two "};

/// A batch file of `prompts`; greedy, but for the lines that `sampled` says.
std::string batch_of(bool sampled) {
    std::string lines;
    for (std::size_t i = 0; i < prompts.size(); i++) {
        lines += "{\"prompt\": \"" + prompts[i] + "\", \"n\": " + std::to_string(5 + i) + ", \"temp\": ";
        lines += sampled ? "1.5, \"top_k\": 8, \"seed\": " + std::to_string(40 + i) + "}\n" : "0}\n";
        if (i == 2) lines += "\n";
    }
    return lines;
}

}  // namespace

TEST_CASE("--batch-file answers in order, each prompt as it is answered alone, for any threads and slots") {
    Scratch scratch;
    const std::string path = scratch / "prompts.jsonl";
    for (bool sampled : {false, true}) {
        write_text(path, batch_of(sampled));
        const std::string out = made({"--batch-file", path, "--seed", "1"});
        const std::vector<json> all = records(out);
        REQUIRE(all.size() == prompts.size());
        for (std::size_t i = 0; i < all.size(); i++) {
            CHECK(all[i]["index"] == i);
            CHECK(all[i]["end"] == "length");
            std::string prompt = prompts[i] == prompts[4] ? "seven eight nine ten\n" : prompts[i];
            std::vector<std::string> alone{
                "-p", prompt, "-n", std::to_string(5 + i), "--temp", sampled ? "1.5" : "0"};
            if (sampled) alone.insert(alone.end(), {"--top-k", "8", "--seed", std::to_string(40 + i)});
            CHECK(made(alone) == all[i]["text"].get<std::string>() +
                                     (all[i]["text"].get<std::string>().ends_with('\n') ? "" : "\n"));
        }
        for (const char* threads : {"1", "2", "3"})
            for (const char* slots : {"1", "3", "64"})
                CHECK(made({"--batch-file", path, "--threads", threads, "--parallel", slots, "--seed",
                            "1"}) == out);
        CHECK(made({"--batch-file", path, "--speculate", "--seed", "1"}) == out);
    }
    CHECK(made({"--batch-file", "-"}, batch_of(true)) == made({"--batch-file", path}));
    const std::vector<json> two = records(made({"--batch-file", path, "--samples", "2", "--echo"}));
    REQUIRE(two.size() == 16);
    CHECK(two[3]["index"] == 1);
    CHECK(two[3]["sample"] == 1);
    CHECK(two[3]["prompt"] == "three ");
    CHECK(two[2]["text"] == records(made({"--batch-file", path}))[1]["text"]);
    CHECK(has(made({"--batch-file", path, "--format", "text"}), "==> prompt 8 of 8 <==\n"));
}

TEST_CASE("what a line of a batch leaves out is the command's, and each line has a seed of its own") {
    Scratch scratch;
    const std::string path = scratch / "prompts.jsonl";
    write_text(path, "{\"prompt\": \"one \"}\n{\"prompt\": \"one \"}\n{\"prompt\": \"one \", \"tokens\": 3}");
    const std::vector<json> all =
        records(made({"--batch-file", path, "-n", "12", "--temp", "1.5", "--seed", "20"}));
    REQUIRE(all.size() == 3);
    CHECK(all[0]["seed"] == 20);
    CHECK(all[1]["seed"] == 21);
    CHECK(all[0]["text"] != all[1]["text"]);
    CHECK(all[0]["tokens"] == 12);
    CHECK(all[2]["tokens"] == 3);
    CHECK(made({"-p", "one ", "-n", "12", "--temp", "1.5", "--seed", "21"})
              .starts_with(all[1]["text"].get<std::string>()));
}

TEST_CASE("a bad line of a batch is named before anything is written") {
    Scratch scratch;
    const std::string path = scratch / "p.jsonl", good = "{\"prompt\": \"one\"}\n";
    const std::pair<const char*, const char*> bad[] = {
        {"{\"prompt\": \"one\"", "p.jsonl: line 3, column"},
        {"[1]", "p.jsonl: line 3: expected a JSON object, got array"},
        {"{}", "p.jsonl: line 3: prompt: expected a string, got none"},
        {"{\"prompt\": 7}", "p.jsonl: line 3: prompt: expected a string, got 7"},
        {"{\"prompt\": \"a\", \"tmp\": 1}",
         "p.jsonl: line 3: tmp: expected a known key, got an unknown one "
         "(did you mean temp?)"},
        {"{\"prompt\": \"a\", \"top-p\": 2}", "p.jsonl: line 3: top-p: expected 0 to 1, got 2"},
        {"{\"prompt\": \"a\", \"n\": 1, \"tokens\": 2}", "p.jsonl: line 3: "},
        {"{\"prompt\": \"a\", \"seed\": 1, \"seed\": 2}",
         "p.jsonl: line 3: seed: expected each key once, got a second one"},
        {"{\"prompt\": \"a\", \"seed\": -1}", "p.jsonl: line 3: seed: expected"},
        {"{\"prompt\": \"a\", \"seed\": 18446744073709551615}",
         "p.jsonl: line 3: seed: expected 0 to 9200000000000000000, got 18446744073709551615"},
        {"{\"prompt\": \"a\", \"stop\": [1]}", "p.jsonl: line 3: stop[0]: expected a string, got 1"},
        {"{\"prompt\": \"a\", \"stop\": \"\"}", "p.jsonl: line 3: stop: expected a value, got an empty text"},
        {"{\"prompt\": \"\xff\"}", "p.jsonl: line 3: expected UTF-8, got byte 0xFF"},
        {"{\"prompt\": \"\u00e9\"}",
         "p.jsonl: line 3: prompt: byte 0: expected a character of the vocabulary"},
        {"{\"prompt\": \"a\", \"max_tokens\": 1}",
         "p.jsonl: line 3: max_tokens: expected a known key, got an unknown one (did you mean tokens?)"},
        {"{\"prompt\": \"a\", \"repeat_penalti\": 1}",
         "p.jsonl: line 3: repeat_penalti: expected a known key, got an unknown one "
         "(did you mean repeat-penalty?)"},
        {"{\"prompt\": \"one two three four five six seven eight nine ten\"}",
         "p.jsonl: line 3: prompt: expected at most 32 tokens, got 48"}};
    for (const auto& [line, message] : bad)
        for (const char* number : {"3", "1"}) {
            const auto& of_line = line;
            CAPTURE(of_line);
            std::string named = message;
            named.replace(named.find("line 3") + 5, 1, number);
            write_text(path, (*number == '3' ? good + "\n" : "") + line + "\n" + good);
            const Outcome outcome = run_linnet({"generate", "-m", tiny_model(), "--batch-file", path});
            CHECK(outcome.exit == 3);
            CHECK(outcome.out.empty());
            CHECK(is_one_error_line(outcome.err));
            CHECK_MESSAGE(has(outcome.err, named), outcome.err);
        }
    write_text(path, "\n\n");
    CHECK(run_linnet({"generate", "-m", tiny_model(), "--batch-file", path}).exit == 3);
    CHECK(run_linnet({"generate", "-m", tiny_model(), "--batch-file", path, "-p", "one"}).exit == 2);
    CHECK(run_linnet({"generate", "-m", tiny_model(), "--batch-file", scratch / "none"}).exit == 4);
}

TEST_CASE("a model that becomes shorter while it is in use ends the program with one line") {
    Scratch scratch;
    write_text(scratch / "m\xC2\x9B.gguf", read_text(tiny_model()));
    Outcome outcome =
        run_shell("cd " + scratch.path +
                  "\n"
                  "$LINNET generate -m m*.gguf -p one -n 100000000 --ctx-shift >out 2>err & pid=$!\n"
                  "until [ -s out ]; do sleep 0.01; done\n"
                  "truncate -s 4096 m*.gguf\n"
                  "wait $pid; code=$?; cat err >&2; exit $code");
    CHECK(outcome.exit == 4);
    CHECK_MESSAGE(is_one_error_line(outcome.err), outcome.err);
    CHECK(has(outcome.err, "m\\x9b.gguf"));
}
