// Configs of small models, and a batch that those of small_model read, for tests.
#pragma once
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "graph/plan.h"
#include "model/config/config.h"

namespace linnet::test {

/// A resolved config with these settings ("model.width"), later objects over earlier ones.
inline ModelConfig config_with(std::int64_t vocabulary, std::initializer_list<nlohmann::json> settings) {
    ModelConfig config;
    std::vector<Field> fields = model_fields(config);
    for (const nlohmann::json& some : settings)
        for (const auto& [key, value] : some.items()) set_field(fields, key, value, "test");
    config.vocabulary = vocabulary;
    resolve(config, "test");
    return config;
}

/// What the models of reference.py and their like have in common; their vocabulary is 11.
inline const nlohmann::json small_model = {{"model.context", 6},    {"model.width", 8},
                                           {"model.layers", 2},     {"model.heads", 2},
                                           {"model.head_width", 4}, {"model.ffn.width", 12}};

/// LLaMA's block, two query heads to a key head where there are four, on a config that is not resolved yet.
inline void make_llama(ModelConfig& c, std::int64_t ffn_width) {
    c.kv_heads = 2, c.norm.kind = "rms", c.position.kind = "rope", c.attention.bias = c.ffn.bias = false;
    c.ffn.gated = true, c.ffn.activation = "silu", c.ffn.width = ffn_width, c.tie_embeddings = false;
}

/// Two sequences of 6 ids below 11, with their targets.
inline Batch two_sequences() {
    Batch batch;
    for (int s = 0; s < 2; s++) {
        std::int32_t ids[7];
        for (int t = 0; t < 7; t++) ids[t] = (5 * s + 3 * t + t * t) % 11;
        batch.add(ids, 6, 0, s);
        batch.targets.insert(batch.targets.end(), ids + 1, ids + 7);
    }
    return batch;
}

/// To train on them.
inline Lowering two_sequences_lowering() {
    Lowering lowering;
    lowering.phase = Phase::train;
    lowering.capacity = {12};
    lowering.positions = 6;
    return lowering;
}

}  // namespace linnet::test
