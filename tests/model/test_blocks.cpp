// Whole small models of every kind of block: all gradients against central differences, in double.
#include <doctest/doctest.h>

#include "graph/small_graphs.h"
#include "model/small_models.h"
#include "model/trace/trace.h"

using namespace linnet;

namespace {

/// A model of two layers, 8 wide, with these settings.
ModelConfig config_of(const nlohmann::json& settings) {
    return test::config_with(7, {{{"model.context", 8},
                                  {"model.width", 8},
                                  {"model.layers", 2},
                                  {"model.heads", 2},
                                  {"model.ffn.width", 6},
                                  {"model.position.kind", "rope"}},
                                 settings});
}

void check(const nlohmann::json& settings) {
    INFO(settings.dump());
    TracedModel model = trace(config_of(settings), true);
    Batch batch;
    const std::int32_t first[] = {3, 1, 4, 1, 5}, second[] = {2, 6, 0};
    batch.add(first, 5, 0, 0);
    batch.add(second, 3, 0, 1);
    batch.targets = {1, 4, -1, 5, 0, 2, 6, 5};
    batch.loss_scale = 1;
    batch.step_share = 8;  // routers' losses: sums over the rows, too
    Lowering lowering;
    lowering.phase = Phase::train, lowering.capacity = {8}, lowering.positions = 8;
    if (config_of(settings).is_encoder())
        batch.outputs = {0, 1, 2, 3, 4, 5, 6, 7}, lowering.capacity = {8, 8};
    test::check_gradients(model.graph, lowering, batch);
}

}  // namespace

TEST_CASE("a model's gradients agree with central differences, whatever its blocks are") {
    check({{"model.norm.placement", "sandwich"},
           {"model.norm.kind", "rms"},
           {"model.attention.qk_norm", "head"}});
    check({{"model.norm.placement", "res-post"},
           {"model.attention.qk_norm", "full"},
           {"model.norm.bias", false}});
    check({{"model.residual.kind", "parallel"},
           {"model.attention.qk_norm", "each-head"},
           {"model.logits.bias", true}});
    check({{"model.residual.kind", "parallel"},
           {"model.residual.shared_norm", true},
           {"model.position.rotary_width", 2},
           {"model.residual.scale", 0.5},
           {"model.logits.scale", 0.5},
           {"model.logits.softcap", 2.0},
           {"model.ffn.activation", "relu2"}});
    check({{"model.norm.weight", false},
           {"model.embedding.scale", 3.0},
           {"model.embedding.norm", false},
           {"model.attention.clamp", 2.0},
           {"model.attention.scale", 0.3},
           {"model.position.scaling.factor", {1.0, 4.0}}});
    check({{"model.norm.placement", "deep"}, {"model.attention.softcap", 0.5}});
    check(
        {{"model.attention.alibi", 8.0}, {"model.position.kind", "none"}, {"model.attention.softcap", 1.0}});
    check({{"model.attention.buckets", 4}, {"model.attention.reach", 4}, {"model.kv_heads", 1}});
    check({{"model.attention.window", 2}, {"model.attention.globals", 1}});
    check({{"model.attention.qk_norm", "unit"}, {"model.norm.weight", false}});
    const nlohmann::json words = {{"model.kind", "encoder"}, {"model.kv_heads", 1}};
    for (const char* share : {"headwise", "key-value"}) {
        nlohmann::json projected = words;
        projected.update({{"model.attention.projected", {2, 4}}, {"model.attention.projected_share", share}});
        check(projected);
    }
    check({{"model.residual.first", "scalars"}, {"model.attention.value_embedding", 1}});
    check({{"model.layers", 3},
           {"model.residual.first", "vectors"},
           {"model.attention.value_embedding", {1, 2, 1}},
           {"model.kv_heads", 1},
           {"model.attention.bias", false},
           {"model.tie_embeddings", false}});
    check({{"model.residual.kind", "parallel"},
           {"model.residual.first", "vectors"},
           {"model.attention.value_embedding", {2, 0}}});
    check({{"model.layers", 4},
           {"model.tie_layers", 2},
           {"model.residual.first", "scalars"},
           {"model.attention.value_embedding", {0, 1, 1, 0}}});
    check({{"model.layers", 3}, {"model.tie_layers", 1}});
    check({{"model.layers", 4}, {"model.tie_layers", 2}, {"model.norm.placement", "sandwich"}});
}

TEST_CASE("zero_init: what ends a branch, and an output matrix of its own, start at 0, and nothing else") {
    for (bool tied : {false, true}) {
        const ModelConfig config = config_of({{"model.zero_init", true}, {"model.tie_embeddings", tied}});
        std::size_t zeros = 0;
        const TracedModel model = trace(config, true);
        for (const Parameter& p : model.graph.parameters()) {
            if (p.shape.rank < 2) continue;
            const bool ends = p.name.find("attn_output") != p.name.npos ||
                              p.name.find("ffn_down") != p.name.npos || p.name == "output.weight";
            CHECK_MESSAGE((p.init_std == 0) == ends, p.name);
            zeros += ends;
        }
        CHECK(zeros == (tied ? 4 : 5));
    }
}

TEST_CASE("a mixture's gradients agree with central differences") {
    auto with = [&](const nlohmann::json& more) {
        nlohmann::json all = {{"model.ffn.gated", true},
                              {"model.ffn.bias", false},
                              {"model.experts.count", 4},
                              {"model.experts.used", 2}};
        all.update(more);
        check(all);
    };
    with(nlohmann::json::object());
    with({{"model.experts.renormalize", false},
          {"model.experts.shared", 5},
          {"model.experts.shared_gate", true}});
    with({{"model.experts.score", "sigmoid"}, {"model.experts.scale", 1.5}, {"model.experts.shared", 4}});
    with({{"model.experts.score", "sigmoid"},
          {"model.experts.renormalize", false},
          {"model.experts.count", {4, 0}}});
    with({{"model.experts.leading_dense", 1}, {"model.experts.shared", 4}});
    with({{"model.ffn.gated", false}, {"model.experts.shared", 4}});
    with({{"model.experts.used", 1}, {"model.experts.renormalize", false}, {"model.ffn.gated", false}});
    with({{"model.experts.balance_loss", 0.7}, {"model.experts.z_loss", 0.2}});
    with({{"model.experts.balance_loss", 0.7}, {"model.experts.score", "sigmoid"}});
    with({{"model.experts.z_loss", 0.3}, {"model.tie_layers", 1}});
}

TEST_CASE("the loss is that of the logits that are written, scaled and capped, in training too") {
    const ModelConfig config = test::config_with(
        11, {test::small_model, {{"model.logits.scale", 0.25}, {"model.logits.softcap", 5}}});
    for (const bool training : {false, true}) {
        const TracedModel model = trace(config, training);
        const Attributes& loss = model.graph.node(model.loss).attributes;
        CHECK(loss.number("scale") == 0.25);
        CHECK(loss.number("softcap") == 5);
    }
}
