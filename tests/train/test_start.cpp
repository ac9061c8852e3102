// What a run that begins from a model trains, and at which rates.
#include "train/start.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "model/family_files.h"
#include "support.h"
#include "train/kinds.h"

using namespace linnet;

namespace {

TrainingStart begun(const std::string& model, const std::vector<std::string>& settings) {
    TrainingStart start;
    open_base(model, start);
    begin_from(model, nlohmann::json::object(), "config", settings, start);
    return start;
}

}  // namespace

TEST_CASE("rates fall from layer to layer, from the whole one behind the blocks to the embedding's") {
    const test::Scratch s;
    test::write_family_file(test::family_file("llama-grouped"), s / "model");
    const TrainingStart whole = begun(s / "model", {"finetune.layer_decay=0.5"}),
                        last = begun(s / "model", {"finetune.layer_decay=0.5", "finetune.layers=1"});
    const std::vector<Parameter>& parameters = whole.base->traced().graph.parameters();
    REQUIRE(whole.learner.own.size() == parameters.size());
    for (std::size_t i = 0; i < parameters.size(); i++) {
        const auto depth = static_cast<int>(depth_of(parameters[i].name, whole.base->config()));
        CAPTURE(parameters[i].name);
        CHECK(whole.learner.own[i].rate == std::pow(0.5, depth));
        CHECK(whole.learner.own[i].trained);
        CHECK(last.learner.own[i].trained == (depth <= 1));
    }
    const TrainingStart adapter =
        begun(s / "model", {"finetune.layer_decay=0.5", "finetune.lora.rank=4", "finetune.lora.alpha=6"});
    REQUIRE(adapter.learner.adapters.size() == 1);
    const std::vector<AdapterTarget>& targets = adapter.learner.adapters[0].targets;
    REQUIRE(targets.size() == adapter.learner.adapter_rates.size());
    REQUIRE(targets.size() >= 3);
    for (std::size_t i = 0; i < targets.size(); i++) {
        CHECK(targets[i].scale == 1.5);
        CHECK(adapter.learner.adapter_rates[i] ==
              std::pow(0.5, depth_of(targets[i].tensor, whole.base->config())));
    }
}

TEST_CASE("a parameter's depth is counted from the end of its own side") {
    ModelConfig config;
    config.layers = 3;
    const auto depth = [&](const char* name) { return depth_of(name, config); };
    CHECK(depth("output_norm.weight") == 0);
    CHECK(depth("cls.output.weight") == 0);
    CHECK(depth("blk.2.attn_q.weight") == 1);
    CHECK(depth("blk.0.attn_q.weight") == 3);
    CHECK(depth("token_embd.weight") == 4);
    config.kind = "encoder-decoder", config.layers = 2, config.decoder_layers = 5;
    CHECK(depth("dec.output_norm.weight") == 0);
    CHECK(depth("dec.blk.4.attn_q.weight") == 1);
    CHECK(depth("dec.blk.0.attn_q.weight") == 5);
    CHECK(depth("enc.blk.1.attn_q.weight") == 1);
    CHECK(depth("enc.output_norm.weight") == 1);  // the decoder stands behind it
    CHECK(depth("token_embd.weight") == 3);
    config.kind = "encoder";
    CHECK(depth("enc.output_norm.weight") == 0);
}

TEST_CASE("--layers counts the layers of the deeper side") {
    const test::Place place(test::kind_named("pairs"));  // an encoder of two layers
    const test::Outcome made = place.train("base", 1, test::set({"model.decoder_layers=3"}));
    REQUIRE_MESSAGE(made.exit == 0, made.err);
    const std::string model = place.s / "base/model.gguf";
    const auto trained = [&](const char* layers) {
        const TrainingStart start = begun(model, {std::string("finetune.layers=") + layers});
        return std::ranges::count_if(start.learner.own,
                                     [](const ParameterStart& one) { return one.trained; });
    };
    CHECK(trained("2") < trained("3"));
    CHECK(test::refusal([&] { trained("4"); }) ==
          "config: finetune.layers: expected at most the model's 3, got 4");
}
