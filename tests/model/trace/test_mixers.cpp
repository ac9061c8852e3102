// Models whose layers look back by recurrences: gradients over sequences longer than a chunk of their scans,
// and configs that contradict themselves.
#include <doctest/doctest.h>

#include "formats/gguf.h"
#include "graph/small_graphs.h"
#include "model/quantize/quantize_types.h"
#include "model/small_models.h"
#include "model/trace/trace.h"
#include "support.h"

using namespace linnet;

namespace {

ModelConfig config_of(const nlohmann::json& settings) {
    return test::config_with(7, {{{"model.context", 64},
                                  {"model.width", 4},
                                  {"model.layers", 2},
                                  {"model.heads", 2},
                                  {"model.ffn.width", 3},
                                  {"model.position.kind", "none"},
                                  {"model.ssm.state", 3}},
                                 settings});
}

/// All gradients, over sequences of 21 and 18 rows, which chunks of 16 rows of the batch cut twice.
void check(const nlohmann::json& settings) {
    INFO(settings.dump());
    TracedModel model = trace(config_of(settings), true);
    Batch batch;
    std::vector<std::int32_t> ids;
    for (std::int32_t i = 0; i < 40; i++) ids.push_back((i * i + 3 * i) % 7);
    batch.add(ids.data(), 21, 0, 0), batch.add(ids.data() + 21, 18, 0, 1);
    batch.targets.assign(ids.begin() + 1, ids.end());
    batch.loss_scale = 1;
    Lowering lowering;
    lowering.phase = Phase::train, lowering.capacity = {40}, lowering.positions = 40;
    // Sums over so many rows leave the differences fewer digits; test_reference.cpp has them to 1e-8.
    test::check_gradients(model.graph, lowering, batch, 2e-5, 2e-8);
}

std::string refusal(const nlohmann::json& settings) {
    return test::refusal([&] { config_of(settings); });
}

}  // namespace

TEST_CASE("a recurrent model's gradients agree with central differences over several chunks") {
    check({{"model.mixer", "mamba"}, {"model.ffn.kind", "none"}, {"model.norm.kind", "rms"}});
    check({{"model.mixer", {"mamba", "attention"}},
           {"model.ssm.norms", "weights"},
           {"model.position.kind", "rope"}});
    check({{"model.mixer", "mamba"}, {"model.ssm.norms", "plain"}, {"model.tie_layers", 1}});
    check({{"model.mixer", "mamba2"}, {"model.ssm.heads", 4}, {"model.ssm.groups", 2}});
    check({{"model.mixer", {"mamba2", "lstm"}}, {"model.ssm.heads", 2}, {"model.ffn.kind", "none"}});
    check({{"model.mixer", "rwkv7"},
           {"model.ffn.kind", "channel-mix"},
           {"model.rwkv.decay", 2},
           {"model.rwkv.rate", 3},
           {"model.rwkv.value", 2},
           {"model.rwkv.gate", 3}});
    check({{"model.mixer", "rwkv6"},
           {"model.ffn.kind", "channel-mix"},
           {"model.ffn.gated", true},
           {"model.rwkv.decay", 2},
           {"model.rwkv.mix", 3},
           {"model.residual.halve_every", 2}});
    check({{"model.mixer", "lstm"}, {"model.ffn.kind", "channel-mix"}, {"model.ffn.gated", true}});
    check({{"model.mixer", "linear-attention"}, {"model.position.kind", "sinusoidal"}});
    check({{"model.mixer", {"linear-attention", "attention"}}, {"model.position.kind", "rope"}});
    const ModelConfig heads = config_of({{"model.mixer", {"linear-attention", "attention"}},
                                         {"model.heads", {4, 2}},
                                         {"model.head_width", 2}});
    CHECK(heads.heads.at(0) == 4);
    CHECK(heads.heads.at(1) == 2);
}

TEST_CASE("mixers that contradict the rest of a config are refused by the key's name") {
    auto says = [](const std::string& line, const std::string& part) {
        CHECK_MESSAGE(test::has(line, part), line);
    };
    says(refusal({{"model.mixer", "mamba"}}), "accepted");
    says(refusal({{"model.mixer", "mambo"}}), "model.mixer: expected one of attention, mamba");
    says(refusal({{"model.mixer", "mamba"}, {"model.position.kind", "rope"}}),
         "model.position.kind: expected none, as no layer has attention, got rope");
    says(refusal({{"model.mixer", "linear-attention"}, {"model.position.kind", "rope"}}),
         "model.position.kind: expected learned, sinusoidal, bits or none, as no layer has attention, got "
         "rope");
    says(refusal({{"model.mixer", "linear-attention"}, {"model.attention.dropout", 0.1}}),
         "model.attention.dropout: expected 0, as no layer has attention, got 0.1 (there are no weights to "
         "drop)");
    says(refusal({{"model.mixer", {"mamba", "mamba", "attention"}}}),
         "model.mixer: expected at most 2 values, one per layer, got 3");
    says(refusal({{"model.mixer", {"mamba", "attention"}}, {"model.tie_layers", 1}}),
         "model.tie_layers: expected 0, as tied layers differ");
    says(refusal({{"model.ffn.kind", "none"}, {"model.experts.count", 4}}),
         "model.experts.count: expected 0 beside ffn.kind none, got 4");
    says(refusal({{"model.ffn.kind", "none"}, {"model.residual.kind", "parallel"}}),
         "model.residual.kind: expected sequential beside ffn.kind none");
    says(refusal({{"model.mixer", "mamba"}, {"model.ssm.state", 1000}}),
         "model.ssm.state: expected 0 to 256");
    says(refusal({{"model.mixer", "mamba2"}}),
         "model.ssm.heads: expected a number, as ssm.inner is no multiple of 64");
    says(refusal({{"model.mixer", "mamba2"}, {"model.ssm.heads", 4}, {"model.ssm.groups", 3}}),
         "model.ssm.groups: expected a divisor of ssm.heads (4), got 3");
    says(refusal({{"model.mixer", "rwkv7"}, {"model.head_width", 3}}),
         "model.head_width: expected width / heads for rwkv, got 3");
}

TEST_CASE("quantizing leaves the matrices of recurrent layers alone that other runtimes want plain") {
    auto quantized = [](const char* name) {
        return is_quantized_tensor({name, DType::f32, Shape(64, 64), {}});
    };
    for (const char* name : {"blk.0.ssm_in.weight", "blk.0.ssm_x.weight", "blk.1.time_mix_key.weight",
                             "blk.1.time_mix_value.weight", "blk.1.time_mix_gate.weight"})
        CHECK_MESSAGE(quantized(name), name);
    for (const char* name :
         {"blk.0.ssm_conv1d.weight", "blk.0.ssm_a", "blk.0.ssm_norm.weight", "blk.1.time_mix_w2.weight",
          "blk.1.time_mix_v1.weight", "blk.1.time_mix_g2.weight", "blk.1.time_mix_first.weight",
          "blk.1.time_mix_lerp_fused.weight"})
        CHECK_MESSAGE(!quantized(name), name);
}
