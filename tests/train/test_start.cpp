// What a run that begins from a model trains, and at which rates.
#include "train/start.h"

#include <doctest/doctest.h>

#include <cmath>

#include "model/family_files.h"
#include "support.h"

using namespace linnet;

namespace {

/// How many layers below the rates of the last ones this parameter's rate lies: 0 behind the blocks.
int depth_of(const std::string& name, int layers) {
    if (name.starts_with("output")) return 0;
    if (!name.starts_with("blk.")) return layers + 1;
    return layers - std::stoi(name.substr(4));
}

TrainingStart begun(const std::string& model, const std::vector<std::string>& settings) {
    TrainingStart start;
    begin_from(model, nlohmann::json::object(), "config", settings, start);
    return start;
}

}  // namespace

TEST_CASE("rates fall from layer to layer, from the whole one behind the blocks to the embedding's") {
    const test::Scratch s;
    for (const test::FamilyFile& file : test::family_files())
        if (file.name == std::string("llama-grouped")) test::write_family_file(file, s / "model");
    const TrainingStart whole = begun(s / "model", {"finetune.layer_decay=0.5"}),
                        last = begun(s / "model", {"finetune.layer_decay=0.5", "finetune.layers=1"});
    const std::vector<Parameter>& parameters = whole.base->traced().graph.parameters();
    REQUIRE(whole.learner.own.size() == parameters.size());
    for (std::size_t i = 0; i < parameters.size(); i++) {
        const int depth = depth_of(parameters[i].name, 3);
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
        CHECK(adapter.learner.adapter_rates[i] == std::pow(0.5, depth_of(targets[i].tensor, 3)));
    }
}
