// Whole training runs, as a user starts them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/sha256.h"
#include "commands/records.h"
#include "instrumented.h"
#include "support.h"
#include "train/checkpoint.h"
#include "train/task/config.h"

using namespace linnet;
using namespace linnet::test;

namespace {

const char* const small = R"({
  "model": {"context": 32, "width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "dropout": 0.1,
            "norm": {"kind": "rms"}, "position": {"kind": "rope"}, "attention": {"bias": false},
            "ffn": {"width": 80, "activation": "silu", "gated": true, "bias": false}},
  "tokenizer": {"kind": "char"},
  "train": {"batch": 4, "accumulate": 2, "steps": 50, "eval_every": 20, "eval_batches": 2, "checkpoint_every": 10,
            "sample_tokens": 10, "optimizer": {"lr": 3e-3}, "schedule": {"warmup": 5}}
})";

std::string text() {
    std::string t;
    for (int i = 0; i < 900; i++) t += "the " + std::to_string(i * i % 97) + " cats sat on the mat; ";
    return t;
}

struct Run {
    Scratch scratch;
    Run() {
        write_text(scratch / "config.json", small);
        write_text(scratch / "text.txt", text());
    }
    std::vector<std::string> arguments(const std::string& out, std::vector<std::string> more = {}) const {
        std::vector<std::string> all{
            "train", scratch / "config.json", "--data", scratch / "text.txt", "--out", scratch / out};
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
    std::string model_hash(const std::string& out) const {
        return sha256(read_text(scratch / (out + "/model.gguf")));
    }
    std::vector<nlohmann::json> log(const std::string& out) const {
        return records(read_text(scratch / (out + "/log.jsonl")));
    }
};

}  // namespace

TEST_CASE("the model is the same file for any number of threads") {
    Run run;
    for (const char* threads : {"1", "2", "3"})
        REQUIRE(run_linnet(run.arguments(std::string("t") + threads,
                                         {"--threads", threads, "--set", "model.attention.dropout=0.1"}))
                    .exit == 0);
    CHECK(run.model_hash("t1") == run.model_hash("t2"));
    CHECK(run.model_hash("t1") == run.model_hash("t3"));
}

TEST_CASE("a run that was killed and resumed ends in the same file, and in the same log") {
    Run run;
    REQUIRE(run_linnet(run.arguments("whole", {"--set", "model.attention.dropout=0.1"})).exit == 0);
    // Killed as soon as step 30 is in the log: the newest checkpoint may be that of step 20 or of step 30.
    std::string line = "\"$LINNET\" train '" + (run.scratch / "config.json") + "' --data '" +
                       (run.scratch / "text.txt") + "' --out '" + (run.scratch / "cut") +
                       "' --set model.attention.dropout=0.1";
    run_shell(killed_at(line, "\"step\":30,", run.scratch / "cut/log.jsonl"));
    REQUIRE_FALSE(std::filesystem::exists(run.scratch / "cut/last.gguf"));
    // The folder knows all of it, what its models are called too.
    REQUIRE(run_linnet({"train", "--out", run.scratch / "cut", "--resume"}).exit == 0);
    CHECK(run.model_hash("cut") == run.model_hash("whole"));
    std::vector<double> losses[2];
    for (int i = 0; i < 2; i++)
        for (const auto& record : run.log(i ? "cut" : "whole"))
            if (record["event"] == "step") losses[i].push_back(record["loss"]);
    CHECK(losses[0].size() == 50);
    CHECK(losses[0] == losses[1]);
}

TEST_CASE("an evaluation of some batches is of sequences from all that is held out") {
    Run run;
    // Of the last tenth three quarters are easy and one is noise.
    std::string text = "abcdefgh";
    while (text.size() < 10240 - 256) text += "ab";
    std::uint32_t noise = 1;
    while (text.size() < 10240)
        text += static_cast<char>('a' + ((noise = noise * 1664525 + 1013904223) >> 29));
    write_text(run.scratch / "text.txt", text);
    double losses[2];
    for (const char* batches : {"0", "1"}) {
        REQUIRE(run_linnet(run.arguments(batches, {"--set", std::string("train.eval_batches=") + batches,
                                                   "--set", "train.validation_fraction=0.1"}))
                    .exit == 0);
        for (const auto& record : run.log(batches))
            if (record["event"] == "eval") losses[*batches - '0'] = record["loss"];
    }
    CHECK(losses[0] > 0.4);
    CHECK(losses[1] == doctest::Approx(losses[0]).epsilon(0.25));
}

TEST_CASE("the loss goes down, and everything is logged") {
    Run run;
    REQUIRE(run_linnet(run.arguments("out")).exit == 0);
    double first = 0, last = 0;
    int evaluations = 0, samples = 0;
    for (const auto& record : run.log("out")) {
        if (record["event"] == "step" && record["step"] == 1) first = record["loss"];
        if (record["event"] == "step") last = record["loss"];
        evaluations += record["event"] == "eval";
        samples += record["event"] == "sample";
    }
    CHECK(last < 0.75 * first);
    CHECK(evaluations == 3);
    CHECK(samples == 3);
    CHECK(read_text(run.scratch / "out/report.html").find("<svg") != std::string::npos);
}

TEST_CASE("every kind of block learns" * doctest::test_suite("long")) {
    Run run;
    const std::vector<std::vector<std::string>> kinds = {
        {"norm.placement=deep", "norm.kind=layer"},
        {"norm.placement=sandwich", "attention.softcap=5", "logits.softcap=10", "attention.window=[8,0]"},
        {"position.kind=none", "attention.alibi=8", "embedding.norm=true"},
        {"position.kind=none", "attention.buckets=8", "attention.reach=16", "layers=3", "tie_layers=1"},
        {"attention.qk_norm=unit", "attention.scale=1", "attention.window=6", "attention.globals=2"},
        {"residual.kind=parallel", "residual.shared_norm=true", "norm.weight=false"},
        {"mixer=mamba", "position.kind=none", "ffn.kind=none", "ssm.state=4"},
        {"mixer=[mamba,attention]", "ssm.state=4"},
        {"mixer=mamba2", "position.kind=none", "ssm.state=8"},
        {"mixer=rwkv7", "position.kind=none", "ffn.kind=channel-mix"},
        {"mixer=rwkv6", "position.kind=none", "ffn.kind=channel-mix", "residual.halve_every=2"},
        {"mixer=lstm", "position.kind=none"},
        {"mixer=[linear-attention,attention]"},
        {"experts.count=4", "experts.used=2", "experts.width=24", "experts.shared=16",
         "experts.balance_loss=0.01"},
    };
    for (std::size_t kind = 0; kind < kinds.size(); kind++) {
        std::vector<std::string> more{"--set", "train.steps=30", "--set", "train.sample_tokens=0"};
        for (const std::string& setting : kinds[kind]) more.insert(more.end(), {"--set", "model." + setting});
        CAPTURE(kinds[kind][0]);
        std::string out = "kind" + std::to_string(kind);
        REQUIRE(run_linnet(run.arguments(out, more)).exit == 0);
        double first = 0, last = 0;
        for (const auto& record : run.log(out))
            if (record["event"] == "step") (record["step"] == 1 ? first : last) = record["loss"];
        CHECK(last < 0.8 * first);
    }
}

TEST_CASE("a mixture's balance loss spreads its tokens over the experts; log and report show their use") {
    Run run;
    auto busiest = [&](const std::string& out, const std::string& weight) {
        auto done = run_linnet(run.arguments(
            out, {"--set", "model.experts.count=8", "--set", "model.experts.used=2", "--set",
                  "model.experts.width=16", "--set", "model.experts.leading_dense=1", "--set",
                  "model.dropout=0", "--set", "model.init_std=0.3", "--set",
                  "model.experts.balance_loss=" + weight, "--set", "model.experts.z_loss=0.001"}));
        REQUIRE(done.exit == 0);
        double last = 0;
        int events = 0;
        for (const auto& record : run.log(out)) {
            if (record["event"] == "step") CHECK(record["router_loss"].get<double>() > 0);
            if (record["event"] != "experts") continue;
            events++;
            REQUIRE(record["layers"].size() == 1);
            CHECK(record["layers"][0]["layer"] == 1);
            auto shares = record["layers"][0]["shares"].get<std::vector<double>>();
            CHECK(shares.size() == 8);
            CHECK(std::accumulate(shares.begin(), shares.end(), 0.0) == doctest::Approx(1).epsilon(0.01));
            last = *std::max_element(shares.begin(), shares.end());
        }
        CHECK(events == 3);
        CHECK(has(read_text(run.scratch / (out + "/report.html")), "Use of experts"));
        return last;
    };
    CHECK(busiest("even", "0.5") < 0.75 * busiest("free", "0"));
}

TEST_CASE("SIGINT and SIGTERM finish the step, save, and exit 130 and 143") {
    for (const auto& [name, code] : {std::pair{"INT", 130}, std::pair{"TERM", 143}}) {
        Run run;
        // A shell starts background jobs with SIGINT ignored; the program must see it all the same, so env
        // resets it.
        Outcome outcome = run_shell(
            "env --default-signal=INT \"$LINNET\" train '" + (run.scratch / "config.json") +
            "' --steps 100000 --data '" + (run.scratch / "text.txt") + "' --out '" + (run.scratch / "out") +
            "' & pid=$!; while ! grep -q '\"step\":12,' '" + (run.scratch / "out/log.jsonl") +
            "' 2>/dev/null; do sleep 0.01; done; kill -" + name + " $pid; wait $pid");
        CHECK(outcome.exit == code);
        CHECK(std::filesystem::exists(run.scratch / "out/model.gguf"));
        CHECK(run_linnet(run.arguments("out", {"--resume", "--steps", "100000", "--time", "0.2s"})).exit ==
              0);
    }
}

TEST_CASE("a loss that is not finite stops the run with exit 5 and keeps the last good checkpoint") {
    Run run;
    Outcome outcome = run_linnet(
        run.arguments("out", {"--set", "train.optimizer.lr=100", "--set", "train.clip=0", "--set",
                              "train.schedule.kind=constant", "--set", "model.norm.epsilon=1e-12", "--set",
                              "train.checkpoint_every=1", "--set", "model.init_std=10", "--steps", "2000"}));
    CHECK(outcome.exit == 5);
    CHECK(outcome.err.find("expected finite numbers") != std::string::npos);
    CHECK_MESSAGE(!has(outcome.err, "-nan"), outcome.err);
    CHECK_FALSE(has(read_text(run.scratch / "out/log.jsonl"), "-nan"));
    const std::optional<std::string> kept = newest_checkpoint(run.scratch / "out/checkpoints");
    REQUIRE(kept.has_value());
    CHECK_MESSAGE(has(outcome.err, "the checkpoint " + *kept + " is kept"), outcome.err);
    CHECK(read_checkpoint(*kept).step > 0);
    CHECK_FALSE(std::filesystem::exists(run.scratch / "out/model.gguf"));
}

TEST_CASE("weights whose validation loss is not finite are no checkpoint and no model") {
    Run run;
    const Outcome outcome = run_linnet(
        run.arguments("out", {"--set", "train.optimizer.kind=sgd", "--set", "train.optimizer.lr=100", "--set",
                              "train.optimizer.weight_decay=1", "--set", "train.clip=0", "--set",
                              "train.schedule.warmup=0", "--set", "train.schedule.kind=constant", "--set",
                              "train.checkpoint_every=1", "--set", "train.eval_every=1", "--steps", "100"}));
    CHECK(outcome.exit == 5);
    CHECK_MESSAGE(has(outcome.err, "expected finite numbers, got validation loss "), outcome.err);
    const std::optional<std::string> kept = newest_checkpoint(run.scratch / "out/checkpoints");
    REQUIRE(kept.has_value());
    for (const std::string& model : {*kept + "/model.gguf", run.scratch / "out/model.gguf"}) {
        const Outcome measured = run_linnet({"eval", "-m", model, "--file", run.scratch / "text.txt"});
        CHECK_MESSAGE(measured.exit == 0, measured.err);
    }
}

TEST_CASE("a sample that cannot be written does not end a run that learns") {
    Run run;
    // Values beyond what f16 holds, in which a sample's keys and values are kept; behind a norm the losses
    // stay as they were.
    const Outcome outcome = run_linnet(run.arguments(
        "out", {"--set", R"(train.groups=[{"match":"blk.*.attn_v.weight","lr":100,"weight_decay":10}])",
                "--set", "train.schedule.warmup=0", "--set", "train.schedule.kind=constant", "--set",
                "train.eval_every=1", "--steps", "3"}));
    CHECK_MESSAGE(outcome.exit == 0, outcome.err);
    CHECK_MESSAGE(
        has(outcome.err, "no sample of step 2: model in memory: blk.0.attn: expected finite values"),
        outcome.err);
    const std::vector<nlohmann::json> log = run.log("out");
    CHECK(std::ranges::count(log, "step", [](const auto& record) { return record["event"]; }) == 3);
    CHECK(std::ranges::count(log, "eval", [](const auto& record) { return record["event"]; }) == 3);
    CHECK(log.back()["event"] == "end");
    CHECK(read_checkpoint(*newest_checkpoint(run.scratch / "out/checkpoints")).step == 3);
}

TEST_CASE("--dry-run says the peak memory within a tenth") {
    if (instrumented) return skip("what this build takes says nothing");
    Run run;
    std::vector<std::string> wider{"--set",   "model.width=256",
                                   "--set",   "model.layers=4",
                                   "--set",   "model.ffn.width=704",
                                   "--set",   "train.batch=40",  // what a sample takes is little beside it
                                   "--steps", "3"};
    for (const std::string precision : {"f32", "bf16"}) {  // auto may choose another one each time
        std::vector<std::string> settings = wider, dry;
        settings.insert(settings.end(), {"--set", "train.precision=" + precision});
        dry = settings;
        dry.push_back("--dry-run");
        Outcome said = run_linnet(run.arguments(precision, dry));
        REQUIRE(said.exit == 0);
        CHECK_FALSE(std::filesystem::exists(run.scratch / precision));
        const double expected = number_of(said.out, "peak_memory_mib");
        REQUIRE(run_linnet(run.arguments(precision, settings)).exit == 0);
        double found = run.log(precision).back()["peak_memory_mib"];
        CHECK(found == doctest::Approx(expected).epsilon(0.1));
    }
}

TEST_CASE("--dry-run counts all weights of a mapped model that is trained beside, read or not yet") {
    if (instrumented) return skip("what this build takes says nothing");
    Run run;
    // 11.9 million parameters, 45 MiB: most of what the run below takes.
    REQUIRE(run_linnet(run.arguments("base", {"--set", "model.width=512", "--set", "model.layers=4", "--set",
                                              "model.ffn.width=1408", "--set", "train.batch=1", "--set",
                                              "train.accumulate=1", "--set", "train.sample_tokens=0", "--set",
                                              "train.precision=f32", "--steps", "1"}))
                .exit == 0);
    // Of a file that linnet wrote the system may map 2 MiB around each byte that is read, and has then all of
    // it in memory; of a copy it has little.
    std::filesystem::copy_file(run.scratch / "base/model.gguf", run.scratch / "copy.gguf");
    REQUIRE(std::filesystem::file_size(run.scratch / "copy.gguf") > 40'000'000);
    for (const std::string base : {"copy.gguf", "base/model.gguf"}) {
        INFO(base);
        const std::string out = base.substr(0, 4) + "-tuned";
        std::vector<std::string> tune{"finetune",
                                      "-m",
                                      run.scratch / base,
                                      "--lora",
                                      "2",
                                      "--data",
                                      run.scratch / "text.txt",
                                      "--out",
                                      run.scratch / out,
                                      "--steps",
                                      "2",
                                      "--threads",
                                      "2",
                                      "--set",
                                      "train.batch=2",
                                      "--set",
                                      "train.sample_tokens=0",
                                      "--set",
                                      "train.precision=f32"};
        std::vector<std::string> dry = tune;
        dry.push_back("--dry-run");
        const Outcome said = run_linnet(dry);
        REQUIRE_MESSAGE(said.exit == 0, said.err);
        REQUIRE(run_linnet(tune).exit == 0);
        const double found = run.log(out).back()["peak_memory_mib"];
        CHECK(number_of(said.out, "peak_memory_mib") == doctest::Approx(found).epsilon(0.1));
    }
}

TEST_CASE("a resume as another run is refused with exit 5") {
    Run run;
    REQUIRE(run_linnet(run.arguments("out", {"--steps", "12"})).exit == 0);
    CHECK(run_linnet(run.arguments("out")).exit == 2);  // without --resume nothing is overwritten
    Outcome other = run_linnet(run.arguments("out", {"--resume", "--set", "model.width=64"}));
    CHECK(other.exit == 5);
    CHECK(other.err.find("expected the checkpoint's config") != std::string::npos);
    const std::pair<const char*, const char*> changes[] = {
        {"train.validation_fraction=0.3", "train.validation_fraction: expected 0.1, got 0.3"},
        {"train.masked.share=0.3", "train.masked: expected "}};
    for (const auto& [setting, says] : changes) {
        const Outcome changed = run_linnet(run.arguments("out", {"--resume", "--set", setting}));
        CHECK(changed.exit == 5);
        CHECK_MESSAGE(has(changed.err, says), changed.err);
    }
    write_text(run.scratch / "text.txt", text() + "another");
    CHECK(run_linnet(run.arguments("out", {"--resume"})).exit == 5);
}

TEST_CASE("the seconds of a log never fall, also where the run was resumed") {
    Run run;
    REQUIRE(run_linnet(run.arguments("out", {"--steps", "20"})).exit == 0);
    REQUIRE(run_linnet(run.arguments("out", {"--resume", "--steps", "24"})).exit == 0);
    double before = 0;
    int steps = 0;
    for (const auto& record : run.log("out")) {
        if (!record.contains("seconds")) continue;
        CHECK(record["seconds"].get<double>() >= before);
        before = record["seconds"];
        steps += record["event"] == "step";
    }
    CHECK(steps == 24);
}

TEST_CASE("an optimizer.bin of another size is refused, though its checksum is right") {
    Run run;
    REQUIRE(run_linnet(run.arguments("out", {"--steps", "10"})).exit == 0);
    const std::string folder = run.scratch / "out/checkpoints/step-00000010/";
    const std::string longer = read_text(folder + "optimizer.bin") + "more";
    nlohmann::json manifest = nlohmann::json::parse(read_text(folder + "manifest.json"));
    manifest["sha256"]["optimizer.bin"] = sha256(longer);
    write_text(folder + "optimizer.bin", longer);
    write_text(folder + "manifest.json", manifest.dump());
    Outcome outcome = run_linnet(run.arguments("out", {"--resume", "--steps", "20"}));
    CHECK(outcome.exit == 3);
    const std::string size = std::to_string(longer.size());
    CHECK_MESSAGE(has(outcome.err, "bytes, as this optimizer keeps, got " + size), outcome.err);
}

TEST_CASE("configs are refused by key, with the nearest one") {
    Run run;
    auto refused = [&](const std::string& config, const std::string& part) {
        write_text(run.scratch / "config.json", config);
        Outcome outcome = run_linnet(run.arguments("out"));
        CHECK_MESSAGE(outcome.exit == 3, config);
        CHECK_MESSAGE(outcome.err.find(part) != std::string::npos, outcome.err);
        CHECK(outcome.err.find('\n') == outcome.err.size() - 1);  // one line
    };
    refused(R"({"model": {"widht": 32}})", "did you mean model.width?");
    refused(R"({"modle": {"width": 32}})",
            "modle: expected a known key, got an unknown one (did you mean model?)");
    refused(R"({"model": {"width": 32, "layers": 2, "heads": 0}})", "model.heads: expected 1 to 4096, got 0");
    refused(R"({"model": {"width": 32, "layers": 2, "heads": 5}})",
            "model.heads: expected a divisor of width (32)");
    refused(R"({"model": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 3}})", "model.kv_heads");
    refused(R"({"model": {"width": "wide"}})", "model.width: expected a whole number");
    refused(R"({"model": {"norm": {"kind": "rsm"}}})", "did you mean rms?");
    refused(R"({"model": {"width": 1, "width": 2}})", "expected each key once");
    refused("{\"model\": ", "expected JSON, got the end of the file");
    refused("[]", "expected an object");
}

TEST_CASE("a text shorter than one window is refused") {
    Run run;
    write_text(run.scratch / "text.txt", "too short");
    Outcome outcome = run_linnet(run.arguments("out"));
    CHECK(outcome.exit == 3);
    CHECK(outcome.err.find("text.txt") != std::string::npos);
}

TEST_CASE("learning rates rise, then follow their schedule down") {
    TrainConfig c;
    c.steps = 1000;
    c.schedule.warmup = 100;
    for (const char* kind : {"cosine", "linear", "constant", "inverse-sqrt"}) {
        c.schedule.kind = kind;
        CHECK(learning_rate(c, 0) < learning_rate(c, 50));
        CHECK(learning_rate(c, 100) == doctest::Approx(c.optimizer.lr).epsilon(0.01));
        double before = learning_rate(c, 100);
        for (std::int64_t s = 101; s <= 1000; s += 100) {
            CHECK(learning_rate(c, s) <= before);
            before = learning_rate(c, s);
        }
        if (c.schedule.kind == "cosine" || c.schedule.kind == "linear")
            CHECK(learning_rate(c, 1000) == doctest::Approx(c.schedule.min_lr));
    }
}
