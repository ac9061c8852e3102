// What says when a run ends: --steps, --epochs and --time, and how often texts are read until then.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "commands/tiny.h"
#include "support.h"
#include "train/small_run.h"

using namespace linnet::test;
using nlohmann::json;

TEST_CASE("a time that is too short for an evaluation is refused, whatever the config is") {
    const SmallRun run;
    const std::string least = "--time: expected at least ";
    for (const char* more : {"", " --set train.schedule.kind=wsd", " --set train.schedule.kind=cosine",
                             " --steps 5", " --set train.steps=5", " --epochs 1"})
        run.refuses("$TRAIN --out short --time 0.00001s" + std::string(more), 2, least);
    CHECK_FALSE(std::filesystem::exists(run.s / "short/log.jsonl"));
    REQUIRE(run("$TRAIN --out out --steps 20").exit == 0);
    const std::string log = run.file("out/log.jsonl");
    run.refuses("$LINNET train --out out --resume --steps 30 --threads 1 --time 0.00001s", 2, least);
    CHECK(run.file("out/log.jsonl") == log);
    // A run that has ended takes no more steps.
    CHECK(run("$LINNET train --out out --resume --threads 1 --time 0.00001s").exit == 0);
}

TEST_CASE("steps or epochs that end before where a resumed run stands are refused, with that step") {
    const SmallRun run;
    REQUIRE(run("$TRAIN --out out --steps 20").exit == 0);
    const std::string log = run.file("out/log.jsonl"), config = run.file("out/config.json");
    const std::string resume = "$LINNET train --out out --resume --threads 1 ";
    run.refuses(resume + "--steps 3", 2, "--steps: expected at least 20, where the run stands, got 3");
    run.refuses(resume + "--epochs 0.0001", 2,
                "--epochs: expected at least step 20, where the run stands, got step 1");
    run.refuses(resume + "--set train.steps=3", 2,
                "--set: train.steps: expected at least 20, where the run stands, got 3");
    write_text(run.s / "short.json",
               json::parse(tiny_config())
                   .patch(json::parse(R"([{"op":"add","path":"/train/steps","value":7}])"))
                   .dump());
    run.refuses("$LINNET train short.json --out out --resume --threads 1 --set train.sample_tokens=0", 5,
                "short.json: train.steps: expected at least 20, where the run stands, got 7");
    CHECK(run.file("out/log.jsonl") == log);
    CHECK(run.file("out/config.json") == config);
    const Outcome on = run(resume + "--epochs 1");
    CHECK_MESSAGE(on.exit == 0, on.err);
}

TEST_CASE("steps that --set gives are refused beside --epochs") {
    const SmallRun run;
    run.refuses("$TRAIN --out x --set train.steps=5 --epochs 0.5", 2,
                "--epochs: expected no --set train.steps beside it, as each says when the run ends, got "
                "train.steps=5");
    CHECK_FALSE(std::filesystem::exists(run.s / "x"));
}

TEST_CASE("of texts with weights it is said how often each is read") {
    const SmallRun run;
    std::string other;
    for (int i = 0; i < 300; i++) other += "eleven twelve thirteen\n";
    write_text(run.s / "other", other);
    const std::string line =
        "$LINNET train config --threads 1 --set train.sample_tokens=0 --set train.validation_fraction=0 ";
    // 9 800 and 6 900 tokens, 16 700 together: 66 steps of 8 windows of 32, 396 and 132 of them.
    const std::string said = "read in 66 steps: text 1.3 times, other 0.61 times";
    const Outcome dry = run(line + "--out dry --data text=3 --data other=1 --epochs 1 --dry-run");
    CHECK(dry.exit == 0);
    CHECK_MESSAGE(has(dry.err, said), dry.err);
    const Outcome whole = run(line + "--out whole --data text=3 --data other=1 --epochs 1");
    CHECK_MESSAGE(has(whole.err, said), whole.err);
    CHECK_FALSE(has(run(line + "--out one --data text --data other --steps 2").err, "read in"));
    CHECK(has(run("$LINNET train --help").out, "with weights, all"));
}

TEST_CASE("a resumed run of a template's file needs neither the folder that it was named in nor the file") {
    const SmallRun run;
    std::string chats;
    for (int i = 0; i < 40; i++)
        chats +=
            R"({"messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]})"
            "\n";
    write_text(run.s / "chats.jsonl", chats);
    write_text(run.s / "form.json",
               R"({"user": {"before": "u ", "after": "\n"}, "assistant": {"before": "a ", "after": "\n"}})");
    REQUIRE(
        run("$LINNET train --data text --threads 1 --steps 1 --set train.sample_tokens=0 --out base && "
            "$LINNET finetune -m base --data chats.jsonl --template form.json --threads 1 --steps 2 --out "
            "tuned && mkdir elsewhere")
            .exit == 0);
    const std::string resume =
        "cd elsewhere && $LINNET finetune --resume --threads 1 --out ../tuned --steps ";
    const Outcome away = run(resume + "3");
    CHECK_MESSAGE(away.exit == 0, away.err);
    const Outcome edited = run("echo '{}' > elsewhere/form.json; rm form.json; " + resume + "4");
    CHECK_MESSAGE(edited.exit == 0, edited.err);
}

TEST_CASE("options that say how data is read are refused where a resumed run reads its own") {
    const SmallRun run;
    REQUIRE(run("$TRAIN --out out --steps 5").exit == 0);
    for (const char* option :
         {"--field a", "--fields a,b", "--separator x", "--input-format text", "--skip-bad", "--resize"}) {
        const std::string name = std::string(option).substr(0, std::string(option).find(' '));
        run.refuses("$LINNET train --out out --resume --threads 1 " + std::string(option), 2,
                    name + ": expected --data as well, got none");
    }
}

TEST_CASE("a best model that was moved away or replaced while the run went on is there at its end") {
    const SmallRun run;
    for (const char* act :
         {"mv out/model.gguf kept.gguf", "cp config out/other && mv out/other out/model.gguf"}) {
        const Outcome out =
            run("$TRAIN --overwrite --out out --steps 1500 --set train.eval_every=1000 --set "
                "train.checkpoint_every=10 2>said & p=$!; "
                "while kill -0 $p 2>/dev/null && ! { grep -qs '\"eval\"' out/log.jsonl && " +
                std::string(act) + " 2>/dev/null; }; do sleep 0.01; done; wait $p");
        CHECK_MESSAGE(out.exit == 0, run.file("said"));
        CHECK(run("$LINNET inspect out/model.gguf").exit == 0);
        CHECK(run("$LINNET train --out out --resume --threads 1 --steps 1510").exit == 0);
    }
}
