// Several texts with weights, and epochs, in whole runs.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands/records.h"
#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;
using nlohmann::json;

namespace {

struct Run : Workplace {
    Run() : Workplace("TRAIN=\"$LINNET train config --threads 1 --set train.sample_tokens=0\"") {
        write_text(s / "config", tiny_config());
        std::string other;
        for (int i = 0; i < 300; i++) other += "eleven twelve thirteen\n";
        write_text(s / "other=b", other);
    }
    /// Writes that many lines, after each of which `answer` is to be learned.
    void write_pairs(const std::string& name, int count, const std::string& answer) const {
        static const char* const numbers[] = {"one", "two", "three", "four", "five"};
        std::string lines;
        for (int i = 0; i < count; i++)
            lines += json({{"prompt", numbers[i % 5]}, {"completion", answer}}).dump() + "\n";
        write_text(s / name, lines);
    }
    std::vector<json> log(const std::string& out, const std::string& event) const {
        return records(file(out + "/log.jsonl"), event);
    }
};

}  // namespace

TEST_CASE("texts with weights are each evaluated by themselves, and a resumed run goes on in each") {
    Run run;
    const std::string data = " --data text=3 --data other=b ";
    Outcome whole = run("$TRAIN --out whole" + data);
    REQUIRE(whole.exit == 0);
    CHECK(has(whole.err, "text: one document, 9.8 kB, weight 3"));
    CHECK(has(whole.err, "other=b: one document, 6.9 kB, weight 1"));
    std::vector<json> evals = run.log("whole", "eval");
    REQUIRE(evals.size() == 2);
    const json& texts = evals.back()["texts"];
    REQUIRE(texts.size() == 2);
    CHECK(texts[0]["name"] == "text");
    CHECK(texts[1]["name"] == "other=b");
    const double mean = (3 * texts[0]["loss"].get<double>() + texts[1]["loss"].get<double>()) / 4;
    CHECK(evals.back()["loss"].get<double>() == doctest::Approx(mean).epsilon(1e-5));
    CHECK(has(run.file("whole/report.html"), "Loss by text"));
    // 8 sequences per step: of 40 steps 240 and 80.
    CHECK(
        run("$TRAIN --out cut" + data + "2>/dev/null; rm -r cut/checkpoints/step-00000060 cut/*.gguf").exit ==
        0);
    const json manifest = json::parse(run.file("cut/checkpoints/step-00000040/manifest.json"));
    CHECK(manifest["texts"][0]["sequences"] == 240);
    CHECK(manifest["texts"][1]["sequences"] == 80);
    Outcome other = run("$TRAIN --out cut --resume --data text=2 --data other=b");
    CHECK(other.exit == 5);
    CHECK(has(other.err, "expected the weights that the run began with"));
    CHECK(run("$TRAIN --out cut --resume").exit == 0);
    CHECK(run.file("cut/model.gguf") == run.file("whole/model.gguf"));
    const std::vector<json> resumed = run.log("cut", "eval");
    REQUIRE(resumed.size() == 2);
    for (const json& eval : resumed) {  // the second was measured after the resume, which was told no names
        CHECK(eval["texts"][0]["name"] == "text");
        CHECK(eval["texts"][1]["name"] == "other=b");
    }
    // Without weights all inputs are one text, as before.
    CHECK(run("$TRAIN --out plain --data text --data other=b --steps 2").exit == 0);
    CHECK_FALSE(run.log("plain", "eval").back().contains("texts"));
    CHECK_FALSE(json::parse(run.file("plain/checkpoints/step-00000002/manifest.json")).contains("texts"));
}

TEST_CASE("a corpus and a text are trained on together, with the corpus's tokenizer") {
    Run run;
    CHECK(run("$LINNET tokenizer train --vocab-size 270 -o t.json text && $LINNET corpus -t t.json -o shards "
              "text")
              .exit == 0);
    Outcome outcome = run("$TRAIN --out out --data shards=1 --data other=b=1 --steps 3");
    CHECK_MESSAGE(outcome.exit == 0, outcome.err);
    CHECK(has(outcome.err, "the tokenizer is that of the corpus"));
    const json texts = run.log("out", "eval").back()["texts"];  // one document is held out as a whole, or not
    REQUIRE(!texts.empty());
    CHECK(texts.back()["name"] == "other=b");
}

TEST_CASE("a run of several texts goes on with all of them as they were") {
    Run run;
    const std::string train = "$TRAIN --out out --data text=2 --data other=b=1 ";
    REQUIRE(run(train + "--steps 3").exit == 0);
    std::string other = run.file("other=b");
    other.replace(0, 6, "twelve");
    write_text(run.s / "other=b", other);
    const Outcome refused = run(train + "--resume --steps 6");
    CHECK(refused.exit == 5);
    CHECK_MESSAGE(has(refused.err, "expected the text that the run began with"), refused.err);
}

TEST_CASE("a corpus with another tokenizer than made it is refused, though that has as many tokens") {
    Run run;
    REQUIRE(run("$LINNET tokenizer train --vocab-size 270 -o t.json text && "
                "$LINNET tokenizer train --vocab-size 270 -o u.json other=b && "
                "$LINNET corpus -t t.json -o shards text && $LINNET corpus -t u.json -o others text && "
                "cp others/tokenizer.gguf shards/tokenizer.gguf")
                .exit == 0);
    const Outcome refused = run("$TRAIN --out out --data shards --steps 3");
    CHECK(refused.exit == 3);
    CHECK_MESSAGE(has(refused.err, "shards/tokenizer.gguf: sha256: expected "), refused.err);
    CHECK_MESSAGE(has(refused.err, ", which made the corpus, got "), refused.err);
}

TEST_CASE("--epochs ends when all has been read so often; weights that are none are refused") {
    Run run;
    Outcome dry = run("$TRAIN --out dry --data text --epochs 3 --dry-run");
    CHECK(dry.exit == 0);
    const double tokens = number_of(dry.out, "train_tokens"), each = number_of(dry.out, "tokens_per_step");
    CHECK(number_of(dry.out, "steps") == std::ceil(3 * tokens / each));
    CHECK(run("$TRAIN --out out --data text --epochs 0.3").exit == 0);
    const json config = json::parse(run.file("out/config.json"));
    CHECK(config["train"]["steps"] == run.log("out", "end").at(0)["step"]);
    Outcome chosen = run("$LINNET train --out chosen --data text --epochs 1 --threads 1");
    CHECK(chosen.exit == 0);
    for (const char* bad : {"text=0", "text=-1", "text=x", "text=", "text=nan", "text=1e300"}) {
        Outcome refused = run("$TRAIN --out bad --data other=b --data " + std::string(bad));
        CHECK_MESSAGE(refused.exit == 2, bad);
        CHECK(is_one_error_line(refused.err));
        CHECK(has(refused.err, "PATH=WEIGHT"));
    }
    CHECK(run("$TRAIN --out bad --data no=such").exit == 4);
    CHECK(run("$TRAIN --out bad --data text --epochs 1 --steps 5").exit == 2);
}

TEST_CASE(
    "texts and examples are mixed by their weights: each is evaluated, and a run goes on exactly from an "
    "older checkpoint") {
    Run run;
    run.write_pairs("pairs.jsonl", 120, " two");
    run.write_pairs("more.jsonl", 40, " eleven");
    const std::string data = " --set train.precision=f32 --data text --data pairs.jsonl=3 --data more.jsonl ";
    const Outcome whole = run("$TRAIN --out whole" + data);
    REQUIRE_MESSAGE(whole.exit == 0, whole.err);
    CHECK(has(whole.err, "text: one document, 9.8 kB, weight 1"));
    CHECK(has(whole.err, "pairs.jsonl: 120 prompts with completions, "));
    CHECK(has(whole.err, "more.jsonl: 40 prompts with completions, "));
    // Every character of the text counts, and of an example its completion and what ends it.
    const json start = run.log("whole", "start").at(0);
    CHECK(start["train_tokens"].get<std::size_t>() + start["validation_tokens"].get<std::size_t>() ==
          run.file("text").size() + 120 * 5 + 40 * 8);
    const std::vector<json> evals = run.log("whole", "eval");
    REQUIRE(evals.size() == 2);
    CHECK(evals[1]["loss"].get<double>() < evals[0]["loss"].get<double>());
    const json& after = evals[1]["texts"];
    REQUIRE(after.size() == 3);
    double mean = 0;
    for (std::size_t i = 0; i < 3; i++) {
        CHECK(after[i]["name"] == std::vector<std::string>{"text", "pairs.jsonl", "more.jsonl"}[i]);
        CHECK(after[i]["bpb"].get<double>() > 0);
        mean += (i == 1 ? 3 : 1) * after[i]["loss"].get<double>() / 5;
    }
    CHECK(evals[1]["loss"].get<double>() == doctest::Approx(mean).epsilon(1e-5));
    CHECK(after[2]["tokens"].get<int>() % 8 == 0);  // of each example held out, so many are learned
    CHECK(has(run.file("whole/report.html"), "Loss by text"));
    // 8 sequences per step.
    CHECK(run("$TRAIN --out cut" + data + "; rm -r cut/checkpoints/step-00000060 cut/*.gguf").exit == 0);
    const json manifest = json::parse(run.file("cut/checkpoints/step-00000040/manifest.json"));
    CHECK(manifest["texts"] == json({{{"weight", 1.0}, {"sequences", 64}},
                                     {{"weight", 3.0}, {"sequences", 192}},
                                     {{"weight", 1.0}, {"sequences", 64}}}));
    run.refuses("$LINNET train --out cut --resume --data text --data pairs.jsonl=2 --data more.jsonl", 5,
                "expected the weights that the run began with");
    CHECK(run("$LINNET train --out cut --resume --threads 3").exit == 0);  // nor does that change a bit
    CHECK(run.file("cut/model.gguf") == run.file("whole/model.gguf"));
    CHECK(run.file("cut/last.gguf") == run.file("whole/last.gguf"));
}

TEST_CASE("an epoch of a mixture is all windows of its texts and all bins of its examples") {
    Run run;
    run.write_pairs("pairs.jsonl", 7, " two");  // 5 tokens of each are learned
    const std::string line = "$TRAIN --out dry --set train.validation_fraction=0 --epochs 10 --dry-run ";
    const Outcome one = run(line + "--data text"), both = run(line + "--data text=2 --data pairs.jsonl");
    REQUIRE_MESSAGE(both.exit == 0, both.err);
    const double text = number_of(one.out, "train_tokens"), each = number_of(both.out, "tokens_per_step");
    CHECK(number_of(both.out, "train_tokens") == text + 7 * 5);
    // With " two" and the end "three" has 10 tokens, thus 9 rows; "four" and "five" have 8, "one" and
    // "two" 7. One and two come twice: 53 rows, two bins of 32.
    CHECK_MESSAGE(has(both.err, "read in 386 steps: text 6.7 times, pairs.jsonl 515 times"), both.err);
    CHECK(number_of(both.out, "steps") == std::ceil(10 * (text + 2 * 32) / each));
}

TEST_CASE("a text of a mixture that is too small to be evaluated is named") {
    Run run;
    write_text(run.s / "little", run.file("text").substr(0, 200));
    const std::string missing = ": too little is held out: it is not evaluated\n",
                      none = ": no evaluation, model.gguf is the last\n";
    const Outcome some = run("$TRAIN --out some --steps 2 --data text --data little=2");
    CHECK_MESSAGE(some.exit == 0, some.err);
    CHECK_MESSAGE(has(some.err, "little" + missing), some.err);
    CHECK_FALSE(has(some.err, "text" + missing));
    CHECK_FALSE(has(some.err, none));
    CHECK(run.log("some", "eval").back()["texts"].size() == 1);
    CHECK_FALSE(has(run("$TRAIN --out all --steps 2 --data text --data other=b=2").err, missing));
    const std::string line = "$TRAIN --out none --overwrite --steps 2 --set train.validation_fraction=0 ";
    const Outcome streams = run(line + "--data text --data little=2");
    CHECK_MESSAGE(has(streams.err, "too little is held out (0 tokens, a window takes 33)" + none),
                  streams.err);
    CHECK_FALSE(has(streams.err, missing));
    // Of examples no window is taken.
    run.write_pairs("pairs.jsonl", 12, " two");
    const Outcome mixed = run(line + "--data text --data pairs.jsonl=2");
    CHECK_MESSAGE(has(mixed.err, "too little is held out" + none), mixed.err);
}

TEST_CASE("what cannot be mixed is refused in one line") {
    Run run;
    run.write_pairs("pairs.jsonl", 12, " two");
    write_text(
        run.s / "talks.jsonl",
        R"({"messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]})"
        "\n");
    for (const char* bad : {"0", "-1", "x"})
        run.refuses("$TRAIN --out bad --data text --data pairs.jsonl=" + std::string(bad), 2, "PATH=WEIGHT");
    run.refuses("$LINNET train --out bad --steps 2 --data text --data pairs.jsonl=2", 3,
                "pairs.jsonl: expected texts, where no config is given, got examples with answers");
    run.refuses("$TRAIN --out bad --set model.kind=encoder --data text --data pairs.jsonl=2", 3,
                "pairs.jsonl: expected texts, as train.objective is masked, got examples with answers");
    run.refuses("$TRAIN --out bad --set model.kind=encoder-decoder --data text --data pairs.jsonl=2", 2,
                "--data: expected files of examples without weights, got a weight");
    run.refuses("$TRAIN --out bad --data text --data talks.jsonl=2", 3,
                "talks.jsonl: line 1: expected texts, or prompts with completions, for a model that begins "
                "from nothing, got a conversation");
    run.refuses("$TRAIN --out bad --data text --data pairs.jsonl", 3,
                "text: expected JSON Lines, as the other data are, got another file (with weights, --data "
                "PATH=WEIGHT, they are mixed)");
    // Nothing is told of examples that are too long where another text is refused then.
    write_text(run.s / "little", "one two");
    const std::string mixed =
        "$TRAIN --set train.sequence=8 --steps 2 --out bad --data pairs.jsonl=2 --data ";
    run.refuses(mixed + "little", 3, "little: training split: expected at least 9 tokens");
    CHECK_FALSE(std::filesystem::exists(run.s / "bad/log.jsonl"));
    CHECK(has(run(mixed + "text").err,
              "pairs.jsonl: 2 of 12 examples are longer than train.sequence (8 tokens) and lose their ends"));
}
