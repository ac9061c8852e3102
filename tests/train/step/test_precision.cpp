// Training runs in bf16, with numbers split in two, and with blocks that are computed again, as a user starts
// them.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/sha256.h"
#include "commands/records.h"
#include "kernels/kernels.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

const char* const small = R"({
  "model": {"context": 32, "width": 48, "layers": 2, "heads": 4, "kv_heads": 2, "dropout": 0.1,
            "norm": {"kind": "rms"}, "position": {"kind": "rope"}, "attention": {"bias": false, "dropout": 0.1},
            "ffn": {"width": 80, "activation": "silu", "gated": true, "bias": false}},
  "tokenizer": {"kind": "char"},
  "train": {"batch": 4, "accumulate": 2, "steps": 30, "eval_every": 15, "eval_batches": 2, "checkpoint_every": 10,
            "sample_tokens": 0, "optimizer": {"lr": 3e-3}, "schedule": {"warmup": 5}, "precision": "bf16"}
})";

struct Run {
    Scratch scratch;
    Run() {
        write_text(scratch / "config.json", small);
        std::string text;
        for (int i = 0; i < 600; i++) text += "the " + std::to_string(i * i % 97) + " cats sat on the mat; ";
        write_text(scratch / "text.txt", text);
    }
    Outcome train(const std::string& out, std::vector<std::string> more = {}) const {
        std::vector<std::string> all{
            "train", scratch / "config.json", "--data", scratch / "text.txt", "--out", scratch / out};
        all.insert(all.end(), more.begin(), more.end());
        return run_linnet(all);
    }
    std::string model(const std::string& out) const {
        return sha256(read_text(scratch / (out + "/last.gguf")));
    }
    std::string moments(const std::string& out) const {
        return sha256(read_text(scratch / (out + "/checkpoints/step-00000030/optimizer.bin")));
    }
    nlohmann::json config(const std::string& out) const {
        return nlohmann::json::parse(read_text(scratch / (out + "/config.json")));
    }
    double last_evaluation(const std::string& out) const {
        double loss = NAN;
        for (const nlohmann::json& record : records(read_text(scratch / (out + "/log.jsonl")), "eval"))
            loss = record["loss"];
        return loss;
    }
    double planned_memory(std::vector<std::string> more) const {
        more.insert(more.end(), {"--dry-run", "--set", "train.batch=64", "--set", "model.layers=8"});
        return number_of(train("dry", more).out, "peak_memory_mib");
    }
};

std::vector<std::string> set(const std::string& setting) {
    return {"--set", "train." + setting};
}

}  // namespace

TEST_CASE(
    "in bf16 a run's model is the same file for any number of threads, and with blocks computed again") {
    Run run;
    for (const char* threads : {"1", "2", "3"})
        REQUIRE(run.train(std::string("t") + threads, {"--threads", threads}).exit == 0);
    CHECK(run.model("t1") == run.model("t2"));
    CHECK(run.model("t1") == run.model("t3"));
    REQUIRE(run.train("again", set("recompute=blocks")).exit == 0);
    CHECK(run.moments("again") == run.moments("t1"));  // the model's file has the settings as well
}

TEST_CASE("in bf16 a run that was killed and resumed ends in the same file") {
    Run run;
    REQUIRE(run.train("whole").exit == 0);
    const std::string line = "\"$LINNET\" train '" + (run.scratch / "config.json") + "' --data '" +
                             (run.scratch / "text.txt") + "' --out '" + (run.scratch / "cut") + "'";
    run_shell(killed_at(line, "\"step\":20,", run.scratch / "cut/log.jsonl"));
    REQUIRE(run.train("cut", {"--resume"}).exit == 0);
    CHECK(run.model("cut") == run.model("whole"));
}

TEST_CASE("bf16 and split products end where f32 does") {
    Run run;
    std::vector<double> losses;
    for (const char* precision : {"f32", "bf16", "f32-split"}) {
        REQUIRE(run.train(precision, set(std::string("precision=") + precision)).exit == 0);
        losses.push_back(run.last_evaluation(precision));
    }
    CHECK(losses[0] != losses[1]);  // else nothing was rounded
    CHECK(losses[1] == doctest::Approx(losses[0]).epsilon(0.02));
    CHECK(losses[2] == doctest::Approx(losses[0]).epsilon(0.002));
    if (kernels().narrow.split && !std::getenv("LINNET_ISA"))  // which the program obeys alone
        CHECK(run.moments("f32") != run.moments("f32-split"));
}

TEST_CASE("what auto stands for is recorded, and a resumed run keeps it") {
    Run run;
    REQUIRE(run.train("first", set("precision=auto")).exit == 0);
    CHECK(run.config("first")["train"]["precision"] == "f32");  // so narrow a model is not even measured
    REQUIRE(run.train("wide",
                      {"--set", "train.precision=auto", "--set", "model.width=128", "--set", "train.steps=2"})
                .exit == 0);
    const std::string chosen = run.config("wide")["train"]["precision"];
    CHECK((chosen == "f32" || (chosen == "bf16" && kernels().narrow.rounded)));
    REQUIRE(run.train("went on", set("steps=10")).exit == 0);
    REQUIRE(run.train("went on", {"--resume", "--set", "train.precision=auto"}).exit == 0);
    CHECK(run.config("went on")["train"]["precision"] == "bf16");
}

TEST_CASE("recompute and bf16 need less memory, and --dry-run says so") {
    Run run;
    const double f32 = run.planned_memory(set("precision=f32")), bf16 = run.planned_memory({}),
                 again = run.planned_memory(set("recompute=blocks"));
    CHECK(bf16 < f32);
    CHECK(again < bf16);
}

TEST_CASE("a precision or a recomputation that does not exist is refused, with those that do") {
    Run run;
    const Outcome precision = run.train("out", set("precision=fp8")),
                  recompute = run.train("out", set("recompute=all"));
    CHECK(precision.exit == 3);
    CHECK(has(precision.err, "f32-split"));
    CHECK(recompute.exit == 3);
    CHECK(has(recompute.err, "blocks"));
}
