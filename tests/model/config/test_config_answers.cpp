// What a config answers about its layers.
#include <doctest/doctest.h>

#include <algorithm>

#include "graph/graph.h"
#include "model/small_models.h"
#include "model/trace/trace.h"

using namespace linnet;

TEST_CASE("a config tells which of its layers attend") {
    const ModelConfig mixed = test::config_with(
        11, {test::small_model, {{"model.mixer", {"mamba", "attention"}}, {"model.position.kind", "none"}}});
    CHECK_FALSE(mixed.attends(0));
    CHECK(mixed.attends(1));
    CHECK(ModelConfig().attends(0));
    CHECK(std::ranges::count(mixer_names(), attention_mixer) == 1);
}

TEST_CASE("attention is told of as many blocks to choose from as the config counts") {
    for (const std::int64_t context : {64, 65, 200}) {
        const ModelConfig config = test::config_with(
            11, {test::small_model,
                 {{"model.context", context}, {"model.attention.window", 4}, {"model.attention.random", 1}}});
        CHECK(config.choice_blocks() == (context == 64 ? 1 : context == 65 ? 2 : 4));
        int told = 0;
        const TracedModel traced = trace(config, false);
        for (const Node& node : traced.graph.nodes())
            if (node.attributes.has("blocks")) {
                told++;
                CHECK(static_cast<std::int64_t>(node.attributes.number("blocks")) == config.choice_blocks());
            }
        CHECK(told == config.layers);
    }
}
