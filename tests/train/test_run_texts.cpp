// Several texts with weights, and epochs, in whole runs.
#include <doctest/doctest.h>

#include <cmath>
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
    write_text(run.s / "pairs.jsonl", R"({"prompt": "one", "completion": "two"})"
                                      "\n");
    Outcome examples = run("$LINNET finetune --out bad --data pairs.jsonl=2 --data text");
    CHECK(examples.exit == 3);
    CHECK(has(examples.err, "pairs.jsonl: expected texts, where --data has weights"));
    CHECK(run("$TRAIN --out bad --data no=such").exit == 4);
    CHECK(run("$TRAIN --out bad --data text --epochs 1 --steps 5").exit == 2);
}
