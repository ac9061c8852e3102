// linnet train as a person runs it: the folder it makes, a run cut short and taken up again, a disk that
// fills.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands/commands.h"
#include "commands/pseudo_terminal.h"
#include "commands/records.h"
#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;
using nlohmann::json;

namespace {

/// A folder with `text` and `config`; lines run in it, with $TRAIN for all but the output folder.
struct Run : Workplace {
    Run() : Workplace("TRAIN=\"$LINNET train config --data text --threads 1 --out\"") {
        write_text(s / "config", tiny_config());
    }
};

const char* const longer =
    " --set train.steps=400 --set train.eval_every=100 --set train.checkpoint_every=50 ";

/// Starts a long run in folder `name`, waits for its 120th record, sends the signal, and exits with the run's
/// code.
std::string cut_short(const std::string& name, const std::string& signal) {
    return "env --default-signal=INT $TRAIN " + name + longer + "2>/dev/null & pid=$!\n" +
           "until [ \"$(wc -l 2>/dev/null < " + name +
           "/log.jsonl)\" -gt 120 ]; do sleep 0.02; done 2>/dev/null\n" + "kill -" + signal +
           " $pid; wait $pid 2>/dev/null";
}

}  // namespace

TEST_CASE("train leaves a model, a report, a log of every step, and its last checkpoints") {
    Run run;
    Outcome outcome = run("$TRAIN out");
    CHECK(outcome.exit == 0);
    CHECK(outcome.out.empty());
    CHECK(has(outcome.err, "validation loss"));
    CHECK_FALSE(has(outcome.err, "\r"));  // no terminal: no live line
    int steps = 0, evaluations = 0, samples = 0;
    double first = 0, last = 0;
    for (const json& record : records(run.file("out/log.jsonl"))) {
        if (record["event"] == "step") {
            CHECK(record["step"] == ++steps);
            (steps == 1 ? first : last) = record["loss"];
        }
        evaluations += record["event"] == "eval";
        samples += record["event"] == "sample";
    }
    CHECK(steps == 60);
    CHECK(evaluations == 2);
    CHECK(samples == 2);
    CHECK(last < first);
    CHECK(has(run.file("out/report.html"), "<svg"));
    CHECK(run_linnet({"inspect", run.s / "out"}).exit == 0);
    int checkpoints = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(run.s / "out/checkpoints"))
        checkpoints++;
    CHECK(checkpoints <= 2);
}

TEST_CASE("train gives the same bytes for any number of threads") {
    Run run;
    Outcome outcome =
        run("for n in 1 2 3; do $LINNET train config --data text --threads $n --out t$n 2>/dev/null || exit; "
            "done\n"
            "sha256sum < t1/model.gguf; sha256sum < t2/model.gguf; sha256sum < t3/model.gguf");
    CHECK(outcome.exit == 0);
    CHECK(outcome.out.size() == 3 * 68);
    CHECK(outcome.out.substr(0, 68) == outcome.out.substr(68, 68));
    CHECK(outcome.out.substr(0, 68) == outcome.out.substr(136));
}

TEST_CASE("a run that was interrupted, terminated or killed goes on to the bytes of one that was not") {
    Run run;
    CHECK(run("$TRAIN whole" + std::string(longer) + "2>/dev/null").exit == 0);
    std::string whole = run.file("whole/model.gguf");
    for (const auto& [signal, code] :
         {std::pair{"INT", 130}, std::pair{"TERM", 143}, std::pair{"KILL", 137}}) {
        const auto& of_signal = signal;
        CAPTURE(of_signal);
        std::string name = signal;
        CHECK(run(cut_short(name, signal)).exit == code);
        CHECK(std::filesystem::exists(run.s / (name + "/last.gguf")) == (code != 137));
        CHECK(run.file(name + "/model.gguf") != whole);  // of the first evaluation
        Outcome resumed = run("$TRAIN " + name + " --resume" + longer);
        CHECK_MESSAGE(resumed.exit == 0, resumed.err);
        CHECK(has(resumed.err, "resum"));
        CHECK_FALSE(has(resumed.err, "was edited"));
        CHECK(run.file(name + "/model.gguf") == whole);
    }
}

TEST_CASE("train refuses to write over a run, and to resume another one") {
    Run run;
    CHECK(run("$TRAIN out 2>/dev/null").exit == 0);
    std::string before = run.file("out/model.gguf");
    Outcome again = run("$TRAIN out");
    CHECK(again.exit == 2);
    CHECK(is_one_error_line(again.err));
    CHECK(has(again.err, "--resume"));
    Outcome other = run("$TRAIN out --resume --set model.width=32");
    CHECK(other.exit == 5);
    CHECK(is_one_error_line(other.err));
    write_text(run.s / "text", counting_text() + "eleven\n");
    CHECK(run("$TRAIN out --resume").exit == 5);
    CHECK(run("$TRAIN none --resume").exit == 5);
    CHECK(run.file("out/model.gguf") == before);
}

TEST_CASE("a loss that is not finite ends the run with exit code 5 and keeps the last good checkpoint") {
    Run run;
    Outcome outcome = run(
        "$TRAIN out --steps 30 >/dev/null 2>&1 || exit\n"
        "$TRAIN out --resume --steps 60 --set train.optimizer.weight_decay=10 --set train.optimizer.lr=100 "
        "--set train.schedule.min_lr=100");
    CHECK(outcome.exit == 5);
    CHECK(has(outcome.err, "expected finite numbers"));
    CHECK(has(outcome.err, "checkpoint"));
    CHECK(has(run.file("out/report.html"), "no longer finite"));
    const Outcome on = run("$TRAIN out --resume --steps 60");
    CHECK(on.exit == 0);
    CHECK_MESSAGE(has(on.err, "was edited") == false, on.err);  // linnet wrote what is there
}

TEST_CASE("a full disk is an I/O error, and leaves nothing half-written") {
    Run run;
    std::string line =
        "unshare -m sh -c 'mkdir disk && mount -t tmpfs -o size=64k none disk && cp config text . "
        "2>/dev/null; ";
    if (run("unshare -m sh -c 'mkdir probe && mount -t tmpfs -o size=64k none probe' 2>/dev/null").exit !=
        0) {
        MESSAGE("not tried: this machine does not let a test mount a small disk");
        return;
    }
    Outcome outcome =
        run("export TRAIN\n" + line +
            "$TRAIN disk/out; code=$?; test ! -e disk/out/model.gguf || code=99; ls -AR disk; exit $code'");
    CHECK(outcome.exit == 4);
    CHECK(has(outcome.err, "No space left on device"));
    CHECK_FALSE(has(outcome.out, ".part"));
}

TEST_CASE("--json puts the log on stdout; --dry-run writes nothing; --time ends early") {
    Run run;
    Outcome outcome = run("$TRAIN out --json --quiet");
    CHECK(outcome.exit == 0);
    CHECK(outcome.err.empty());
    CHECK(outcome.out == run.file("out/log.jsonl"));
    Outcome dry = run("$TRAIN dry --dry-run");
    CHECK(dry.exit == 0);
    CHECK(has(dry.out, "peak_memory_mib"));
    CHECK_FALSE(std::filesystem::exists(run.s / "dry"));
    const Outcome object = run("$TRAIN dry --dry-run --json");
    CHECK(std::count(object.out.begin(), object.out.end(), '\n') == 1);
    CHECK(json::parse(object.out)["steps"] == 60);
    const Outcome resumed = run("$LINNET train --out out --resume --dry-run --steps 70");
    CHECK_MESSAGE(resumed.exit == 0, resumed.err);
    CHECK(has(resumed.out, "steps 70"));
    CHECK(run("$LINNET train --out none --resume --dry-run").exit == 5);
    Outcome timed = run("$TRAIN timed --time 1s --set train.steps=1000000 --no-early-stop");
    CHECK(timed.exit == 0);
    CHECK(std::filesystem::exists(run.s / "timed/model.gguf"));
    CHECK_MESSAGE(has(timed.err, "the learning rate was still 0.01 when the time was up: --steps "),
                  timed.err);
}

TEST_CASE(
    "under --time a config's own schedule wsd ends with the time, and with its own steps at the latest") {
    Run run;
    json config = json::parse(tiny_config());
    config["train"]["schedule"]["kind"] = "wsd";
    config["train"]["eval_every"] = config["train"]["checkpoint_every"] = 0;
    config["train"]["steps"] = 1000000;
    write_text(run.s / "long.json", config.dump());
    config["train"]["steps"] = 60;
    write_text(run.s / "short.json", config.dump());
    const std::string rest = " --data text --threads 1 --set train.precision=f32 --out ";
    const Outcome timed = run("$LINNET train long.json --time 3s" + rest + "timed");
    REQUIRE_MESSAGE(timed.exit == 0, timed.err);
    const std::vector<json> plans = records(run.file("timed/log.jsonl"), "plan"),
                            steps = records(run.file("timed/log.jsonl"), "step");
    REQUIRE(!plans.empty());
    CHECK(plans.back()["steps"] < 1000000);
    CHECK(steps.back()["lr"] < 0.005);
    CHECK(json::parse(run.file("timed/config.json"))["train"]["steps"] == plans.back()["steps"]);
    REQUIRE(run("$LINNET train short.json --time 100s" + rest + "in-time").exit == 0);
    CHECK(records(run.file("in-time/log.jsonl"), "plan").empty());
    REQUIRE(run("$LINNET train short.json" + rest + "free").exit == 0);
    CHECK(run.file("in-time/model.gguf") == run.file("free/model.gguf"));
    const Outcome set = run("$LINNET train long.json --time 0.5s --steps 2000000" + rest + "set");
    CHECK(records(run.file("set/log.jsonl"), "plan").empty());
    CHECK_MESSAGE(has(set.err, "the learning rate was still 0.01 when the time was up"), set.err);
}

TEST_CASE("every end of a run evaluates, writes a sample, and renews the report") {
    Run run;
    const std::string rare = " --set train.steps=1000000 --set train.eval_every=900000";
    CHECK(run("$TRAIN time --time 2s" + rare + " 2> said").exit == 0);
    CHECK(
        run("env --default-signal=INT $TRAIN signal" + rare +
            " 2> said-too & pid=$!\n"
            "until [ \"$(wc -l 2>/dev/null < signal/log.jsonl)\" -gt 20 ]; do sleep 0.02; done 2>/dev/null\n"
            "kill -INT $pid; wait $pid 2>/dev/null")
            .exit == 130);
    for (const char* name : {"time", "signal"}) {
        CAPTURE(name);
        const std::string out = name;
        const std::vector<json> all = records(run.file(out + "/log.jsonl"));
        const json end = all.back();
        CHECK(end["event"] == "end");
        CHECK(end["reason"] == name);
        for (const char* event : {"eval", "sample"}) {
            const std::vector<json> found = records(run.file(out + "/log.jsonl"), event);
            REQUIRE(!found.empty());
            CHECK(found.back()["step"] == end["step"]);
        }
        CHECK(has(run.file(out + "/report.html"), out == "time" ? "its time was up" : "stopped by a signal"));
        // What a sample says stands on the terminal, too.
        const std::string sample = records(run.file(out + "/log.jsonl"), "sample").back()["prompt"];
        const std::string said = run.file(out == "time" ? "said" : "said-too");
        CHECK_MESSAGE(has(said, sample.substr(0, sample.size() - 1)), said);
    }
}

TEST_CASE("a resume keeps an edited config.json beside the run's own, and goes on with that") {
    Run run;
    const std::string resume = "$LINNET train --out out --resume --threads 1 --steps ";
    REQUIRE(run("$TRAIN out --steps 20").exit == 0);
    const std::string own = run.file("out/config.json");
    CHECK_FALSE(has(run(resume + "25").err, "was edited"));
    CHECK_FALSE(has(run(resume + "30").err, "was edited"));
    json edited = json::parse(own);
    edited["train"]["optimizer"]["lr"] = 0.5;
    for (int round = 0; round < 2; round++) {
        write_text(run.s / "out/config.json", edited.dump());
        const Outcome resumed = run(resume + std::to_string(35 + round));
        CHECK(resumed.exit == 0);
        const std::string kept = round == 0 ? "out/config.edited.json" : "out/config.edited-2.json";
        CHECK_MESSAGE(
            has(resumed.err, "kept as " + kept + " (`linnet train " + kept + " --out out --resume` goes on"),
            resumed.err);
        CHECK(run.file(kept) == edited.dump());
        CHECK(json::parse(run.file("out/config.json"))["train"]["optimizer"]["lr"] == 0.01);
    }
    // Named as the run's config it is what the run goes on with.
    write_text(run.s / "out/config.json", edited.dump());
    const Outcome named = run("$LINNET train out/config.json --out out --resume --threads 1 --steps 40");
    CHECK_FALSE(has(named.err, "was edited"));
    CHECK(json::parse(run.file("out/config.json"))["train"]["optimizer"]["lr"] == 0.5);
}

TEST_CASE("a run's folder stands for its model in every command that takes one") {
    Run run;
    write_text(run.s / "word", "one");
    REQUIRE(run("$TRAIN r --steps 2").exit == 0);
    REQUIRE(run("$LINNET finetune -m r --lora 1 --data text --steps 1 --threads 1 --out adapted").exit == 0);
    REQUIRE(run("$TRAIN enc --steps 2 --set model.kind=encoder --set tokenizer.kind=wordpiece --set "
                "tokenizer.vocab_size=300")
                .exit == 0);
    const std::pair<const char*, const char*> lines[] = {
        {"generate", "-m r -p one -n 1"},
        {"generate", "-m r --draft r -p one -n 1"},
        {"generate", "-m r --lora adapted -p one -n 1"},
        {"chat", "-m r -n 1 <word"},
        {"corpus", "-t r/ --no-end-tokens -o c text"},
        {"train", "config --data text --steps 1 --out t1 --set tokenizer.kind=file --set tokenizer.file=r"},
        {"train", "--from r --data text --steps 1 --out t2"},
        {"finetune", "-m r --data text --steps 1 --out t3"},
        {"merge", "-m r --lora adapted -o merged.gguf"},
        {"eval", "-m r -f text --windows 1"},
        {"embed", "-m enc -p one"},
        {"predict", "-m enc -p '[MASK]'"},
        {"quantize", "r q.gguf --type q8_0"},
        {"convert", "r folder"},
        {"convert", "adapted peft --base r"},
        {"detokenize", "-t r </dev/null"},
        {"tokenize", "-t r text"},
        {"tokenizer convert", "r t.json"},
        {"tokenizer verify", "r r text"},
        {"inspect", "r"},
        {"inspect logits", "-m r -p one"},
        {"inspect attention", "-m r -p one"},
        {"inspect graph", "-m r"},
        {"bench", "-m r -p 1 -n 1 -r 1"},
        {"bench train", "config --steps 1 --set tokenizer.kind=file --set tokenizer.file=r"},
        {"bench tokenize", "-t r -r 1 text"}};
    for (const auto& [command, rest] : lines) {
        const std::string line = std::string("$LINNET ") + command + " " + rest;
        CAPTURE(line);
        const Outcome outcome = run(line);
        CHECK_MESSAGE(outcome.exit == 0, outcome.err);
    }
    for (const linnet::Command& command : linnet::commands()) {
        const std::string help = run(std::string("$LINNET ") + command.name + " --help").out;
        if (!has(help, "MODEL") && !has(help, "--tokenizer") && !has(help, "model to read")) continue;
        const bool tried = std::any_of(std::begin(lines), std::end(lines), [&](const auto& line) {
            return line.first == std::string_view(command.name);
        });
        CHECK_MESSAGE(tried, command.name);
    }
}

TEST_CASE("without a config one is chosen that ends on time, and config.json gives the same run again") {
    Run run;
    Outcome outcome = run("$LINNET train --data text --out d --time 2s --threads 1");
    CHECK(outcome.exit == 0);
    for (const char* part :
         {"text: one document", "chosen for 2.0s", "parameters, vocabulary 256", "wrote d/model.gguf"})
        CHECK_MESSAGE(has(outcome.err, part), part);
    json config = json::parse(run.file("d/config.json"));
    CHECK(config["train"]["schedule"]["kind"] == "wsd");
    CHECK(run("$LINNET train d/config.json --data text --out e --threads 1 2>/dev/null").exit == 0);
    auto losses = [&](const std::string& name) {
        std::vector<double> found;
        for (const json& record : records(run.file(name + "/log.jsonl"), "step"))
            found.push_back(record["loss"]);
        return found;
    };
    std::vector<double> first = losses("d"), again = losses("e");
    REQUIRE(!first.empty());
    REQUIRE(again.size() >= first.size());  // the clock may have cut the first run short
    again.resize(first.size());
    CHECK(first == again);
    Outcome steps = run("$LINNET train --data text --out f --steps 3 --threads 1");
    CHECK(steps.exit == 0);
    CHECK(has(steps.err, "step 3 of 3"));
    CHECK(json::parse(run.file("f/config.json"))["train"]["steps"] == 3);
    const Outcome refused = run("$LINNET train --data text --out g --steps 3 --set model.kv_heads=7");
    CHECK(refused.exit == 3);
    CHECK_MESSAGE(refused.err.starts_with("linnet: error: model.kv_heads: expected"), refused.err);
}

TEST_CASE("a resumed run that has no steps left says so, and what goes on with it") {
    Run run;
    REQUIRE(run("$TRAIN out --steps 20").exit == 0);
    const std::string resume = "$LINNET train --out out --resume --threads 1 ",
                      ended = "the run has ended at step 20; --steps or --epochs goes on";
    for (const char* more : {"--time 5s", "--steps 20", "", "--set train.steps=20"}) {
        CAPTURE(more);
        const Outcome resumed = run(resume + more);
        CHECK(resumed.exit == 0);
        CHECK_MESSAGE(has(resumed.err, ended), resumed.err);
        CHECK_FALSE(has(resumed.err, "resuming"));
        CHECK_FALSE(has(resumed.err, "(--resume goes on)"));
        CHECK(records(run.file("out/log.jsonl")).back()["reason"] == "steps");
    }
    const Outcome on = run(resume + "--steps 30");
    CHECK(on.exit == 0);
    CHECK(has(on.err, "resuming at step 20"));
    CHECK(has(on.err, "step 30 of 30"));
    CHECK_FALSE(has(on.err, "has ended"));
}

TEST_CASE("a run with nothing to evaluate on says so") {
    Run run;
    CHECK_FALSE(has(run("$TRAIN usual --steps 2").err, "too little is held out"));
    const Outcome none = run("$TRAIN none --steps 2 --set train.validation_fraction=0");
    CHECK(none.exit == 0);
    CHECK_MESSAGE(
        has(none.err,
            "too little is held out (0 tokens, a window takes 33): no evaluation, model.gguf is the last"),
        none.err);
    write_text(run.s / "text", counting_text().substr(0, 200));
    const Outcome little = run("$TRAIN little --steps 2");
    CHECK(little.exit == 0);
    CHECK_MESSAGE(has(little.err, "tokens, a window takes 33): no evaluation"), little.err);
    CHECK_FALSE(has(little.err, "(0 tokens"));
}

TEST_CASE("the live line of a run whose time is up has no time left") {
    Run run;
    PseudoTerminal terminal(
        {"train", run.s / "config", "--data", run.s / "text", "--out", run.s / "out", "--threads", "1",
         "--steps", "1000000", "--time", "0.3s", "--no-early-stop", "--set", "train.eval_every=0"},
        {"LANG=C.UTF-8"});
    CHECK(terminal.exit() == 0);
    CHECK_MESSAGE(has(terminal.printed(), "0.0s left"), terminal.printed());
    CHECK_FALSE(has(terminal.printed(), "? left"));
}

TEST_CASE("a resume needs no --data, and a run's folder stands for its model, also after kill -9") {
    Run run;
    CHECK(run(cut_short("cut", "KILL")).exit == 137);
    CHECK(run("$LINNET eval -m cut --file text --windows 2 --json").exit == 0);
    CHECK(run("$LINNET tokenize -m cut --format count text").exit == 0);
    CHECK(run("$LINNET inspect cut").exit == 0);
    // How far it came is the machine's speed; an end behind that would be refused.
    const std::string checkpoints = run("ls cut/checkpoints").out;
    const int reached = std::stoi(checkpoints.substr(checkpoints.rfind('-') + 1));
    const std::string on = " --resume --steps " + std::to_string(reached + 10),
                      further = " --resume --steps " + std::to_string(reached + 20);
    CHECK(run("mkdir elsewhere && cd elsewhere && $LINNET train --out ../cut" + on + " 2>/dev/null").exit ==
          0);
    CHECK(run("mv text moved; $LINNET train --out cut" + further + " 2>/dev/null").exit == 4);
    CHECK(run("$LINNET train --out cut" + further + " --data moved 2>/dev/null").exit == 0);
    CHECK(run("$LINNET train --out none").exit == 2);  // a new run needs it
    const Outcome young = run("mkdir young; echo '{}' > young/log.jsonl; $LINNET eval -m young --file moved");
    CHECK(young.exit == 3);
    CHECK_MESSAGE(has(young.err, "a run before its first evaluation"), young.err);
}

TEST_CASE("where the model is overfitting the best one is kept, and the run ends; resumed, it is the same") {
    Run run;
    std::string noise;  // nothing can be learned from it but itself
    for (unsigned i = 0, x = 1; i < 1500; i++)
        noise += static_cast<char>('a' + (x = x * 1664525 + 1013904223) / 65536 % 26);
    write_text(run.s / "noise", noise);
    const std::string line =
        "$LINNET train config --data noise --threads 1 --set train.steps=2000 --set "
        "train.eval_every=20 --set train.checkpoint_every=20 --set train.optimizer.lr=1e-2 --set "
        "train.schedule.kind=constant --set train.validation_fraction=0.3 ";
    Outcome outcome = run(line + "--out a");
    CHECK(outcome.exit == 0);
    CHECK(has(outcome.err, "the model is overfitting; ending"));
    CHECK(has(run.file("a/log.jsonl"), R"("reason":"overfitting")"));
    CHECK(run.file("a/model.gguf") != run.file("a/last.gguf"));
    CHECK(has(run.file("a/report.html"), "ended as the model was overfitting"));
    run(line +
        "--out b 2>/dev/null & pid=$!\nuntil [ \"$(wc -l 2>/dev/null < b/log.jsonl)\" -gt 50 ]; do sleep "
        "0.01; "
        "done 2>/dev/null; kill -9 $pid; wait $pid 2>/dev/null");
    CHECK(run(line + "--out b --resume 2>/dev/null").exit == 0);
    CHECK(run.file("b/model.gguf") == run.file("a/model.gguf"));
    // A run that has ended early does not go on, unless --no-early-stop is given.
    const std::string last = run.file("a/last.gguf");
    CHECK(run(line + "--out a --resume 2>/dev/null").exit == 0);
    CHECK(run.file("a/last.gguf") == last);
    CHECK(run(line + "--out a --resume --no-early-stop --steps 600 2>/dev/null").exit == 0);
    CHECK(run.file("a/last.gguf") != last);
    Outcome on = run(line + "--out c --steps 400 --no-early-stop");
    CHECK(on.exit == 0);
    CHECK(has(on.err, "step 400 of 400"));
    CHECK(has(run(line + "--out c --resume --steps 440").err, "step 440 of 440"));  // as it began
}

TEST_CASE("train reads what corpus reads, says what it was, and refuses what is no text") {
    Run run;
    const std::string line = "$LINNET train config --threads 1 --steps 2 ";
    CHECK(
        run("i=0; while [ $i -lt 300 ]; do echo '{\"text\": \"line '$i' of a text that goes on\", \"id\": "
            "7}'; i=$((i+1)); "
            "done > many.jsonl; gzip -k many.jsonl; mkdir folder; cp text folder/a.txt; cp text folder/b.txt")
            .exit == 0);
    Outcome packed = run(line + "--data many.jsonl.gz --out gz");
    CHECK(packed.exit == 0);
    CHECK(has(packed.err, "300 documents of the field text"));
    Outcome folder = run(line + "--data folder --out folder-run");
    CHECK(folder.exit == 0);
    CHECK(has(folder.err, "2 documents in 2 files"));
    CHECK(run(line + "--data folder/a.txt --data many.jsonl --out both 2>/dev/null").exit == 0);
    CHECK(run("cat text | " + line + "--data - --out piped 2>/dev/null").exit == 0);
    CHECK(run(line + "--data text --out plain 2>/dev/null").exit == 0);
    CHECK(run.file("piped/model.gguf") == run.file("plain/model.gguf"));
    Outcome again = run("$LINNET train --out piped --resume --steps 3");
    CHECK(again.exit == 2);
    CHECK(has(again.err, "stdin"));
    Outcome binary = run(line + "--data plain/model.gguf --out no");
    CHECK(binary.exit == 3);
    CHECK(has(binary.err, "plain/model.gguf: expected UTF-8 text, got a GGUF model file"));
    CHECK(is_one_error_line(binary.err));
}

TEST_CASE("a sample begins with the held-out text where no line of it is fit to begin with") {
    Run run;
    std::string text;
    while (text.size() < 20000) text += "ünd eine Zeile ohne Ende ";
    write_text(run.s / "text", text);
    CHECK(run("$TRAIN out --steps 2").exit == 0);
    const std::vector<json> samples = records(run.file("out/log.jsonl"), "sample");
    REQUIRE(!samples.empty());
    const std::string prompt = samples[0]["prompt"];
    CHECK(prompt.size() > 20);
    CHECK(prompt.size() <= 40);
    CHECK_MESSAGE(has(text, prompt), prompt);
    CHECK_FALSE(has(prompt, "\xEF\xBF\xBD"));
}

TEST_CASE("on a terminal a live line shows step, loss, speed, share of the peak and time left") {
    Run run;
    if (run("script -qec true /dev/null").exit != 0)
        return skip("needs util-linux's script and a pseudo-terminal");
    Outcome outcome = run("export TERM=xterm; script -qec \"stty cols 120; $TRAIN out\" /dev/null");
    for (const char* part : {"\r", "/60", "loss ", "tokens/s", "% of peak", " left"})
        CHECK_MESSAGE(has(outcome.out, part), part);
}
