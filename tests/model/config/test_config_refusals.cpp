// Model configs that contradict themselves: each row is settings, and the line that is said of them.
#include <doctest/doctest.h>

#include "model/small_models.h"
#include "support.h"

using namespace linnet;
using nlohmann::json;
using test::refusal;

namespace {

ModelConfig config_of(const json& settings) {
    return test::config_with(11, {test::small_model, settings});
}

const json encoder = {{"model.kind", "encoder"}};
const json picture = {{"model.kind", "encoder"},         {"model.head.kind", "classes"},
                      {"model.image.width", 4},          {"model.image.height", 4},
                      {"model.image.patch", 2},          {"model.pooling", "first"},
                      {"model.position.kind", "learned"}};
const json windows = {{"model.kind", "encoder"},      {"model.head.kind", "classes"},
                      {"model.image.width", 8},       {"model.image.height", 8},
                      {"model.image.patch", 2},       {"model.image.window", 2},
                      {"model.position.kind", "none"}};
const json mixture = {{"model.experts.count", 4},
                      {"model.experts.used", 2},
                      {"model.ffn.gated", true},
                      {"model.ffn.bias", false}};
const json deeper = {{"model.kind", "encoder-decoder"}, {"model.layers", 1},
                     {"model.decoder_layers", 2},       {"model.experts.count", 4},
                     {"model.experts.used", 2},         {"model.ffn.gated", true},
                     {"model.ffn.bias", false}};
const json rope = {{"model.position.kind", "rope"}};

}  // namespace

TEST_CASE("a config that contradicts itself is refused by the setting's name") {
    struct Row {
        json base, more;
        std::string says;
    };
    const json plain = json::object();
    const json linear = {{"model.position.kind", "none"}};
    const Row rows[] = {
        {plain,
         {{"model.heads", 3}, {"model.head_width", 0}},
         "model.heads: expected a divisor of width (8), got 3"},
        {plain, {{"model.kv_heads", 3}}, "model.kv_heads: expected a divisor of heads (2), got 3"},
        {plain, {{"model.head_width", 1 << 20}}, "model.head_width: expected at most "},
        {linear,
         {{"model.mixer", "mamba2"}, {"model.ssm.heads", 3}},
         "model.ssm.heads: expected a divisor of ssm.inner (16), got 3"},
        {linear,
         {{"model.mixer", "mamba"}, {"model.width", 1 << 24}},
         "model.ssm.inner: expected at most 16777216, got 33554432"},
        {linear,
         {{"model.mixer", "rwkv7"}, {"model.heads", {2, 1}}},
         "model.head_width: expected width / heads for rwkv, got 4"},
        {rope,
         {{"model.position.rotary_width", 6}},
         "model.position.rotary_width: expected an even number up to head_width (4), got 6"},
        {rope,
         {{"model.position.rotary_width", 3}},
         "model.position.rotary_width: expected an even number up to head_width (4), got 3"},
        {rope,
         {{"model.position.factors", true}, {"model.position.long_factors", true}},
         "model.position.factors: expected factors or long_factors, got both"},
        {rope, {{"model.head_width", 3}}, "model.head_width: expected an even number for rope, got 3"},
        {mixture, {{"model.experts.count", {2, 3}}}, "model.experts.count: expected one number, or 0, got 3"},
        {mixture,
         {{"model.experts.leading_dense", 2}},
         "model.experts.leading_dense: expected fewer than layers (2), beside one count, got 2"},
        {mixture,
         {{"model.experts.leading_dense", 1}, {"model.experts.count", {4, 0}}},
         "model.experts.leading_dense: expected fewer than layers (2), beside one count, got 1"},
        {mixture, {{"model.experts.used", 0}}, "model.experts.used: expected 1 to count (4), got 0"},
        {mixture, {{"model.experts.used", 5}}, "model.experts.used: expected 1 to count (4), got 5"},
        {mixture, {{"model.ffn.bias", true}}, "model.experts.count: expected 0, or no ffn.bias, got 4"},
        {deeper, {{"model.experts.count", {4, 8}}}, "model.experts.count: expected one number, or 0, got 8"},
        {deeper, {{"model.experts.count", {8, 4}}}, "model.experts.count: expected one number, or 0, got 4"},
        {deeper,
         {{"model.experts.leading_dense", 1}},
         "model.experts.leading_dense: expected fewer than layers (1), beside one count, got 1"},
        {deeper,
         {{"model.layers", 3}, {"model.experts.leading_dense", 2}},
         "model.experts.leading_dense: expected fewer than decoder_layers (2), beside one count, got 2"},
        {plain,
         {{"model.attention.value_embedding", 1}, {"model.kv_heads", {2, 1}}},
         "model.attention.value_embedding: expected another table for layer 1, as kv_heads differ, got 1"},
        {picture,
         {{"model.attention.value_embedding", 1}},
         "model.attention.value_embedding: expected 0, as pictures have no tokens, got 1"},
        {plain,
         {{"model.attention.buckets", 2}},
         "model.attention.buckets: expected an even number from 4 to below 2 x attention.reach, got 2"},
        {plain,
         {{"model.attention.buckets", 5}},
         "model.attention.buckets: expected an even number from 4 to below 2 x attention.reach, got 5"},
        {plain,
         {{"model.attention.buckets", 8}, {"model.attention.reach", 4}},
         "model.attention.buckets: expected an even number from 4 to below 2 x attention.reach, got 8"},
        {plain,
         {{"model.attention.buckets", 8}, {"model.heads", {2, 1}}},
         "model.attention.buckets: expected 0, as heads differ by layer, got 8"},
        {plain,
         {{"model.tie_layers", 1}, {"model.ffn.width", {12, 16}}},
         "model.tie_layers: expected 0, as tied layers differ, got 1"},
        {mixture,
         {{"model.tie_layers", 1}, {"model.experts.count", {4, 0}}},
         "model.tie_layers: expected 0, as tied layers differ, got 1"},
        {plain,
         {{"model.residual.kind", "parallel"}, {"model.norm.placement", "post"}},
         "model.norm.placement: expected pre beside parallel branches, got post"},
        {plain,
         {{"model.norm.weight", false}, {"model.attention.qk_norm", "head"}},
         "model.attention.qk_norm: expected none or unit, as norms have no weights, got head"},
        {plain,
         {{"model.decoder_layers", 3}},
         "model.decoder_layers: expected 0, as model.kind is decoder, got 3"},
        {plain,
         {{"model.start_token", 1}},
         "model.start_token: expected -1, as model.kind is decoder, got 1"},
        {plain, {{"model.segments", 2}}, "model.segments: expected 0, as model.kind is decoder, got 2"},
        {plain,
         {{"model.head.kind", "classes"}},
         "model.head.kind: expected tokens, as model.kind is decoder, got classes"},
        {plain,
         {{"model.head.transform", true}},
         "model.head.transform: expected false, as model.kind is decoder, got true"},
        {plain,
         {{"model.head.next", true}},
         "model.head.next: expected false, as model.kind is decoder, got true"},
        {encoder,
         {{"model.head.next", true}, {"model.head.kind", "tags"}, {"model.head.classes", 2}},
         "model.head.next: expected false, as model.head.kind is tags, got true"},
        {encoder,
         {{"model.head.next", true}, {"model.segments", 1}},
         "model.segments: expected at least 2, as model.head.next is true, got 1"},
        {plain,
         {{"model.pooling", "first"}},
         "model.pooling: expected mean, as model.kind is decoder, got first"},
        {plain,
         {{"model.image.patch", 2}},
         "model.kind: expected encoder, as model.image.patch is given, got decoder"},
        {plain,
         {{"model.attention.score", "dot"}, {"model.attention.scale", 2}},
         "model.attention.score: expected scaled beside attention.scale and attention.qk_norm, got dot"},
        {plain,
         {{"model.attention.score", "cosine"}, {"model.attention.qk_norm", "full"}},
         "model.attention.score: expected scaled beside attention.scale and attention.qk_norm, got cosine"},
        {plain,
         {{"model.attention.score", "general"}, {"model.kv_heads", 1}},
         "model.attention.score: expected another, as kv_heads x head_width is not width, got general"},
        {plain,
         {{"model.attention.random", 1}, {"model.attention.window", 64}, {"model.context", 1 << 24}},
         "model.attention.random: expected 0, as model.context is 16777216, got 1 (layers x (context / 64)^2 "
         "may be up to 2^26)"},
        {plain,
         {{"model.attention.projected", {0, 2}}},
         "model.attention.projected: expected 0, as model.kind is decoder, got 2 (projected keys have no "
         "positions)"},
        {encoder,
         {{"model.attention.projected", 2}, {"model.attention.window", {0, 3}}},
         "model.attention.projected: expected 0 in a layer with attention.window, got 2 (projected keys have "
         "no positions)"},
        {encoder,
         {{"model.attention.projected", 2}, {"model.attention.alibi", 8}},
         "model.attention.projected: expected 0 beside attention.alibi, got 2 (projected keys have no "
         "positions)"},
        {encoder,
         {{"model.attention.projected", 2}, {"model.attention.buckets", 4}},
         "model.attention.projected: expected 0 beside attention.buckets, got 2 (projected keys have no "
         "positions)"},
        {encoder,
         {{"model.attention.projected", 1 << 20}},
         "model.attention.projected: expected at most model.context (6), got 1048576"},
        {encoder,
         {{"model.attention.projected", {2, 3}}, {"model.attention.projected_share", "layerwise"}},
         "model.attention.projected: expected one number, or 0, beside projected_share layerwise, got 3"},
        {encoder,
         {{"model.attention.projected", 1 << 20}, {"model.context", 1 << 20}},
         "model.attention.projected: expected a model of fewer than 2^40 parameters, got more"},
        {encoder,
         {{"model.attention.projected", {2, 3}}, {"model.tie_layers", 1}},
         "model.tie_layers: expected 0, as tied layers differ, got 1"},
        {windows,
         {{"model.attention.projected", 2}},
         "model.attention.projected: expected 0 beside image.window and image.merge, got 2 (projected keys "
         "have no positions)"},
        {plain,
         {{"model.attention.score", "additive"}, {"model.attention.softcap", 2}},
         "model.attention.score: expected another beside attention.scale, softcap, alibi or buckets, got "
         "additive"},
        {windows,
         {{"model.image.window", 3}},
         "model.image.window: expected a divisor of the 4 patches in a row of layer 0, got 3"},
        {windows,
         {{"model.image.shift", 2}},
         "model.image.shift: expected less than image.window (2), got 2"},
        {windows,
         {{"model.image.merge", 1}, {"model.image.window", 0}, {"model.image.width", 12}},
         "model.image.merge: expected patches that halve before layer 1, got 3 in a row"},
        {plain,
         {{"model.position.kind", "bits"}, {"model.width", 4}, {"model.heads", 1}, {"model.context", 17}},
         "model.width: expected at least 5, the bits of positions below model.context, got 4"},
        {windows,
         {{"model.width", 1 << 24},
          {"model.ffn.width", 1},
          {"model.image.window", 0},
          {"model.image.merge", {0, 1}}},
         "model.width: expected a model of fewer than 2^40 parameters, got more"},
        {windows,
         {{"model.image.merge", {0, 1}}, {"model.head_width", 0}},
         "model.head_width: expected a number, as image.merge makes layers wider, got none"},
        {windows,
         {{"model.pooling", "first"}},
         "model.image.window: expected 0 beside pooling first, got another"},
        {windows,
         {{"model.attention.score", "additive"}},
         "model.image.window: expected 0 beside pooling mean and such layers, got another"},
        {encoder,
         {{"model.ffn.kind", "channel-mix"}},
         "model.ffn.kind: expected another, as model.kind is encoder, got channel-mix"},
        {encoder,
         {{"model.image.width", 4}},
         "model.image.patch: expected a positive number, as a picture's size is given, got 0"},
        {encoder,
         {{"model.image.height", 4}},
         "model.image.patch: expected a positive number, as a picture's size is given, got 0"},
        {picture,
         {{"model.image.patch", 3}},
         "model.image.width: expected a multiple of image.patch (3), got 4"},
        {picture,
         {{"model.image.height", 0}},
         "model.image.height: expected a multiple of image.patch (2), got 0"},
        {picture,
         {{"model.head.kind", "tokens"}},
         "model.head.kind: expected classes, as image.patch is given, got tokens"},
        {picture,
         {{"model.image.width", 1 << 13}, {"model.image.height", 1 << 13}, {"model.image.patch", 1}},
         "model.image.patch: expected a larger one, for at most 2^24 patches, got 1"},
        {plain,
         {{"model.width", 1 << 24}, {"model.ffn.width", 1 << 24}},
         "model.width: expected a model of fewer than 2^40 parameters, got more"},
    };
    for (const Row& row : rows) {
        json settings = row.base;
        settings.update(row.more);
        const std::string line = refusal([&] { config_of(settings); });
        CHECK_MESSAGE(line.starts_with("test: " + row.says), settings.dump() << ": " << line);
    }
    // What only code can ask for: settings have their limits before.
    auto direct = [](auto&& change) {
        ModelConfig c;
        c.width = 8, c.layers = 2, c.heads = 2, c.vocabulary = 11;
        change(c);
        return refusal([&] { resolve(c, "f"); });
    };
    CHECK(direct([](ModelConfig&) {}) == "accepted");
    CHECK(direct([](ModelConfig& c) { c.width = 0; }) == "f: model.width: expected a positive number, got 0");
    CHECK(direct([](ModelConfig& c) { c.layers = 0; }) ==
          "f: model.layers: expected a positive number, got 0");
    CHECK(direct([](ModelConfig& c) { c.heads = 0; }) == "f: model.heads: expected a positive number, got 0");
    for (const std::int64_t layers : {2, 1 << 20})
        CHECK(direct([&](ModelConfig& c) {
                  c.width = std::int64_t{1} << (layers == 2 ? 40 : 22), c.layers = layers, c.head_width = 64;
                  c.ffn.width = c.width;
              }) == "f: model.width: expected a model of fewer than 2^40 parameters, got more");
    CHECK(direct([](ModelConfig& c) {
              c.kind = "encoder-decoder", c.layers = 1, c.decoder_layers = most_layers;
              c.width = std::int64_t{1} << 14, c.head_width = 64, c.ffn.width = c.width;
          }) == "f: model.width: expected a model of fewer than 2^40 parameters, got more");
}

TEST_CASE("what a model that begins from nothing could not learn is refused, and a file may have it") {
    auto learnable = [](const json& base, const json& more) {
        json settings = base;
        settings.update(more);
        return refusal([&] { require_learnable(config_of(settings), "f"); });
    };
    CHECK(learnable(mixture, json::object()) == "accepted");
    CHECK(
        learnable(mixture, {{"model.experts.used", 1}}) ==
        "f: model.experts.renormalize: expected false, as model.experts.used is 1, got true (the one weight "
        "of a token would always be 1, and its router would learn nothing)");
    for (const json& more : {json{{"model.experts.renormalize", false}},
                             json{{"model.experts.balance_loss", 0.01}}, json{{"model.experts.count", 1}}}) {
        json one = more;
        one["model.experts.used"] = 1;
        CHECK_MESSAGE(learnable(mixture, one) == "accepted", one.dump());
    }
    for (const std::string key : {"model.position.factors", "model.position.long_factors"})
        CHECK(
            learnable(rope, {{key, true}})
                .starts_with("f: " + key + ": expected false in a model that begins from nothing, got true"));
    CHECK(learnable(rope, {{"model.position.scaling.factor", 4.0}}) == "accepted");
}

TEST_CASE("settings that say nothing beside others become their defaults") {
    CHECK(config_of(picture).context == 5);  // four patches and the one that the pooling takes
    json mean = picture;
    mean["model.pooling"] = "mean";
    CHECK(config_of(mean).context == 4);
    CHECK(config_of({{"model.tie_layers", 2}}).tie_layers == 0);
    CHECK(config_of({{"model.tie_layers", 1}}).tie_layers == 1);
    CHECK(config_of({{"model.kind", "encoder-decoder"}, {"model.decoder_layers", 2}}).decoder_layers == 0);
    CHECK(config_of({{"model.kind", "encoder-decoder"}, {"model.decoder_layers", 3}}).decoder_layers == 3);
    CHECK(config_of({{"model.layers", 1}, {"model.residual.first", "scalars"}}).residual.first == "none");
    CHECK(config_of({{"model.residual.first", "scalars"}}).residual.first == "scalars");
    CHECK(config_of({{"model.norm.weight", false}, {"model.attention.qk_norm", "unit"}}).norm.bias);
    CHECK(config_of({{"model.head.kind", "tokens"}, {"model.head.classes", 3}}).head.classes == 0);
    json scaled = rope;
    scaled.update({{"model.position.scaling.kind", "none"}, {"model.position.scaling.factor", 4.0}});
    CHECK(config_of(scaled).position.scaling.factor == 1);
    scaled.update({{"model.position.scaling.kind", "yarn"}, {"model.position.scaling.original", 6}});
    CHECK(config_of(scaled).position.scaling.original == 0);  // the context
    scaled["model.position.scaling.original"] = 3;
    CHECK(config_of(scaled).position.scaling.original == 3);
    scaled.update({{"model.position.scaling.kind", "linear"}, {"model.position.long_factors", true}});
    CHECK(config_of(scaled).position.scaling.original == 3);
    CHECK(config_of({{"model.position.factors", true}}).position.factors == false);  // of rope alone
    CHECK(config_of(mixture).experts.count.at(1) == 4);
    json decoder = deeper;
    decoder["model.experts.count"] = {0, 4};  // in its second layer, which the encoder lacks
    CHECK(config_of(decoder).experts_at(0) == 0);
    CHECK(config_of(decoder).experts_at(1) == 4);
    CHECK(config_of({{"model.attention.value_embedding", 1}}).attention.value_embedding.at(1) == 1);
    CHECK(config_of({{"model.attention.buckets", 8}}).attention.buckets == 8);
}

TEST_CASE("what projects keys counts in an encoder's layers of attention alone") {
    const json mixed = {{"model.kind", "encoder"}, {"model.mixer", {"lstm", "attention"}}};
    auto with = [](json settings, const json& more) {
        settings.update(more);
        return config_of(settings);
    };
    auto same = [](const PerLayer<std::int64_t>& list, std::vector<std::int64_t> values) {
        return list == PerLayer<std::int64_t>(std::move(values));
    };
    // Another number, one above the context, a window: of the LSTM they mean nothing.
    CHECK(same(
        with(mixed, {{"model.attention.projected", {3, 2}}, {"model.attention.projected_share", "layerwise"}})
            .attention.projected,
        {0, 2}));
    CHECK(same(with(mixed, {{"model.attention.projected", {1 << 20, 2}}, {"model.attention.window", {3, 0}}})
                   .attention.projected,
               {0, 2}));
    CHECK(
        same(with(mixed,
                  {{"model.layers", 4}, {"model.tie_layers", 2}, {"model.attention.projected", {3, 2, 1, 2}}})
                 .attention.projected,
             {0, 2}));
    CHECK(
        refusal([&] {
            with(mixed,
                 {{"model.layers", 4}, {"model.tie_layers", 2}, {"model.attention.projected", {3, 2, 3, 1}}});
        }) == "test: model.tie_layers: expected 0, as tied layers differ, got 2");
    const ModelConfig none = with(
        mixed, {{"model.attention.projected", {3, 0}}, {"model.attention.projected_share", "key-value"}});
    CHECK(same(none.attention.projected, {0}));
    CHECK(none.attention.projected_share == "headwise");
    // The layers of a deeper decoder project nothing.
    CHECK(same(with(encoder, {{"model.kind", "encoder-decoder"},
                              {"model.layers", 3},
                              {"model.decoder_layers", 6},
                              {"model.tie_layers", 2},
                              {"model.attention.projected", {2, 3, 2}}})
                   .attention.projected,
               {2, 3}));
}
