// An encoder that tells which tokens a smaller one beside it has replaced.
#include "model/trace/generator.h"

#include <doctest/doctest.h>

#include <cmath>
#include <tuple>

#include "graph/small_graphs.h"
#include "model/small_models.h"

using namespace linnet;

namespace {

constexpr GeneratorShape half{0.5, 0.25, 3};
const std::vector<std::int32_t> originals{1, 1, 6};

/// A model of two tags, two layers, 8 wide, with these settings.
ModelConfig config_of(const nlohmann::json& settings) {
    return test::config_with(7, {{{"model.kind", "encoder"},
                                  {"model.head.kind", "tags"},
                                  {"model.head.classes", 2},
                                  {"model.context", 8},
                                  {"model.width", 8},
                                  {"model.layers", 2},
                                  {"model.heads", 2},
                                  {"model.ffn.width", 6}},
                                 settings});
}

/// Two sequences, 3 1 4 1 5 and 2 6 0, of which `originals` are masked (0).
Batch masked_batch() {
    Batch batch;
    const std::int32_t first[] = {3, 0, 4, 0, 5}, second[] = {2, 0, 0};
    batch.add(first, 5, 0, 0);
    batch.add(second, 3, 0, 1);
    batch.outputs = {0, 1, 2, 3, 4, 5, 6, 7};
    batch.targets.assign(8, 0);
    batch.stream("masks") = {1, 3, 6};
    batch.stream("originals") = originals;
    batch.stream("draws") = {1 << 28, 1 << 30, 0x7f000000};
    batch.stream("given") = {3, -1, 4, -2, 5, 2, -3, 0};
    batch.stream("labels") = {0, -1, 0, -2, 0, 0, -3, 0};
    batch.stream("segments") = {0, 0, 1, 1, 1, 0, 1, 0};
    batch.loss_scale = 1;
    return batch;
}

Lowering lowering_for(Phase phase) {
    Lowering lowering;
    lowering.phase = phase, lowering.capacity = {8, 8, 8}, lowering.positions = 8;
    return lowering;
}

std::size_t index_of(const Graph& graph, const std::string& name) {
    std::size_t i = 0;
    while (graph.parameters().at(i).name != name) i++;
    return i;
}

}  // namespace

TEST_CASE("gradients of an encoder with a generator agree with central differences") {
    auto check = [](const nlohmann::json& settings, bool recompute = false) {
        INFO(settings.dump());
        nlohmann::json all = settings;
        all["model.attention.bias"] = false;  // of keys it changes nothing, but what rounding leaves
        const TracedModel model = trace_with_generator(config_of(all), {}, half);
        Lowering lowering = lowering_for(Phase::train);
        lowering.recompute = recompute;
        test::check_gradients(model.graph, lowering, masked_batch());
    };
    check({{"model.segments", 2},
           {"model.norm.placement", "post"},
           {"model.embedding.norm", true},
           {"model.embedding.norm_last", true}});
    check({{"model.position.kind", "rope"}, {"model.head.transform", true}, {"model.tie_layers", 1}}, true);
    check({{"model.attention.value_embedding", 1},
           {"model.attention.buckets", 4},
           {"model.attention.reach", 4},
           {"model.position.kind", "none"},
           {"model.label_smoothing", 0.1}});
}

TEST_CASE("the generator's loss, the tokens drawn and the encoder's loss are those of a plain computation") {
    const ModelConfig config = config_of({{"model.segments", 2}});
    const TracedModel both = trace_with_generator(config, {}, half), plain = trace(config, true);
    test::GraphRun<double> run(both.graph), alone(plain.graph);
    // The generator's rows are zero, so that its guesses are its bias.
    for (const char* part : {"weight", "bias"})
        for (double& x : run.values[index_of(both.graph, std::string("gen.output_transform_norm.") + part)])
            x = 0;
    std::vector<double>& bias = run.values[index_of(both.graph, "gen.output.bias")];
    bias = {0.1, 1.4, -2, 0.3, 0.7, -0.4, 1.9};
    const std::vector<NodeId>& made = both.graph.program("replaced").roots;
    run.lower("score", lowering_for(Phase::read));
    Batch batch = masked_batch();
    const double loss = run.loss(batch, both.loss);

    double all = 0;
    for (double b : bias) all += std::exp(b);
    std::vector<std::int32_t> drawn;
    for (std::size_t k = 0; k < originals.size(); k++) {
        const double nats = std::log(all) - bias[static_cast<std::size_t>(originals[k])];
        CHECK(run.executor->value(made[0])[k] == doctest::Approx(nats).epsilon(1e-12));
        double below = 0, u = batch.stream("draws")[k] * 0x1p-31;
        std::int32_t token = 0;
        while ((below += std::exp(bias[static_cast<std::size_t>(token)]) / all) <= u) token++;
        drawn.push_back(token);
    }
    CHECK(drawn == std::vector<std::int32_t>{1, 4, 6});  // two of the three are what stood there
    const auto* wrong = reinterpret_cast<const std::int32_t*>(run.executor->value(made[1]));
    CHECK(std::vector<std::int32_t>(wrong, wrong + 8) == std::vector<std::int32_t>{0, 0, 0, 1, 0, 0, 0, 0});

    Batch seen = masked_batch();
    seen.tokens = {3, drawn[0], 4, drawn[1], 5, 2, drawn[2], 0};
    seen.targets = {0, 0, 0, 1, 0, 0, 0, 0};
    for (std::size_t p = 0; p < alone.values.size(); p++)
        alone.values[p] = run.values[index_of(both.graph, plain.graph.parameters()[p].name)];
    for (std::size_t p = 0; p < alone.values.size(); p++)
        alone.binding.parameters[p].data = alone.values[p].data();
    alone.lower("score", lowering_for(Phase::read));
    CHECK(alone.loss(seen, plain.loss) == loss);
    CHECK(loss > 0);
}

TEST_CASE("an encoder's parameters stand in their order beside a generator's, which no file holds") {
    const ModelConfig config = config_of({{"model.segments", 2},
                                          {"model.embedding.norm", true},
                                          {"model.position.kind", "rope"},
                                          {"model.position.factors", true}});
    const Graph both = trace_with_generator(config, {}, half).graph, plain = trace(config, false).graph;
    std::vector<std::string> own, expected;
    for (const Parameter& p : both.parameters()) {
        CHECK((p.adapter == helper) == p.name.starts_with(generator_prefix));
        if (p.adapter == none) own.push_back(p.name);
    }
    for (const Parameter& p : plain.parameters()) expected.push_back(p.name);
    CHECK(own == expected);
    CHECK(own.size() < both.parameters().size());
}

TEST_CASE("a generator is as deep as the encoder and a share as wide, with heads of the same width") {
    ModelConfig config = test::config_with(7, {{{"model.kind", "encoder"},
                                                {"model.context", 8},
                                                {"model.width", 48},
                                                {"model.layers", 2},
                                                {"model.heads", {6, 4}},
                                                {"model.kv_heads", {3, 2}},
                                                {"model.head_width", 8},
                                                {"model.ffn.width", {96, 100}},
                                                {"model.attention.value_embedding", {1, 0}}}});
    const ModelConfig quarter = generator_config(config, 0.25);
    CHECK(quarter.width == 12);
    CHECK(quarter.layers == 2);
    CHECK(quarter.head_width == 8);
    CHECK(quarter.heads.list() == std::vector<std::int64_t>{2, 1});
    CHECK(quarter.kv_heads.list() == std::vector<std::int64_t>{1, 1});
    CHECK(quarter.ffn.width.list() == std::vector<std::int64_t>{24, 25});
    CHECK(quarter.attention.value_embedding.list() == std::vector<std::int64_t>{0});
    CHECK(generator_config(config, 0.01).width == 1);
    CHECK(generator_config(config, 0.5).heads.list() == std::vector<std::int64_t>{3, 2});
    CHECK(generator_config(config, 0.5).kv_heads.list() == std::vector<std::int64_t>{3, 1});
    CHECK(generator_config(config, 1).kv_heads.list() == std::vector<std::int64_t>{3, 2});
}

TEST_CASE("a generator's recurrences are a share as wide, with heads of the same width") {
    auto config = [](const nlohmann::json& mixer, std::int64_t groups) {
        return config_of({{"model.mixer", mixer},
                          {"model.width", 48},
                          {"model.position.kind", "none"},
                          {"model.ssm.state", 4},
                          {"model.ssm.heads", 6},
                          {"model.ssm.groups", groups}});
    };
    const ModelConfig one = generator_config(config("mamba", 1), 0.25);
    CHECK(one.ssm.inner == 24);
    CHECK(one.ssm.rank == 1);
    for (const auto& [share, heads, groups] : {std::tuple{0.5, 3, 3}, {0.25, 2, 2}, {1.0, 6, 3}}) {
        const ModelConfig part = generator_config(config("mamba2", 3), share);
        CHECK(part.ssm.heads == heads);
        CHECK(part.ssm.groups == groups);
        CHECK(part.ssm.inner == heads * 16);
    }
    const Graph both = trace_with_generator(config({"mamba", "mamba2"}, 1), {}, half).graph;
    const auto& all = both.parameters();
    CHECK(all[static_cast<ParameterId>(index_of(both, "gen.blk.0.ssm_a"))].shape.count() == 48 * 4);
    CHECK(all[static_cast<ParameterId>(index_of(both, "gen.blk.1.ssm_a"))].shape.count() == 3);
    CHECK(all[static_cast<ParameterId>(index_of(both, "blk.1.ssm_a"))].shape.count() == 6);
}
