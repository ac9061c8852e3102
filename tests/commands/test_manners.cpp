// What a person expects of any command line: prompts, option names, JSON lines, terminals.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json_line.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/tiny.h"
#include "formats/gguf.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

std::string made(std::vector<std::string> arguments, const std::string& input = {}) {
    arguments.insert(arguments.begin(), {"generate", "-m", tiny_model(), "-n", "8", "--temp", "0"});
    Outcome outcome = run_linnet(arguments, input);
    CHECK_MESSAGE(outcome.exit == 0, outcome.err);
    return outcome.out;
}

/// `command` in a terminal of `columns`; empty where this machine has no `script`.
std::string on_terminal(const std::string& command, int columns = 80, const std::string& term = "xterm") {
    if (run_shell("script -qec true /dev/null </dev/null").exit != 0) {
        skip("needs util-linux's script and a pseudo-terminal");
        return {};
    }
    return run_shell("export TERM=" + term + " COMMAND=" + "'stty cols " + std::to_string(columns) + "; " +
                     command + "'\nscript -qec \"$COMMAND\" /dev/null </dev/null")
        .out;
}

}  // namespace

TEST_CASE("one line end at the end of a prompt from stdin or a file is dropped, and kept where asked") {
    Scratch scratch;
    const std::string text = made({"-p", "one two "}), with = made({"-p", "one two\n"});
    CHECK(made({}, "one two \n") == text);
    CHECK(made({}, "one two \r\n") == text);
    CHECK(made({"-f", "-"}, "one two \n") == text);
    CHECK(made({}, "one two\n\n") == with);
    CHECK(made({"--keep-newline"}, "one two\n") == with);
    write_text(scratch / "prompt", "one two \n");
    CHECK(made({"-f", scratch / "prompt"}) == text);
    write_text(scratch / "prompt", "\xEF\xBB\xBFone two \n");  // a byte order mark is none of the text
    CHECK(made({"-f", scratch / "prompt"}) == text);
    write_text(scratch / "prompt", "one two\n");
    CHECK(made({"-f", scratch / "prompt", "--keep-newline"}) == with);
    const auto logits = [](const std::vector<std::string>& arguments, const std::string& input) {
        std::vector<std::string> all{"inspect", "logits", "-m", tiny_model()};
        all.insert(all.end(), arguments.begin(), arguments.end());
        return run_linnet(all, input).out;
    };
    CHECK(logits({}, "one two\n") == logits({"-p", "one two"}, ""));
    CHECK(logits({"-f", "-", "--keep-newline"}, "one two\n") == logits({"-p", "one two\n"}, ""));
}

TEST_CASE("- is stdin wherever a text is read") {
    Scratch scratch;
    const std::string text = counting_text();
    write_text(scratch / "text", text);
    auto same = [&](std::vector<std::string> arguments) {
        CAPTURE(arguments[0]);
        arguments.push_back(scratch / "text");
        const Outcome file = run_linnet(arguments);
        arguments.back() = "-";
        const Outcome input = run_linnet(arguments, text);
        CHECK(file.exit == 0);
        CHECK_MESSAGE(input.exit == 0, input.err);
        CHECK(input.out == file.out);
    };
    same({"eval", "-m", tiny_model(), "-f"});
    same({"tokenize", "-t", tiny_model()});
    same({"tokenize", "-t", tiny_model(), "-f"});
    CHECK(run_linnet({"bench", "tokenize", "-t", tiny_model(), "-r", "1", "-"}, text).exit == 0);
    CHECK(run_linnet({"tokenizer", "verify", tiny_model(), tiny_model(), "-"}, text).exit == 0);
    const std::string ids = run_linnet({"tokenize", "-t", tiny_model()}, text).out;
    CHECK(run_linnet({"detokenize", "-t", tiny_model(), "-"}, ids).out == text);
}

TEST_CASE("- is stdin also where a config, a grammar, a schema or a conversation is read") {
    Workplace place;
    write_text(place.s / "config", tiny_config());
    fs::copy_file(tiny_model(), place.s / "m.gguf");
    write_text(place.s / "grammar", "root ::= \"one \" \"two\"");
    write_text(place.s / "schema", R"({"enum": ["one"]})");
    write_text(place.s / "talk", R"([{"role": "user", "content": "one"}])");
    const char* const lines[] = {"$LINNET train %config --data text --steps 2 --dry-run --out out >/dev/null",
                                 "$LINNET bench train %config --steps 1 --json >/dev/null",
                                 "$LINNET generate -m m.gguf -p one --temp 0 --grammar %grammar"};
    auto both = [&](std::string line, const std::string& name) {
        const std::size_t at = line.find('%');
        CAPTURE(line);
        const Outcome file = place(line.erase(at, 1));
        const Outcome input = place(line.replace(at, name.size(), "-") + " < " + name);
        CHECK_MESSAGE(file.exit == 0, file.err);
        CHECK_MESSAGE(input.exit == 0, input.err);
        CHECK(input.out == file.out);
    };
    for (const char* line : lines) both(line, has(line, "grammar") ? "grammar" : "config");
    // The tiny vocabulary has no quotes, and its model no room for a conversation: both were read, at least.
    CHECK(has(place("$LINNET generate -m m.gguf -p one --json-schema - < schema").err, "stdin"));
    CHECK(has(place("echo '{' | $LINNET chat -m m.gguf --load -").err, "stdin: "));
    const Outcome twice = place("echo 'root ::= \"x\"' | $LINNET generate -m m.gguf --grammar -");
    CHECK(twice.exit == 2);
    CHECK_MESSAGE(has(twice.err, "stdin: expected one use of it, got two"), twice.err);
}

TEST_CASE("old names of options and llama.cpp's are understood, and help does not show them") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    write_text(scratch / "word", "one\n");
    CHECK(made({"-p", "one", "-c", "16", "-t", "1", "-s", "5", "--ignore-eos"}) ==
          made({"-p", "one", "--ctx", "16", "--threads", "1", "--seed", "5", "--ignore-end"}));
    CHECK(run_linnet({"generate", "-m", tiny_model(), "-p", "one", "-c", "64"}).exit == 2);
    CHECK(has(run_linnet({"generate", "-s", "x"}).err, "--seed: expected a whole number"));
    CHECK(has(run_linnet({"generate", "-t", "x"}).err, "--threads: expected a whole number"));
    const std::string generate = run_linnet({"generate", "--help"}).out;
    for (const char* hidden : {"-c,", "-t,", "-s,", "-c ", "--ignore-eos"})
        CHECK_FALSE_MESSAGE(has(generate, std::string("  ") + hidden), hidden);
    auto chat = [&](const std::vector<std::string>& more) {
        std::vector<std::string> all{"chat", "-m", tiny_model(), "-n", "6", "--quiet"};
        all.insert(all.end(), more.begin(), more.end());
        const Outcome outcome = run_linnet(all, "one two");
        CHECK_MESSAGE(outcome.exit == 0, outcome.err);
        return outcome.out;
    };
    CHECK(chat({"-c", "16", "-t", "1", "-s", "5", "--ignore-eos"}) ==
          chat({"--ctx", "16", "--threads", "1", "--seed", "5", "--ignore-end"}));
    write_text(scratch / "config", tiny_config());
    CHECK(run_linnet({"train", scratch / "config", "--data", scratch / "text", "-o", scratch / "out",
                      "--dry-run", "-t", "1"})
              .exit == 0);
    CHECK(run_linnet({"bench", "train", scratch / "config", "--steps", "1", "-t", "1"}).exit == 0);
    CHECK(has(run_linnet({"train", "-t", "x"}).err, "--threads: expected a whole number"));

    const std::string ids = run_linnet({"tokenize", "-t", tiny_model(), "-p", "one two"}).out;
    CHECK(run_linnet({"tokenize", "-m", tiny_model(), "--prompt", "one two"}).out == ids);
    CHECK(run_linnet({"tokenize", "--model", tiny_model()}, "one two").out == ids);
    CHECK(run_linnet({"tokenize", "--tokenizer", tiny_model()}, "one two").out == ids);
    CHECK(run_linnet({"detokenize", "-m", tiny_model()}, ids).out == "one two");
    CHECK(run_linnet({"eval", "-m", tiny_model(), "-f", scratch / "text"}).out ==
          run_linnet({"eval", "-m", tiny_model(), "--file", scratch / "text"}).out);
    const Outcome both = run_linnet({"tokenize", "-p", "a", scratch / "text"});
    CHECK(both.exit == 2);
    CHECK(has(both.err, "not both --prompt and FILE"));

    const std::string json = scratch / "t.json", gguf = scratch / "t.gguf";
    REQUIRE(
        run_linnet({"tokenizer", "train", "--vocab-size", "270", "-o", json, "-f", scratch / "text"}).exit ==
        0);
    CHECK(run_linnet({"tokenizer", "convert", "-t", json, "-o", gguf}).exit == 0);
    CHECK(run_linnet({"tokenizer", "verify", json, gguf, scratch / "text"}).exit == 0);
    CHECK(run_linnet({"inspect", "-m", gguf}).out == run_linnet({"inspect", gguf}).out);
    auto does = [](const std::vector<std::string>& arguments) {
        CAPTURE(arguments[0]);
        const Outcome outcome = run_linnet(arguments);
        CHECK_MESSAGE(outcome.exit == 0, outcome.err);
        return outcome.out;
    };
    does({"quantize", "-m", tiny_model(), "-o", scratch / "q.gguf", "--type", "q8_0"});
    does({"convert", "-m", tiny_model(), "-o", scratch / "folder"});
    CHECK(has(does({"convert", "--help"}), "-t, --tokenizer"));
    does({"corpus", "-m", json, "-o", scratch / "corpus", "-f", scratch / "text"});
    does({"tokenizer", "convert", "-m", tiny_model(), scratch / "m.json"});
    CHECK(does({"inspect", "graph", "-m", tiny_model(), "--check", "-f", scratch / "word"}) ==
          does({"inspect", "graph", "-m", tiny_model(), "--check", "-p", "one"}));
}

TEST_CASE("examples of help use the names that help shows") {
    for (const Command& command : commands()) {
        if (!command.add) continue;
        std::istringstream words(command.example);
        std::string help;
        for (std::string word, before; words >> word; before = word) {
            if (before == "linnet") {  // another command's line may stand beside this one's
                const std::string asked = has(command.name, " ") ? command.name : word;
                help = run_shell("$LINNET " + asked + " --help").out;
            }
            if (word.size() < 2 || word[0] != '-' || help.empty()) continue;
            if (has(command.name, "manual")) continue;  // man's own
            CHECK_MESSAGE((has(help, word + " ") || has(help, word + ",") || has(help, word + "\n")),
                          command.name << ": " << word);
        }
    }
}

TEST_CASE("--json is one object per line in every command that prints results") {
    Scratch scratch;
    const std::string text = scratch / "text", config = scratch / "config", model = tiny_model(),
                      folder = model.substr(0, model.rfind('/')), ids = scratch / "ids";
    write_text(text, counting_text());
    write_text(config, tiny_config());
    write_text(ids, "1 2 3\n4 5\n");
    const std::string encoder = scratch / "encoder/model.gguf";
    REQUIRE(run_linnet({"train", config, "--data", text, "-o", scratch / "encoder", "--steps", "1", "--set",
                        "model.kind=encoder", "--set", "tokenizer.kind=wordpiece", "--set",
                        "tokenizer.vocab_size=300"})
                .exit == 0);
    std::string checkpoint;
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/checkpoints"))
        checkpoint = entry.path().string();
    const std::vector<std::vector<std::string>> lines = {
        {"generate", "-m", model, "-p", "one", "-n", "4"},
        {"tokenize", "-t", model, text, text},
        {"detokenize", "-t", model, ids},
        {"tokenizer", "verify", model, model, text},
        {"eval", "-m", model, "-f", text},
        {"inspect", model},
        {"inspect", checkpoint},
        {"inspect", "logits", "-m", model, "-p", "one"},
        {"inspect", "logits", "-m", model, "-p", "one", "--top", "3"},
        {"bench", "-m", model, "-p", "4", "-n", "4", "-r", "1"},
        {"bench", "train", config, "--steps", "1"},
        {"bench", "tokenize", "-t", model, text, "-r", "1"},
        {"train", config, "--data", text, "-o", scratch / "out", "--steps", "2"},
        {"train", config, "--data", text, "-o", scratch / "none", "--steps", "2", "--dry-run"},
        {"finetune", "-m", model, "--data", text, "-o", scratch / "none", "--steps", "2", "--dry-run"},
        {"quantize", model, scratch / "q.gguf", "--type", "q8_0"},
        {"embed", "-m", encoder, "-p", "one"},
        {"predict", "-m", encoder, "-p", "[MASK]"},
        {"inspect", "attention", "-m", model, "-p", "one"},
        {"inspect", "graph", "-m", model},
        {"inspect", "graph", "-m", model, "--check", "-p", "one"},
        {"bench", "machine"},
        {"corpus", "-t", model, "-o", scratch / "corpus", text, "--no-end-tokens"}};
    for (std::vector<std::string> line : lines) {
        CAPTURE(line[0] + " " + line[1]);
        line.push_back("--json");
        const Outcome outcome = run_linnet(line);
        CHECK_MESSAGE(outcome.exit == 0, outcome.err);
        CHECK(outcome.out.ends_with("\n"));
        std::istringstream out(outcome.out);
        for (std::string object; std::getline(out, object);)
            CHECK_MESSAGE(json::parse(object, nullptr, false).is_object(), object);
    }
    const Outcome differ = run_linnet({"tokenizer", "verify", "--json", model, scratch / "byte.json", text});
    CHECK(differ.exit == 4);  // no such file: an error stays an error
    CHECK(differ.out.empty());
}

TEST_CASE("detokenize --json holds the text of each line of ids") {
    const std::string ids = run_linnet({"tokenize", "-t", tiny_model()}, "one\ntwo").out;
    const Outcome lines = run_linnet({"detokenize", "-t", tiny_model(), "--json"}, ids + ids);
    CHECK(lines.out == "{\"text\":\"one\\ntwo\"}\n{\"text\":\"one\\ntwo\"}\n");
}

TEST_CASE("inspect logits --top names the likeliest tokens: id, token, logit, probability") {
    std::istringstream all(run_linnet({"inspect", "logits", "-m", tiny_model(), "-p", "one "}).out);
    std::vector<double> logits;
    double sum = 0;
    for (double x; all >> x;) {
        logits.push_back(x);
        sum += std::exp(x);
    }
    const Outcome top = run_linnet({"inspect", "logits", "-m", tiny_model(), "-p", "one ", "--top", "3"});
    std::istringstream lines(top.out);
    double before = INFINITY;
    int count = 0;
    for (std::string line; std::getline(lines, line); count++) {
        int id = -1;
        char token[16];
        double logit = 0, probability = 0;
        REQUIRE_MESSAGE(
            std::sscanf(line.c_str(), "%d '%15[^']' %lf %lf", &id, token, &logit, &probability) == 4, line);
        CHECK(logit == doctest::Approx(logits.at(static_cast<std::size_t>(id))).epsilon(1e-3));
        CHECK(probability == doctest::Approx(std::exp(logit) / sum).epsilon(1e-3));
        CHECK(logit <= before);
        before = logit;
        const std::string bytes = run_linnet({"detokenize", "-t", tiny_model()}, std::to_string(id)).out;
        CHECK(std::string(token) == (bytes == "\n" ? "\\n" : bytes));
    }
    CHECK(count == 3);
    CHECK(before <= *std::max_element(logits.begin(), logits.end()));
    const Outcome many =
        run_linnet({"inspect", "logits", "-m", tiny_model(), "-p", "one ", "--top", "99999", "--json"});
    CHECK(std::count(many.out.begin(), many.out.end(), '\n') == static_cast<long>(logits.size()));
    CHECK(run_linnet({"inspect", "logits", "-m", tiny_model(), "-p", "one ", "--top", "0"}).exit == 2);
}

TEST_CASE("times are written as people write them") {
    for (const auto& [text, seconds] : {std::pair<const char*, double>{"90", 90},
                                        {"90s", 90},
                                        {"90m", 5400},
                                        {"1.5h", 5400},
                                        {"2d", 172800},
                                        {"1:30", 90},
                                        {"1:00:05", 3605},
                                        {"100:00", 6000}}) {
        const char* of = text;
        CHECK_MESSAGE(parse_duration("--time", of) == seconds, of);
    }
    for (const char* text : {"", "s", "1:", ":30", "1:60", "1:2:3:4", "-1:30", "1.5:30", "5w", "0", "1:30m",
                             "nan", "1e20", "1e9d"})
        CHECK_THROWS_WITH_AS_MESSAGE(parse_duration("--time", text),
                                     doctest::Contains("--time: expected a time such as 90s"), std::exception,
                                     text);
}

TEST_CASE("an option without its value says so") {
    for (const char* option : {"--stop", "--seed", "-n"}) {
        const Outcome outcome = run_linnet({"generate", "-p", "one", option});
        CHECK(outcome.exit == 2);
        CHECK(is_one_error_line(outcome.err));
        CHECK_MESSAGE(has(outcome.err, "expected one value, got none"), outcome.err);
    }
    CHECK(has(run_linnet({"generate", "--stop"}).err, "--stop: "));
    CHECK(has(run_linnet({"generate", "-p", "one", "--stop", ""}).err,
              "--stop: expected a value, got an empty text"));
    CHECK(has(run_linnet({"generate", "--seed", "1", "--seed", "2"}).err, "got more than one"));
    // Another option is no value, unless it is given as one.
    for (const auto& [line, message] :
         {std::pair{"generate --stop -n 1", "--stop: expected a value, got the option -n"},
          std::pair{"generate -m --temp 0", "-m: expected a value, got the option --temp"},
          std::pair{"train --data --out x", "--data: expected a value, got the option --out"},
          std::pair{"chat --system --threads 2", "--system: expected a value, got the option --threads"}}) {
        const Outcome outcome = run_shell(std::string("$LINNET ") + line);
        CHECK(outcome.exit == 2);
        CHECK_MESSAGE(has(outcome.err, message), outcome.err);
    }
    CHECK(made({"-p", "one", "--stop=-n"}) == made({"-p", "one"}));
    CHECK(run_linnet({"tokenize", "-p", "-n"}).out == run_linnet({"tokenize"}, "-n").out);
}

TEST_CASE("-V is --version") {
    CHECK(run_linnet({"-V"}).out == run_linnet({"--version"}).out);
    CHECK(run_linnet({"train", "-V"}).out == run_linnet({"--version"}).out);
}

TEST_CASE("train says before it starts where other runtimes will not load the model") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    write_text(scratch / "config", tiny_config());
    auto dry = [&](const std::string& setting) {
        return run_linnet({"train", scratch / "config", "--data", scratch / "text", "--out", scratch / "out",
                           "--dry-run", "--set", setting});
    };
    CHECK_FALSE(has(dry("model.dropout=0").err, "only linnet"));
    CHECK(has(dry("model.norm.placement=post").err, "only linnet will load model.gguf"));
}

TEST_CASE("tokenizer train ended by Ctrl-C says so in a line, and writes nothing") {
    for (const char* kind : {"bpe", "char"}) {
        // Its input never ends, so that it is still reading, however slow the machine.
        const Outcome outcome = run_shell(
            "cd \"$(mktemp -d)\"; mkfifo words; yes 'some words of a long text' > words 2>/dev/null &\n"
            "env --default-signal=INT $LINNET tokenizer train --kind " +
            std::string(kind) +
            " -o t.json - < words & pid=$!\n"
            // It catches the signal: bit 1 of the mask.
            "until [ \"$(readlink /proc/$pid/exe)\" = \"$(readlink -f $LINNET)\" ] && grep -q "
            "'SigCgt:.*[2367abef]$' /proc/$pid/status; do sleep 0.05; done\n"
            "kill -INT $pid; wait $pid; code=$?; ls; exit $code");
        CHECK(outcome.exit == 130);
        CHECK(has(outcome.err, "stopped; t.json is not written"));
        CHECK_FALSE(has(outcome.out, "t.json"));
    }
}

TEST_CASE("tokenizer train makes special tokens of the kinds that have such, and says of which it does not") {
    Scratch scratch;
    write_text(scratch / "text", "one two");
    const std::string train =
        "cd " + scratch.path + " && $LINNET tokenizer train -o t.json --special '<end>' text --kind ";
    CHECK(run_shell(train + "char").exit == 0);
    CHECK(has(read_text(scratch / "t.json"), "<end>"));
    for (const std::string more : {"--special a", "--special '<end>'"}) {
        const Outcome twice = run_shell(train + "bpe --overwrite " + more);
        CHECK(twice.exit == 2);
        CHECK_MESSAGE(has(twice.err, "--special: expected "), twice.err);
    }
    const Outcome none = run_shell(train + "bpe --overwrite --pretokenizer gpt2");
    CHECK(none.exit == 2);
    CHECK_MESSAGE(has(none.err, "--pretokenizer: expected one of default, gpt-2, "), none.err);
    CHECK_MESSAGE(has(none.err, "got 'gpt2' (did you mean"), none.err);
    const Outcome bytes = run_shell(train + "byte --overwrite");
    CHECK(bytes.exit == 2);
    CHECK_MESSAGE(has(bytes.err, "--special: expected --kind bpe or spm or wordpiece or char, got byte"),
                  bytes.err);
    const Outcome size = run_shell(train + "char --overwrite --vocab-size 300");
    CHECK(size.exit == 2);
    CHECK_MESSAGE(has(size.err, "--vocab-size: expected --kind bpe or spm or wordpiece, got char"), size.err);
}

TEST_CASE("tokenizer train reads the same files whatever it is to make") {
    Workplace place;
    REQUIRE(place("mkdir texts && cp text texts/a.txt && gzip -k text && mv text.gz b.txt.gz").exit == 0);
    for (const char* kind : {"bpe --vocab-size 270", "char", "byte"}) {
        CAPTURE(kind);
        const std::string line = std::string("$LINNET tokenizer train --kind ") + kind + " --overwrite -o ";
        for (const char* files : {"text", "texts", "b.txt.gz", "- < text"}) {
            const Outcome made = place(line + "t.gguf " + files);
            CHECK_MESSAGE(made.exit == 0, made.err);
            if (files != std::string("text")) CHECK(place.file("t.gguf") == place.file("first"));
            place("[ -e first ] || cp t.gguf first");
        }
        place("rm first; head -c 40 b.txt.gz > cut.txt.gz");
        const Outcome binary = place(line + "u.gguf t.gguf");
        CHECK(binary.exit == 3);
        CHECK_MESSAGE(has(binary.err, "t.gguf: expected UTF-8 text, got a GGUF"), binary.err);
        const Outcome cut = place(line + "u.gguf cut.txt.gz");
        CHECK(cut.exit == 3);
        CHECK_MESSAGE(has(cut.err, "cut.txt.gz"), cut.err);
    }
}

TEST_CASE("a page of tokens of a large text shows a part of it and says so; it is UTF-8 whatever the text") {
    Scratch scratch;
    std::string text;
    while (text.size() < 1'200'000) text += "one two three \xC3\xA9\n";
    write_text(scratch / "large", text);
    write_text(scratch / "bytes",
               "a\xFF\xC2 b\x1b[2J \xC2\x9B"
               "c");
    const Outcome large = run_linnet({"tokenize", "--html", scratch / "page.html", scratch / "large"});
    CHECK(large.exit == 0);
    CHECK(has(large.err, "the page shows the first 1.0 MB of 1.2 MB"));
    const std::string page = read_text(scratch / "page.html");
    CHECK(has(page, "the first 1.0 MB of 1.2 MB"));
    const Outcome small =
        run_linnet({"tokenize", "--html", scratch / "page.html", "--overwrite", scratch / "bytes"});
    CHECK(small.exit == 0);
    CHECK_FALSE(has(small.err, "shows"));
    const std::string bytes = read_text(scratch / "page.html");
    CHECK(run_linnet({"tokenize", "--invalid", "error", "--format", "count", scratch / "page.html"}).exit ==
          0);
    CHECK(has(bytes, "\\xff"));
    CHECK_FALSE(has(bytes, "\x1b"));
    CHECK_FALSE(has(bytes, "\xC2\x9B"));
}

TEST_CASE("names and control characters out of files never reach a terminal as they are") {
    Scratch scratch;
    const std::string csi = "\xC2\x9B", evil = "a" + csi + "2J";
    GgufWriter writer;
    writer.add("general.architecture", evil);
    writer.add("linnet.note", "\x1b]0;x\x07" + evil);
    const float one = 1;
    writer.add_tensor("one.weight", DType::f32, Shape(1),
                      [&](const GgufWriter::Sink& sink) { sink(&one, 4); });
    writer.write(scratch / (evil + ".gguf"));
    auto clean = [&](const Outcome& outcome) {
        const std::string all = outcome.out + outcome.err;
        CHECK_FALSE(has(all, csi));
        CHECK_FALSE(has(all, "\x1b"));
        CHECK_MESSAGE(has(all, "\\x9b"), all);
    };
    clean(run_linnet({"inspect", scratch / (evil + ".gguf")}));
    clean(run_linnet({"generate", "-m", scratch / (evil + ".gguf")}));
    clean(run_linnet({"generate", "--format", evil}));
    write_text(scratch / (evil + ".txt"), "one");
    clean(
        run_linnet({"tokenize", "--format", "count", scratch / (evil + ".txt"), scratch / (evil + ".txt")}));
    write_text(scratch / "pieces", evil);
    clean(run_linnet({"tokenize", "--format", "pieces", scratch / "pieces"}));
    // JSON may hold C1 as it is; a pipe gets texts as they are, a terminal does not.
    const Outcome json = run_linnet({"inspect", "--json", scratch / (evil + ".gguf")});
    CHECK_FALSE(has(json.out, csi));
    CHECK_MESSAGE(has(json.out, "a\\u009b2J"), json.out);
    CHECK(printable_json("\"\x7F\xC2\x9B\xC3\x9B\"") == "\"\\u007f\\u009b\xC3\x9B\"");
    REQUIRE(
        run_linnet({"tokenizer", "train", "--kind", "byte", "-o", scratch / "bytes.gguf", scratch / "pieces"})
            .exit == 0);
    const std::string back = "$LINNET tokenize -t " + (scratch / "bytes.gguf") + " " + (scratch / "pieces") +
                             " | $LINNET detokenize -t " + (scratch / "bytes.gguf");
    CHECK(has(run_shell(back).out, evil));
    CHECK(has(run_shell(back + " --json").out, "a\\u009b2J"));
    const std::string shown = on_terminal(back);
    if (!shown.empty()) CHECK_MESSAGE(has(shown, "a\\x9b2J"), shown);
}

TEST_CASE("generate spells out control characters on a terminal, and gives them to a pipe as they are") {
    if (!std::filesystem::exists("models/shakespeare.gguf") && run_linnet({"generate", "-n", "1"}).exit != 0)
        return skip("needs the built-in model");
    const std::string command = "$LINNET generate -p a$(printf \"\\\\033]0;x\\\\007\")b -n 0 --echo";
    const Outcome pipe = run_shell(command);
    CHECK(has(pipe.out,
              "a\x1b]0;x\x07"
              "b"));
    const std::string shown = on_terminal(command);
    if (shown.empty()) return;
    CHECK_MESSAGE(has(shown, "a\\x1b]0;x\\x07b"), shown);
    CHECK_FALSE(has(shown, "\x1b]0;x"));
}

TEST_CASE("a dumb terminal gets no escapes; a narrow one gets notes, errors and help folded at words") {
    Scratch scratch;
    write_text(scratch / "text", counting_text());
    write_text(scratch / "config", tiny_config());
    const std::string train = "$LINNET train " + (scratch / "config") + " --data " + (scratch / "text") +
                              " --out " + (scratch / "out");
    const std::string dumb = on_terminal(train, 80, "dumb");
    if (dumb.empty()) return;
    CHECK(has(dumb, "validation loss"));
    CHECK_FALSE(has(dumb, "\x1b"));
    CHECK_FALSE(has(
        on_terminal("$LINNET tokenize -t " + tiny_model() + " --format pieces -p one", 80, "dumb"), "\x1b"));
    CHECK_FALSE(has(on_terminal("$LINNET tokenizer train --vocab-size 270 -o " + (scratch / "t.json") + " " +
                                    (scratch / "text"),
                                80, "dumb"),
                    "\x1b"));
    CHECK_FALSE(has(on_terminal("$LINNET corpus -t " + (scratch / "t.json") + " -o " + (scratch / "c") + " " +
                                    (scratch / "text"),
                                80, "dumb"),
                    "\x1b"));
    auto fits = [](const std::string& text, std::size_t width) {
        std::istringstream lines(text);
        for (std::string line; std::getline(lines, line);) {
            std::size_t characters = 0;
            for (char c : line) characters += (static_cast<unsigned char>(c) & 0xC0) != 0x80 && c != '\r';
            if (has(line, "linnet ") || line.find(' ', 8) == std::string::npos) continue;  // examples, a word
            CHECK_MESSAGE(characters <= width, line);
        }
    };
    fits(on_terminal("$LINNET generate --help", 40), 40);
    fits(on_terminal("$LINNET --help", 40), 40);
    fits(on_terminal("$LINNET", 40), 40);
    const std::string refused = on_terminal(train, 40);
    CHECK(has(refused, "linnet: error: "));
    fits(refused.substr(refused.find(": expected")), 40);  // the path before it is one long word
    const std::string full = on_terminal(
        "$LINNET generate -m " + tiny_model() + " -p one -n 99 --temp 0 2>&1 >/dev/null", 40, "dumb");
    CHECK(has(full, "the context of 32 tokens"));
    fits(full, 40);
}

TEST_CASE("an option that another one gives its meaning is refused without it") {
    Scratch scratch;
    write_text(scratch / "text", "one two");
    const std::string model = tiny_model(), text = scratch / "text";
    const struct {
        std::string command, expected;
    } cases[] = {
        {"quantize --type q8_0 --ctx 8 " + model + " " + (scratch / "out.gguf"),
         "--ctx: expected --check or --importance as well, got neither"},
        {"generate -m " + model + " -p one --length-penalty 2",
         "--length-penalty: expected --beams as well, got none"},
        {"eval -m " + model + " -f " + text + " --length-penalty 2",
         "--length-penalty: expected --beams as well, got none"},
    };
    for (const auto& c : cases) {
        const Outcome outcome = run_shell("$LINNET " + c.command);
        CHECK(outcome.exit == 2);
        CHECK_MESSAGE(has(outcome.err, c.expected), outcome.err);
    }
}
