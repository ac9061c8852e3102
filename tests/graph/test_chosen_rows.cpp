#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "graph/executor.h"
#include "model/small_models.h"
#include "model/trace/row_room.h"
#include "model/trace/trace.h"
#include "random_values.h"

using namespace linnet;
using nlohmann::json;

namespace {

constexpr std::int64_t vocabulary = 37;

std::map<std::string, json> models() {
    const json no_positions = {{"model.position.kind", "none"}};
    auto mixer = [&](const char* name, json more) {
        more.update(no_positions);
        more["model.mixer"] = name;
        return more;
    };
    return {
        {"decoder", json::object()},
        {"sandwich", {{"model.norm.placement", "sandwich"}, {"model.attention.window", 3}}},
        {"post", {{"model.norm.placement", "post"}}},
        {"parallel", {{"model.residual.kind", "parallel"}}},
        {"gated", {{"model.ffn.activation", "silu"}, {"model.ffn.gated", true}, {"model.norm.kind", "rms"}}},
        {"experts", {{"model.experts.count", 4}, {"model.experts.used", 2}, {"model.ffn.bias", false}}},
        {"first embedding", {{"model.residual.first", "vectors"}}},
        {"mamba", mixer("mamba", {{"model.ssm.state", 5}, {"model.ffn.kind", "none"}})},
        {"rwkv7", mixer("rwkv7", {{"model.ffn.kind", "channel-mix"}})},
        {"lstm", mixer("lstm", json::object())},
        {"encoder", {{"model.kind", "encoder"}, {"model.head.transform", true}}},
        {"tags", {{"model.kind", "encoder"}, {"model.head.kind", "tags"}, {"model.head.classes", 3}}},
    };
}

struct Made {
    std::vector<float> logits;
    std::int64_t chosen = 0;  // steps that run for chosen rows alone
};

/// Two sequences of nine tokens, and the logits of some of their rows.
Made run(const TracedModel& model, const Binding<float>& binding, bool chosen_only,
         const std::vector<std::int32_t>& outputs) {
    Lowering lowering;
    lowering.capacity = capacities(model.graph, {.tokens = 18, .outputs = 3});
    lowering.positions = 12;
    lowering.chosen_only = chosen_only;
    Executor<float> executor(model.graph, make_plan(model.graph, model.graph.program("logits"), lowering),
                             binding, 2);
    Batch batch;
    for (std::int32_t s = 0; s < 2; s++) {
        std::vector<std::int32_t> ids;
        for (std::int32_t t = 0; t < 9; t++) ids.push_back((s * 5 + t * t * 3 + t) % vocabulary);
        batch.add(ids.data(), 9, 0, s);
    }
    batch.outputs = outputs;
    Made made;
    const Node& logits = model.graph.node(model.logits);
    for (const PlanStep& step : executor.plan().steps) made.chosen += step.space == logits.space;
    executor.run(batch);
    const float* at = executor.value(model.logits);
    made.logits.assign(at, at + static_cast<std::ptrdiff_t>(outputs.size()) * logits.width);
    return made;
}

}  // namespace

TEST_CASE("rows that nobody chooses are not made, and the chosen ones have the same bits") {
    const json small = {{"model.context", 12}, {"model.width", 16}, {"model.layers", 2}, {"model.heads", 4}};
    for (const auto& [name, settings] : models()) {
        CAPTURE(name);
        const TracedModel model = trace(test::config_with(vocabulary, {small, settings}), false);
        auto values = test::random_values(model.graph, 11, 0.3);
        Binding<float> binding;
        binding.parameters = test::tensors_of(model.graph, values);
        const Made whole = run(model, binding, false, {3, 8, 17}),
                   chosen = run(model, binding, true, {3, 8, 17});
        CHECK(chosen.logits == whole.logits);
        CHECK(chosen.chosen > whole.chosen);
        CHECK(run(model, binding, true, {}).logits.empty());
    }
}
