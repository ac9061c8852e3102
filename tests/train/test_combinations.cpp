// Settings that met for the first time in somebody's config.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "commands/records.h"
#include "data/labelled/png_made.h"
#include "model/config/config.h"
#include "support.h"
#include "train/kinds.h"
#include "train/task/config.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// Of a run of a few steps.
double last_loss(const Place& place, const std::string& out, const std::vector<std::string>& more) {
    const Outcome trained = place.train(out, 3, more);
    REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    return records(read_text(place.s / (out + "/log.jsonl")), "step").back()["loss"];
}

std::string refusal_of(const std::string& config, const std::vector<std::string>& settings) {
    return refusal([&] { read_run_config(nlohmann::json::parse(config), "config", settings); });
}

}  // namespace

TEST_CASE("BERT's second task stands beside buckets and experts") {
    const Place place(kind_named("masked with pairs"));
    last_loss(place, "buckets", set({"model.attention.buckets=8", "model.attention.reach=16"}));
    last_loss(place, "experts",
              set({"model.ffn.gated=true", "model.ffn.bias=false", "model.experts.count=2",
                   "model.experts.used=1", "model.experts.renormalize=false"}));
}

TEST_CASE("experts stand behind merges of patches, whose rows are fewer") {
    Scratch s;
    std::string pictures = big_endian(0x803) + big_endian(60) + big_endian(16) + big_endian(16),
                labels = big_endian(0x801) + big_endian(60);
    for (int i = 0; i < 60; i++) {
        for (int p = 0; p < 256; p++) pictures += static_cast<char>(p * (i % 3 + 1));
        labels += static_cast<char>(i % 3);
    }
    write_text(s / "a-images-idx3-ubyte", pictures);
    write_text(s / "a-labels-idx1-ubyte", labels);
    write_text(s / "config.json",
               R"({"model": {"kind": "encoder", "width": 16, "layers": 2, "heads": 2, "head_width": 8,
        "position": {"kind": "none"}, "head": {"kind": "classes"}, "ffn": {"width": 16, "gated": true, "bias": false},
        "experts": {"count": 4, "used": 2},
        "image": {"width": 16, "height": 16, "patch": 4, "merge": [0, 1]}},
        "train": {"batch": 4, "steps": 4, "eval_every": 2}})");
    const Outcome trained = run_linnet({"train", s / "config.json", "--data", s / "a-images-idx3-ubyte",
                                        "--out", s / "m", "--threads", "2"});
    CHECK_MESSAGE(trained.exit == 0, trained.err);
}

TEST_CASE("an encoder's logits are scaled and capped") {
    const Place place(kind_named("tags"));
    const double plain = last_loss(place, "a", {});
    CHECK(last_loss(place, "b", set({"model.logits.scale=3"})) != plain);
    const double capped = last_loss(place, "c", set({"model.logits.softcap=0.001"}));
    const std::string log = read_text(place.s / "c/log.jsonl");
    const auto classes = static_cast<double>(records(log, "confusion").back()["labels"].size());
    CHECK(capped == doctest::Approx(std::log(classes)).epsilon(0.01));
}

TEST_CASE(
    "a decoder that is deeper than its encoder has the lists' values in turn, and its heads are checked") {
    const std::string sides = R"({"model": {"kind": "encoder-decoder", "width": 24, "heads": [4, 6],
        "head_width": 8, "layers": 3, "decoder_layers": 6, "context": 16, "ffn": {"width": [16, 32, 16]}}})";
    const RunConfig read = read_run_config(nlohmann::json::parse(sides), "config", {"model.kv_heads=2"});
    for (std::int64_t layer = 0; layer < 6; layer++)
        CHECK(read.model.ffn.width.at(layer) == (layer % 3 == 1 ? 32 : 16));
    CHECK(has(refusal_of(sides, {"model.kv_heads=[4,3,2]"}), "model.kv_heads: expected a divisor of heads"));
    CHECK(has(refusal_of(sides, {"model.mixer=lstm", "model.position.kind=none", "model.heads=4",
                                 "model.kv_heads=3"}),
              "model.kv_heads: expected a divisor of heads"));
}

TEST_CASE("a generator whose shapes would not fit is refused by its setting") {
    const std::string config = R"({"model": {"kind": "encoder", "width": 96, "heads": 6, "layers": 2,
        "context": 16, "attention": {"score": "general"}}, "train": {"objective": "replaced"}})";
    CHECK(has(refusal_of(config, {}), "train.replaced.generator: expected a share of which a generator"));
}
