// Optimizers, schedules, groups and skipped steps in whole runs.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "support.h"
#include "train/optimize/optimizers.h"
#include "train/optimize/schedule.h"
#include "train/small_run.h"

using namespace linnet;
using namespace linnet::test;
using nlohmann::json;

using Run = SmallRun;

TEST_CASE("every optimizer and every schedule of the tables learns, and resumes to the same bytes") {
    Run run;
    std::vector<std::string> all;
    for (const OptimizerKind& kind : optimizer_kinds())
        all.push_back("--set train.optimizer.kind=" + std::string(kind.name) + " --set train.optimizer.lr=" +
                      (kind.name == "sgd"    ? "0.1"
                       : kind.name == "lion" ? "0.003"
                                             : "0.01"));
    for (const ScheduleKind& kind : schedule_kinds())
        all.push_back("--set train.schedule.kind=" + std::string(kind.name) +
                      (kind.name == "noam" ? " --set train.optimizer.lr=0.1" : ""));
    all.push_back(
        "--set train.optimizer.kind=muon --set train.optimizer.momentum_warmup=20 --set "
        "train.optimizer.cautious_decay=true --set train.optimizer.scaled_decay=true --set "
        "train.skip_outliers=3 --set 'train.groups=[{\"match\":\"token_embd.weight\",\"lr\":0.03,"
        "\"schedule\":{\"kind\":\"linear\"}}]'");
    for (std::size_t i = 0; i < all.size(); i++) {
        CAPTURE(all[i]);
        const std::string whole = "whole" + std::to_string(i), cut = "cut" + std::to_string(i);
        REQUIRE(run("$TRAIN --out " + whole + " " + all[i]).exit == 0);
        // A run of 60 steps that is stopped after the checkpoint of step 40.
        REQUIRE(run("$TRAIN --out " + cut + " " + all[i] + "; rm -r " + cut + "/checkpoints/step-00000060 " +
                    cut + "/*.gguf && $TRAIN --out " + cut + " --resume " + all[i])
                    .exit == 0);
        CHECK(run.file(cut + "/model.gguf") == run.file(whole + "/model.gguf"));
        std::vector<json> steps = run.log(whole, "step");
        REQUIRE(steps.size() == 60);
        CHECK(steps.back()["loss"].get<double>() < 0.9 * steps.front()["loss"].get<double>());
    }
    std::vector<json> steps = run.log("whole" + std::to_string(all.size() - 1), "step");
    CHECK(steps[30]["group_lr"].size() == 1);
    CHECK(steps[30]["group_lr"][0].get<double>() > steps[30]["lr"].get<double>());
    std::vector<json> blocks = run.log("whole0", "blocks");
    REQUIRE(blocks.size() == 60);
    CHECK(blocks[3]["names"] == json({"token_embd", "position_embd", "blk.0", "output_norm"}));
    CHECK(blocks[3]["grad_norm"].size() == 4);
    for (const json& update : blocks[3]["update"]) CHECK(update.get<double>() > 0);
}

TEST_CASE("a step with an outlier's gradient is skipped and counted") {
    Run run;
    // A text that changes its nature halfway: the batches that meet the other half stand out.
    std::string text;
    for (int i = 0; i < 4000; i++) text += "abababab\n";
    for (int i = 0; i < 40; i++) text += "xyzzy qwerty\n";
    write_text(run.s / "text", text);
    Outcome outcome =
        run("$TRAIN --out out --set train.skip_outliers=4 --set train.batch=2 --set train.steps=300 --set "
            "train.eval_every=0");
    CHECK(outcome.exit == 0);
    int skipped = 0;
    for (const json& step : run.log("out", "step")) skipped += step.contains("skipped");
    CHECK(skipped > 0);
    CHECK(has(outcome.err, std::to_string(skipped) + " steps were skipped"));
    CHECK(run.log("out", "end").at(0)["skipped"] == skipped);
    CHECK(has(run.file("out/report.html"), "steps skipped"));
    CHECK(run.log("out", "step").at(20).contains("skipped") == false);
}

TEST_CASE("--dry-run counts what the optimizer keeps") {
    Run run;
    auto memory = [&](const std::string& kind) {
        Outcome outcome = run(
            "$LINNET train config --data text --threads 1 --out dry --dry-run --set model.width=768 --set "
            "model.layers=2 --set model.heads=12 --set train.optimizer.kind=" +
            kind);
        return number_of(outcome.out, "peak_memory_mib");
    };
    const double parameters = 14.25e6 * 4 / (1 << 20);  // MiB of one number for each
    const double adamw = memory("adamw"), lion = memory("lion"), muon = memory("muon");
    CHECK(adamw - lion == doctest::Approx(parameters).epsilon(0.05));
    CHECK(muon < adamw);
    CHECK(muon > lion);
}

TEST_CASE("a learning rate that its schedule's floor keeps constant is told") {
    Run run;
    auto told = [&](const std::string& setting) {
        Outcome outcome = run("$TRAIN --out out --overwrite --steps 2 " + setting);
        CHECK(outcome.exit == 0);
        return outcome.err;
    };
    CHECK(
        has(told("--set train.optimizer.lr=5e-5"),
            "train.optimizer.lr 5e-05 stays constant: train.schedule.min_lr, to which kind cosine falls, is "
            "0.0001\n"));
    CHECK(
        has(told("--set 'train.groups=[{\"match\":\"blk.*\",\"lr\":1e-4,\"schedule\":{\"kind\":\"wsd\"}}]'"),
            "train.groups[0].lr 0.0001 stays constant: train.groups[0].schedule.min_lr"));
    CHECK_FALSE(has(told("--set train.optimizer.lr=5e-5 --set train.schedule.kind=constant "
                         "--set 'train.groups=[{\"match\":\"blk.*\",\"lr\":0}]'"),
                    "stays constant"));
}

TEST_CASE("a warm-up that takes the whole run is told, with the rate that it comes to") {
    Run run;
    auto told = [&](const std::string& arguments) {
        const Outcome outcome = run(arguments);
        CHECK_MESSAGE(outcome.exit == 0, outcome.err);
        return outcome.err;
    };
    const std::string line = "$TRAIN --set train.optimizer.lr=0.01 --steps 2 ";
    const std::string says =
        "the learning rate only rises, to 0.002 of 0.01: train.schedule.warmup is 9, train.steps 2\n";
    CHECK(has(told(line + "--out out --set train.schedule.warmup=9"), says));
    CHECK_FALSE(has(told("$LINNET train --out out --resume --threads 1"), "only rises"));  // it has ended
    CHECK_FALSE(has(told(line + "--out other --set train.schedule.warmup=1"), "only rises"));
    CHECK_FALSE(has(told("$LINNET train --data text --out chosen --threads 1 --steps 2"), "only rises"));
    // The last step of noam's warm-up has its largest rate.
    const std::string noam = line + "--set train.schedule.kind=noam --out noam --overwrite ";
    CHECK(has(told(noam + "--set train.schedule.warmup=3"), "only rises"));
    CHECK_FALSE(has(told(noam + "--set train.schedule.warmup=2"), "only rises"));
}

TEST_CASE("settings of an optimizer that contradict each other, and groups without parameters, are refused") {
    Run run;
    auto refused = [&](const std::string& setting, int code, const std::string& part) {
        Outcome outcome = run("$TRAIN --out out " + setting);
        CHECK_MESSAGE(outcome.exit == code, setting);
        CHECK(is_one_error_line(outcome.err));
        CHECK_MESSAGE(has(outcome.err, part), outcome.err);
        CHECK_FALSE(std::filesystem::exists(run.s / "out/log.jsonl"));
    };
    refused("--set train.optimizer.kind=adamv", 3, "did you mean adamw?");
    refused("--set train.schedule.kind=cosin", 3, "did you mean cosine?");
    refused("--set train.optimizer.momentum_warmup=9", 3, "0, as adamw has no momentum");
    refused("--set train.optimizer.kind=adam --set train.optimizer.cautious_decay=true", 3, "as adam adds");
    refused("--set 'train.groups=[{\"match\":\"blk.9.*\"}]'", 3, "train.groups[0].match");
    refused("--set 'train.groups=[{\"match\":\"*\",\"lrr\":1}]'", 3, "did you mean");
    refused("--set 'train.groups=[{]'", 3, "train.groups");
    CHECK(run("$TRAIN --out kept --steps 5").exit == 0);
    Outcome other = run("$TRAIN --out kept --resume --steps 9 --set train.optimizer.kind=lion");
    CHECK(other.exit == 5);
    CHECK(has(other.err, "train.optimizer.kind: expected adamw, got lion"));
    auto lion = [](const std::string& match) {
        return " --set 'train.groups=[{\"match\":\"" + match + "\",\"kind\":\"lion\"}]' ";
    };
    CHECK(run("$TRAIN --out groups --steps 5" + lion("blk.0.attn_q.weight")).exit == 0);
    Outcome moved = run("$TRAIN --out groups --resume --steps 9" + lion("blk.0.attn_k.weight"));
    CHECK(moved.exit == 5);
    CHECK(has(moved.err, "train.groups: expected the same optimizer for each parameter"));
    CHECK(run("$TRAIN --out groups --resume --steps 9" + lion("blk.0.attn_q.weight")).exit == 0);
    // What keeps no momentum has no moments: what the checkpoint holds would be another parameter's.
    auto sgd = [](const std::string& more, const std::string& match) {
        return " --set train.optimizer.kind=sgd" + more + " --set 'train.groups=[{\"match\":\"" + match +
               "\",\"momentum\":0}]' ";
    };
    CHECK(run("$TRAIN --out sgd --steps 5" + sgd("", "blk.0.attn_q.weight")).exit == 0);
    moved = run("$TRAIN --out sgd --resume --steps 9" + sgd("", "blk.0.attn_k.weight"));
    CHECK(moved.exit == 5);
    CHECK(has(moved.err, "train.groups: expected the same optimizer for each parameter"));
    moved = run("$TRAIN --out sgd --resume --steps 9" +
                sgd(" --set train.optimizer.momentum=0", "blk.0.attn_q.weight"));
    CHECK(moved.exit == 5);
    CHECK_MESSAGE(has(moved.err, "train.optimizer.momentum: expected 0.95, got 0"), moved.err);
    // Where groups say it of every parameter, the run's own momentum is nobody's.
    CHECK(run("$TRAIN --out none --steps 5" + sgd("", "*")).exit == 0);
    const Outcome same =
        run("$TRAIN --out none --resume --steps 9" + sgd(" --set train.optimizer.momentum=0", "*"));
    CHECK_MESSAGE(same.exit == 0, same.err);
}

TEST_CASE("a pattern of a group that matches nothing is named by the config's file, or by none") {
    Run run;
    json config = json::parse(tiny_config());
    config["train"]["groups"] = json::parse(R"([{"match": "blk.9.*"}])");
    write_text(run.s / "grouped.json", config.dump());
    const Outcome given = run("$LINNET train grouped.json --data text --out out");
    CHECK(given.exit == 3);
    CHECK_MESSAGE(
        given.err.starts_with("linnet: error: grouped.json: train.groups[0].match: expected a pattern"),
        given.err);
    const Outcome none =
        run("$LINNET train --data text --out out --steps 2 --set "
            "'train.groups=[{\"match\":\"blk.99.*\"}]'");
    CHECK(none.exit == 3);
    CHECK_MESSAGE(none.err.starts_with("linnet: error: train.groups[0].match: expected a pattern"), none.err);
}

TEST_CASE("the rate that the log has of a group is that of the same step") {
    Run run;
    REQUIRE(run("$TRAIN --out out --steps 12 --set 'train.groups=[{\"match\":\"blk.*\"}]'").exit == 0);
    const std::vector<json> steps = run.log("out", "step");
    REQUIRE(steps.size() == 12);
    for (const json& step : steps) CHECK(step["group_lr"][0] == step["lr"]);
}

TEST_CASE("a group keeps the schedule that it takes over from its run") {
    Run run;
    CHECK(run("$TRAIN --out out --steps 3 --set train.schedule.decay=0.2 --set "
              "'train.groups=[{\"match\":\"blk.*\",\"schedule\":{\"kind\":\"wsd\"}}]' --set "
              "train.schedule.kind=cosine")
              .exit == 0);
    CHECK(json::parse(run.file("out/config.json"))["train"]["schedule"]["decay"] == 0.2);
}
