// Blocks that get the embedding again, values with embeddings of their own, projections that start at 0: as a
// user trains and runs a model of them.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/sha256.h"
#include "commands/tiny.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;
using nlohmann::json;

namespace {

const char* const config = R"({
  "model": {"context": 32, "width": 16, "layers": 3, "heads": 2, "kv_heads": 1,
            "ffn": {"activation": "relu2", "bias": false}, "norm": {"kind": "rms", "weight": false},
            "residual": {"first": "scalars"}, "position": {"kind": "rope"},
            "attention": {"bias": false, "qk_norm": "unit", "value_embedding": [1, 0]},
            "embedding": {"norm": true}, "logits": {"softcap": 15},
            "tie_embeddings": false, "zero_init": true},
  "tokenizer": {"kind": "char"},
  "train": {"batch": 8, "steps": 60, "eval_every": 30, "eval_batches": 2, "checkpoint_every": 20,
            "sample_tokens": 20, "optimizer": {"kind": "muon", "lr": 0.02}, "schedule": {"warmup": 5}}
})";

struct Place : Workplace {
    Place() { write_text(s / "config.json", config); }
    Outcome train(const std::string& out, const std::string& more) const {
        return (*this)("$LINNET train config.json --data text --out " + out + " " + more);
    }
    std::string hash(const std::string& out) const { return sha256(file(out + "/model.gguf")); }
    std::vector<double> losses(const std::string& out) const {
        std::vector<double> all;
        std::istringstream lines(file(out + "/log.jsonl"));
        for (std::string line; std::getline(lines, line);)
            if (json record = json::parse(line); record["event"] == "step") all.push_back(record["loss"]);
        return all;
    }
};

}  // namespace

TEST_CASE("a model with value embeddings that mixes the embedding in is the same however it is run" *
          doctest::test_suite("long")) {
    Place place;
    for (const char* setting :
         {"", "--set model.residual.first=vectors --set train.accumulate=2", "--set train.precision=bf16"}) {
        CAPTURE(setting);
        const std::string more = setting;
        REQUIRE(place.train("whole", more + " --threads 1 --overwrite").exit == 0);
        CHECK(place.losses("whole").back() < 0.5 * place.losses("whole").front());
        for (const char* other : {"--threads 3", "--threads 2 --set train.recompute=blocks"}) {
            CAPTURE(other);
            REQUIRE(place.train("other", more + " --overwrite " + other).exit == 0);
            CHECK(place.losses("other") == place.losses("whole"));
        }
        // Stopped after the checkpoint of step 40.
        REQUIRE(place.train("cut", more + " --overwrite").exit == 0);
        place("rm -r cut/checkpoints/step-00000060 cut/*.gguf");
        Outcome resumed = place.train("cut", more + " --resume");
        REQUIRE_MESSAGE(resumed.exit == 0, resumed.err);
        CHECK(place.hash("cut") == place.hash("whole"));
    }
}

TEST_CASE("a model with value embeddings that mixes the embedding in writes, quantized or not, as it reads") {
    Place place;
    REQUIRE(place.train("out", "--threads 1").exit == 0);
    CHECK(place("$LINNET quantize out/model.gguf q8.gguf --type q8_0").exit == 0);
    CHECK(has(place("$LINNET inspect out/model.gguf").out, "value_embd_1.weight"));
    for (const char* model : {"out/model.gguf", "q8.gguf"}) {
        auto text = [&](const std::string& more) {
            Outcome done = place(std::string("$LINNET generate -m ") + model +
                                 " -p 'one two three four five six seve' -n 24 --temp 0 --ctx-shift " + more);
            CHECK_MESSAGE(done.exit == 0, done.err);
            return done.out;
        };
        const std::string plain = text("");
        CHECK(has(plain, "n eight nine ten"));
        CHECK(text("--speculate") == plain);
        CHECK(text("--threads 2 --prompt-cache state") == plain);
        CHECK(text("--prompt-cache state") == plain);
        place("rm -f state");
    }
}

TEST_CASE("projections that start at 0 make the first loss that of a uniform guess, and learn") {
    Place place;
    const std::string text = counting_text();
    const auto letters = static_cast<double>(std::set<char>(text.begin(), text.end()).size());
    REQUIRE(place.train("out", "--steps 1").exit == 0);
    CHECK(place.losses("out").at(0) == doctest::Approx(std::log(letters)).epsilon(1e-5));
}

TEST_CASE("value embeddings where they cannot be are refused in one line") {
    Place place;
    const std::pair<const char*, const char*> wrong[] = {
        {"--set model.residual.first=scalar", "did you mean scalars?"},
        {"--set model.residual.first=true", "model.residual.first: expected"},
        {"--set 'model.attention.value_embedding=[1,2,3,4]'",
         "model.attention.value_embedding: expected at most 3 values, one per layer, got 4"},
        {"--set model.attention.value_embedding=-1", "model.attention.value_embedding: expected 0 to 4096"},
        {"--set 'model.kv_heads=[1,1,2]'",
         "model.attention.value_embedding: expected another table for layer 2, as kv_heads differ, got 1"},
    };
    for (const auto& [setting, line] : wrong) {
        Outcome done = place.train("none", setting);
        CHECK(done.exit == 3);
        CHECK(is_one_error_line(done.err));
        CHECK_MESSAGE(has(done.err, line), done.err);
        CHECK(run_shell("test ! -e '" + (place.s / "none") + "'").exit == 0);
    }
}
