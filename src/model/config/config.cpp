#include "model/config/config.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>

#include "base/checked.h"
#include "base/error.h"
#include "kernels/kernels.h"
#include "kernels/scan.h"
#include "ops/pool.h"

namespace linnet {

namespace {

/// Calls visit(field, list) for every setting that may differ by layer.
template <class Visit>
void each_per_layer(ModelConfig& c, const Visit& visit) {
    for (const Field& field : model_fields(c))
        std::visit(
            [&](auto* to) {
                if constexpr (requires { to->list(); }) visit(field, *to);
            },
            field.target);
}

/// `list` with the values that are 0 replaced by what(layer).
template <class What>
PerLayer<std::int64_t> filled(const PerLayer<std::int64_t>& list, std::int64_t layers, const What& what) {
    std::vector<std::int64_t> values;
    for (std::int64_t layer = 0; layer < layers; layer++)
        values.push_back(list.at(layer) == 0 ? what(layer) : list.at(layer));
    return PerLayer<std::int64_t>(std::move(values));
}

void check_heads(ModelConfig& c, std::string_view file) {
    auto text = [](std::int64_t n) { return std::to_string(n); };
    for (std::int64_t heads : c.heads.list())
        if (heads <= 0) fail_input(file, "model.heads", "a positive number", text(heads));
    c.kv_heads = filled(c.kv_heads, c.deepest(), [&](std::int64_t layer) { return c.heads.at(layer); });
    if (c.uses(attention_mixer) && c.kind != "encoder-decoder" &&
        c.mixer.is_list()) {  // what layers without attention have means nothing
        std::int64_t first = 0;
        while (!c.attends(first)) first++;
        auto attention = [&](const PerLayer<std::int64_t>& list, auto counts) {
            std::vector<std::int64_t> values;
            for (std::int64_t layer = 0; layer < c.layers; layer++)
                values.push_back(list.at(counts(c.mixer.at(layer)) ? layer : first));
            return PerLayer<std::int64_t>(std::move(values));
        };
        c.heads = attention(c.heads, mixer_has_heads);
        c.kv_heads = attention(c.kv_heads, [](std::string_view mixer) { return mixer == attention_mixer; });
        c.heads.shorten(c.layers);
    }
    const bool crosses = c.kind == "encoder-decoder";
    for (std::int64_t layer = 0; layer < c.deepest(); layer++)
        if ((crosses || c.attends(layer)) && c.heads.at(layer) % c.kv_heads.at(layer) != 0)
            fail_input(file, "model.kv_heads", "a divisor of heads (" + text(c.heads.at(layer)) + ")",
                       text(c.kv_heads.at(layer)));
    if (c.head_width == 0) {
        if (c.heads.is_list())
            fail_input(file, "model.head_width", "a number, as heads differ by layer", "none");
        if (c.width % c.heads.at(0) != 0)
            fail_input(file, "model.heads", "a divisor of width (" + text(c.width) + ")",
                       text(c.heads.at(0)));
        c.head_width = c.width / c.heads.at(0);
    }
    if (c.head_width > kernels().attention_max_head_width)
        fail_input(file, "model.head_width", "at most " + text(kernels().attention_max_head_width),
                   text(c.head_width));
}

/// `value` where it was left out.
void fill(std::int64_t& setting, std::int64_t value) {
    if (setting == 0) setting = value;
}

void check_ssm(ModelConfig& c, std::string_view file) {
    if (!c.uses("mamba") && !c.uses("mamba2")) {
        c.ssm = {};
        return;
    }
    // What is filled in keeps to the limits of its key, so that a config that is printed can be read.
    fill(c.ssm.inner, 2 * c.width);
    if (c.ssm.inner > most_width)
        fail_input(file, "model.ssm.inner", "at most " + std::to_string(most_width),
                   std::to_string(c.ssm.inner), "2 x model.width, where it is left out");
    fill(c.ssm.state, c.uses("mamba") ? 16 : 128);
    if (c.uses("mamba"))
        fill(c.ssm.rank, (c.width + 15) / 16);
    else
        c.ssm.rank = 0, c.ssm.norms = "none";
    if (!c.uses("mamba2")) {
        c.ssm.heads = 0, c.ssm.groups = 1;
        return;
    }
    if (c.ssm.heads == 0 && c.ssm.inner % 64 != 0)
        fail_input(file, "model.ssm.heads", "a number, as ssm.inner is no multiple of 64", "none");
    fill(c.ssm.heads, c.ssm.inner / 64);
    if (c.ssm.heads > most_heads)
        fail_input(file, "model.ssm.heads", "at most " + std::to_string(most_heads),
                   std::to_string(c.ssm.heads), "model.ssm.inner / 64, where it is left out");
    if (c.ssm.inner % c.ssm.heads != 0)
        fail_input(file, "model.ssm.heads", "a divisor of ssm.inner (" + std::to_string(c.ssm.inner) + ")",
                   std::to_string(c.ssm.heads));
    if (c.ssm.heads % c.ssm.groups != 0)
        fail_input(file, "model.ssm.groups", "a divisor of ssm.heads (" + std::to_string(c.ssm.heads) + ")",
                   std::to_string(c.ssm.groups));
}

/// The ranks that RWKV-7's authors use (Peng et al. 2025, appendix D), by the width.
void check_rwkv(ModelConfig& c, std::string_view file) {
    if (!c.uses("rwkv6") && !c.uses("rwkv7")) {
        c.rwkv = {};
        return;
    }
    if (c.head_width * c.heads.at(0) != c.width || c.heads.is_list())
        fail_input(file, "model.head_width", "width / heads for rwkv", std::to_string(c.head_width));
    auto rank = [&](double factor, double power) {
        double wanted = factor * std::pow(static_cast<double>(c.width), power) / 32;
        return std::max<std::int64_t>(32, std::llround(wanted) * 32);
    };
    fill(c.rwkv.decay, rank(1.8, 0.5));
    if (c.uses("rwkv7")) {
        fill(c.rwkv.rate, rank(1.8, 0.5));
        fill(c.rwkv.value, rank(1.3, 0.5));
        fill(c.rwkv.gate, rank(0.6, 0.8));
    } else {
        c.rwkv.rate = c.rwkv.value = c.rwkv.gate = 0;
    }
    if (c.uses("rwkv6"))
        fill(c.rwkv.mix, 32);
    else
        c.rwkv.mix = 0;
}

/// Whatever looks back: attention has heads and positions, the others may do without.
void check_mixers(ModelConfig& c, std::string_view file) {
    if (!c.has_attention()) {
        if (c.attention.dropout > 0)
            fail_input(file, "model.attention.dropout", "0, as no layer has attention",
                       nlohmann::json(c.attention.dropout).dump(), "there are no weights to drop");
        c.attention = {};
        if (std::ranges::none_of(c.mixer.list(), mixer_has_heads)) c.heads = c.kv_heads = c.head_width = 1;
        c.kv_heads = 0;
    }
    if (!c.uses(attention_mixer)) {
        const bool linear = c.uses("linear-attention");
        for (const std::string& kind : c.position.kind.list())
            if (linear && kind == "rope")
                fail_input(file, "model.position.kind",
                           "learned, sinusoidal, bits or none, as no layer has attention", kind,
                           "linear attention sums features, which must stay positive");
            else if (!linear && kind != "none")
                fail_input(file, "model.position.kind", "none, as no layer has attention", kind,
                           c.mixer.at(0) + " knows the order of rows by itself");
    }
    if (c.ffn.kind == "none") c.ffn = {}, c.ffn.kind = "none";
    if (c.ffn.kind == "channel-mix") c.ffn.activation = "relu2", c.ffn.bias = false;
    if (c.ffn.kind != "mlp" && c.experts.count.list() != PerLayer<std::int64_t>(0).list())
        fail_input(file, "model.experts.count", "0 beside ffn.kind " + c.ffn.kind,
                   std::to_string(c.experts.count.at(0)));
    if (c.ffn.kind != "mlp" && c.residual.kind == "parallel")
        fail_input(file, "model.residual.kind", "sequential beside ffn.kind " + c.ffn.kind, c.residual.kind);
}

/// RoPE's settings that say nothing become their defaults, so that a config can be said in one way alone.
void check_rotation(ModelConfig& c, std::string_view file) {
    auto& p = c.position;
    if (p.rotary_width > c.head_width || p.rotary_width % 2 != 0)
        fail_input(file, "model.position.rotary_width",
                   "an even number up to head_width (" + std::to_string(c.head_width) + ")",
                   std::to_string(p.rotary_width));
    if (std::ranges::find(p.kind.list(), "rope") == p.kind.list().end()) p.factors = p.long_factors = false;
    if (p.factors && p.long_factors)
        fail_input(file, "model.position.factors", "factors or long_factors", "both");
    if (p.rotary_width == c.head_width) p.rotary_width = 0;
    const ModelConfig first;
    if (p.scaling.kind == "none") p.scaling.factor = 1, p.scaling.kind = first.position.scaling.kind;
    if (p.scaling.kind != "yarn") {
        p.scaling.extrapolation = first.position.scaling.extrapolation;
        p.scaling.beta_fast = first.position.scaling.beta_fast;
        p.scaling.beta_slow = first.position.scaling.beta_slow;
        if (!p.long_factors) p.scaling.original = 0;
    }
    if (p.scaling.original == c.context) p.scaling.original = 0;
}

void check_experts(ModelConfig& c, std::string_view file) {
    std::int64_t count = 0;
    for (std::int64_t layer = 0; layer < c.deepest(); layer++) {
        std::int64_t here = c.experts.count.at(layer);
        if (here != 0 && count != 0 && here != count)
            fail_input(file, "model.experts.count", "one number, or 0", std::to_string(here));
        if (here != 0) count = here;
    }
    if (count == 0) {
        c.experts = {};
        return;
    }
    const std::int64_t fewest = std::min(c.layers, c.decoder_depth());
    if (c.experts.leading_dense > 0 && (c.experts.count.is_list() || c.experts.leading_dense >= fewest))
        fail_input(file, "model.experts.leading_dense",
                   std::string("fewer than ") + (fewest < c.layers ? "decoder_layers (" : "layers (") +
                       std::to_string(fewest) + "), beside one count",
                   std::to_string(c.experts.leading_dense));
    if (c.experts.used < 1 || c.experts.used > count)
        fail_input(file, "model.experts.used", "1 to count (" + std::to_string(count) + ")",
                   std::to_string(c.experts.used));
    if (c.ffn.bias) fail_input(file, "model.experts.count", "0, or no ffn.bias", std::to_string(count));
}

/// Tables of values for tokens: layers without attention have none, and those that share one need rows of
/// the same width.
void check_value_embeddings(ModelConfig& c, std::string_view file) {
    auto& tables = c.attention.value_embedding;
    std::vector<std::int64_t> used;
    for (std::int64_t layer = 0; layer < c.deepest(); layer++)
        used.push_back(c.attends(layer) ? tables.at(layer) : 0);
    tables = PerLayer<std::int64_t>(std::move(used));
    tables.shorten(c.deepest());
    std::map<std::int64_t, std::int64_t> heads;  // of each table
    for (std::int64_t layer = 0; layer < c.deepest(); layer++) {
        const std::int64_t table = tables.at(layer), here = c.kv_heads.at(layer);
        if (table == 0) continue;
        if (c.reads_patches())
            fail_input(file, "model.attention.value_embedding", "0, as pictures have no tokens",
                       std::to_string(table));
        if (heads.emplace(table, here).first->second != here)
            fail_input(file, "model.attention.value_embedding",
                       "another table for layer " + std::to_string(layer) + ", as kv_heads differ",
                       std::to_string(table));
    }
}

/// Of scores: dot and cosine are scaled ones with another scale and with norms.
void check_scores(ModelConfig& c, std::string_view file) {
    auto& a = c.attention;
    if (a.score == "dot" && a.scale == 0) a.scale = 1;
    if (a.score == "cosine" && a.qk_norm == "none") a.qk_norm = "unit";
    if ((a.score == "dot" && a.scale != 1) || (a.score == "cosine" && a.qk_norm != "unit"))
        fail_input(file, "model.attention.score", "scaled beside attention.scale and attention.qk_norm",
                   a.score, "dot is the scale 1, cosine the norm unit");
    if (a.score == "dot" || a.score == "cosine") a.score = "scaled";
    if (a.score == "general")
        for (std::int64_t layer = 0; layer < c.deepest(); layer++)
            if (c.kv_heads.at(layer) * c.head_width != c.width)
                fail_input(file, "model.attention.score", "another, as kv_heads x head_width is not width",
                           a.score, "its keys are the rows themselves");
    if (a.score == "additive" && (a.scale != 0 || a.softcap != 0 || a.alibi != 0 || a.buckets != 0))
        fail_input(file, "model.attention.score", "another beside attention.scale, softcap, alibi or buckets",
                   a.score);
}

/// Blocks that are chosen stand in a table for each layer, of whose size nothing else in a file speaks.
void check_choice(ModelConfig& c, std::string_view file) {
    auto& a = c.attention;
    if (a.window.list() == PerLayer<std::int64_t>(0).list()) a.globals = a.random = 0;
    if (a.random == 0) {
        a.random_seed = 0;
        return;
    }
    constexpr std::int64_t most = std::int64_t{1} << 26;
    const std::int64_t blocks = c.choice_blocks();  // at most 2^18
    if (blocks * blocks * c.deepest() > most)
        fail_input(file, "model.attention.random", "0, as model.context is " + std::to_string(c.context),
                   std::to_string(a.random),
                   "layers x (context / " + std::to_string(choice_block) + ")^2 may be up to 2^26");
}

/// Projected keys and values (Linformer) are sums over all positions of an encoder's text: they have no place
/// that a mask or a bias could go by. Layers without attention have none.
void check_projections(ModelConfig& c, std::string_view file) {
    auto& a = c.attention;
    std::vector<std::int64_t> used;
    for (std::int64_t layer = 0; layer < c.layers; layer++)
        used.push_back(c.attends(layer) ? a.projected.at(layer) : 0);
    a.projected = PerLayer<std::int64_t>(std::move(used));
    a.projected.shorten(c.layers);
    std::int64_t projected = 0, elements = 0;
    auto refuse = [&](bool contradicts, const std::string& expected) {
        if (contradicts)
            fail_input(file, "model.attention.projected", expected, std::to_string(projected),
                       "projected keys have no positions");
    };
    for (std::int64_t layer = 0; layer < c.layers; layer++) {
        const std::int64_t before = projected, here = a.projected.at(layer);
        if (here == 0) continue;
        projected = here;
        refuse(!c.has_encoder(), "0, as model.kind is " + c.kind);
        refuse(a.window.at(layer) != 0, "0 in a layer with attention.window");
        if (here > c.context)
            fail_input(file, "model.attention.projected",
                       "at most model.context (" + std::to_string(c.context) + ")", std::to_string(here));
        if (a.projected_share == "layerwise" && before != 0 && here != before)
            fail_input(file, "model.attention.projected",
                       "one number, or 0, beside projected_share layerwise", std::to_string(here));
        elements += 2 * here * c.context;  // both at most 2^24, of at most 2^12 layers
    }
    if (projected == 0) {
        a.projected = 0, a.projected_share = ModelConfig().attention.projected_share;
        return;
    }
    refuse(a.alibi != 0, "0 beside attention.alibi");
    refuse(a.buckets != 0, "0 beside attention.buckets");
    refuse(c.image.window > 0 || c.merges_at(c.layers - 1) > 0, "0 beside image.window and image.merge");
    if (elements >= std::int64_t{1} << 40)
        fail_input(file, "model.attention.projected", "a model of fewer than 2^40 parameters", "more");
}

void check_attention(ModelConfig& c, std::string_view file) {
    auto& a = c.attention;
    check_projections(c, file);
    check_scores(c, file);
    check_value_embeddings(c, file);
    check_choice(c, file);
    if (a.buckets == 0) {
        a.reach = ModelConfig().attention.reach;
        return;
    }
    if (a.buckets < 4 || a.buckets % 2 != 0 || a.buckets >= 2 * a.reach)
        fail_input(file, "model.attention.buckets", "an even number from 4 to below 2 x attention.reach",
                   std::to_string(a.buckets));
    if (c.heads.is_list())
        fail_input(file, "model.attention.buckets", "0, as heads differ by layer", std::to_string(a.buckets));
}

/// Layers that share their weights must need the same ones.
void check_tied_layers(ModelConfig& c, std::string_view file) {
    const std::int64_t deepest = c.deepest();
    if (c.tie_layers >= deepest) c.tie_layers = 0;
    if (c.tie_layers == 0) return;
    for (std::int64_t layer = 0; layer < deepest; layer++) {
        std::int64_t other = layer % c.tie_layers;
        bool alike = c.experts_at(layer) == c.experts_at(other) && c.mixer.at(layer) == c.mixer.at(other);
        for (const PerLayer<std::int64_t>* list : {&c.heads, &c.kv_heads, &c.ffn.width})
            alike &= list->at(layer) == list->at(other);
        if (layer < c.layers)  // a decoder behind them projects nothing
            alike &= c.attention.projected.at(layer) == c.attention.projected.at(other);
        if (!alike)
            fail_input(file, "model.tie_layers", "0, as tied layers differ", std::to_string(c.tie_layers));
    }
}

/// Settings that mean nothing beside others become their defaults.
void check_blocks(ModelConfig& c, std::string_view file) {
    if (c.norm.kind != "layer" || !c.norm.weight) c.norm.bias = true;
    if (c.residual.kind != "parallel") c.residual.shared_norm = false;
    if (c.residual.kind == "parallel" && c.norm.placement != "pre")
        fail_input(file, "model.norm.placement", "pre beside parallel branches", c.norm.placement);
    if (c.layers == 1 && c.decoder_layers <= 1) c.residual.first = "none";
    if (!c.attention.bias) c.attention.output_bias = true;
    if (!c.norm.weight && c.attention.qk_norm != "none" && c.attention.qk_norm != "unit")
        fail_input(file, "model.attention.qk_norm", "none or unit, as norms have no weights",
                   c.attention.qk_norm);
}

/// What the kinds of models must have, and what they cannot.
void check_kind(ModelConfig& c, std::string_view file) {
    auto only = [&](bool fits, const char* key, const std::string& expected, const std::string& got) {
        if (!fits) fail_input(file, key, expected, got);
    };
    const bool both = c.kind == "encoder-decoder";
    if (c.decoder_layers == c.layers) c.decoder_layers = 0;
    if (!c.embedding.norm) c.embedding.norm_last = false;
    only(both || c.decoder_layers == 0, "model.decoder_layers", "0, as model.kind is " + c.kind,
         std::to_string(c.decoder_layers));
    only(both || c.start_token < 0, "model.start_token", "-1, as model.kind is " + c.kind,
         std::to_string(c.start_token));
    only(c.is_encoder() || c.segments == 0, "model.segments", "0, as model.kind is " + c.kind,
         std::to_string(c.segments));
    only(c.is_encoder() || c.head.kind == "tokens", "model.head.kind", "tokens, as model.kind is " + c.kind,
         c.head.kind);
    only(c.is_encoder() || !c.head.transform, "model.head.transform", "false, as model.kind is " + c.kind,
         "true");
    only(c.is_encoder() || c.pooling == "mean", "model.pooling", "mean, as model.kind is " + c.kind,
         c.pooling);
    only(c.is_encoder() || !c.reads_patches(), "model.kind", "encoder, as model.image.patch is given",
         c.kind);
    only(!both || c.residual.kind == "sequential", "model.residual.kind",
         "sequential, as model.kind is " + c.kind, c.residual.kind);
    only(!c.has_encoder() || c.ffn.kind != "channel-mix", "model.ffn.kind",
         "another, as model.kind is " + c.kind, c.ffn.kind);
    if (c.head.kind == "tokens") c.head.classes = 0;
    if (!c.head.next) return;
    only(c.is_encoder(), "model.head.next", "false, as model.kind is " + c.kind, "true");
    only(c.head.kind == "tokens", "model.head.next", "false, as model.head.kind is " + c.head.kind, "true");
    only(c.segments >= 2, "model.segments", "at least 2, as model.head.next is true",
         std::to_string(c.segments));
}

/// Windows and merges (Swin): each grid is made of whole windows, and a merge halves it.
void check_windows(ModelConfig& c, std::string_view file) {
    auto& i = c.image;
    auto text = [](std::int64_t n) { return std::to_string(n); };
    if (c.merges_at(c.layers - 1) > 16)
        fail_input(file, "model.image.merge", "at most 16 merges", text(c.merges_at(c.layers - 1)));
    if (i.window == 0) i.shift = 0;
    const bool plain = c.mixer.list() == PerLayer<std::string>(attention_mixer).list() &&
                       c.attention.window.list() == PerLayer<std::int64_t>(0).list() &&
                       c.attention.buckets == 0 && c.attention.score == "scaled" && c.tie_layers == 0 &&
                       c.residual.first == "none";
    const bool merges = c.merges_at(c.layers - 1) > 0;
    if ((i.window > 0 || merges) && (c.pooling != "mean" || !plain))
        fail_input(
            file, i.window > 0 ? "model.image.window" : "model.image.merge",
            "0 beside pooling " + c.pooling + (plain ? "" : " and such layers"), "another",
            "it goes with pooling mean and attention whose scores are scaled, without windows of its own, "
            "buckets, tied layers or residual.first");
    for (std::int64_t layer = 0; layer < c.layers; layer++) {
        const std::int64_t merged = c.merges_at(layer), before = merged - i.merge.at(layer);
        const std::int64_t sides[] = {i.width / i.patch, i.height / i.patch};
        for (std::int64_t side : sides)
            if (side % (std::int64_t{1} << merged) != 0)
                fail_input(file, "model.image.merge", "patches that halve before layer " + text(layer),
                           text(side >> before) + " in a row");
        if (i.window == 0) continue;
        for (std::int64_t side : sides)
            if ((side >> merged) % i.window != 0)
                fail_input(
                    file, "model.image.window",
                    "a divisor of the " + text(side >> merged) + " patches in a row of layer " + text(layer),
                    text(i.window));
        if (i.shift.at(layer) >= i.window)
            fail_input(file, "model.image.shift", "less than image.window (" + text(i.window) + ")",
                       text(i.shift.at(layer)));
    }
}

/// Pictures are cut into whole patches, one per position; with pooling "first" the first position is free.
void check_image(ModelConfig& c, std::string_view file) {
    auto& i = c.image;
    if (!c.reads_patches()) {
        if (i.width != 0 || i.height != 0)
            fail_input(file, "model.image.patch", "a positive number, as a picture's size is given", "0");
        i = {};
        return;
    }
    if (i.channels == 2) fail_input(file, "model.image.channels", "1 (grey) or 3 (colours)", "2");
    if (c.head_width == 0 && c.merges_at(c.layers - 1) > 0)
        fail_input(file, "model.head_width", "a number, as image.merge makes layers wider", "none");
    for (auto [key, side] : {std::pair("model.image.width", i.width), {"model.image.height", i.height}})
        if (side == 0 || side % i.patch != 0)
            fail_input(file, key, "a multiple of image.patch (" + std::to_string(i.patch) + ")",
                       std::to_string(side));
    if (c.head.kind != "classes")
        fail_input(file, "model.head.kind", "classes, as image.patch is given", c.head.kind);
    c.context = (i.width / i.patch) * (i.height / i.patch) + (c.pooling == "first" ? 1 : 0);
    if (c.context > 1 << 24)
        fail_input(file, "model.image.patch", "a larger one, for at most 2^24 patches",
                   std::to_string(i.patch));
    check_windows(c, file);
}

void check_positions(ModelConfig& c, std::string_view file) {
    for (const std::string& kind : c.position.kind.list()) {
        if (kind == "rope" && c.head_width % 2 != 0)
            fail_input(file, "model.head_width", "an even number for rope", std::to_string(c.head_width));
        if (c.position.kind.is_list() && kind != "rope" && kind != "none")
            fail_input(file, "model.position.kind", "rope or none in a list", kind,
                       "other kinds serve all layers at once");
        if (const auto bits =
                static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(c.context - 1)));
            kind == "bits" && bits > c.width)
            fail_input(file, "model.width",
                       "at least " + std::to_string(bits) + ", the bits of positions below model.context",
                       std::to_string(c.width));
    }
    check_rotation(c, file);
}

}  // namespace

std::int64_t ModelConfig::merges_at(std::int64_t layer) const {
    const std::vector<std::int64_t>& list = image.merge.list();  // which repeats over the layers
    const auto period = static_cast<std::int64_t>(list.size()), rest = (layer + 1) % period;
    const std::int64_t none = 0;
    return (layer + 1) / period * std::accumulate(list.begin(), list.end(), none) +
           std::accumulate(list.begin(), list.begin() + rest, none);
}

bool ModelConfig::has_attention() const {
    return kind == "encoder-decoder" || uses(attention_mixer);
}

std::int64_t ModelConfig::choice_blocks() const {
    return (context + choice_block - 1) / choice_block;
}

bool ModelConfig::uses(std::string_view some_mixer) const {
    return std::find(mixer.list().begin(), mixer.list().end(), some_mixer) != mixer.list().end();
}

void shorten_lists(ModelConfig& c) {
    each_per_layer(c, [&](const Field&, auto& list) { list.shorten(c.deepest()); });
}

void resolve(ModelConfig& c, std::string_view file) {
    if (c.width <= 0) fail_input(file, "model.width", "a positive number", std::to_string(c.width));
    if (c.layers <= 0) fail_input(file, "model.layers", "a positive number", std::to_string(c.layers));
    each_per_layer(c, [&](const Field& field, auto& list) {
        if (list.list().size() > static_cast<std::size_t>(c.deepest()))
            fail_input(file, field.key, "at most " + std::to_string(c.deepest()) + " values, one per layer",
                       std::to_string(list.list().size()));
    });
    check_mixers(c, file);
    check_kind(c, file);
    check_image(c, file);
    check_heads(c, file);
    check_ssm(c, file);
    check_rwkv(c, file);
    check_blocks(c, file);
    check_experts(c, file);
    c.ffn.width = filled(c.ffn.width, c.deepest(), [&](std::int64_t layer) { return 4 * c.width_at(layer); });
    shorten_lists(c);
    check_attention(c, file);
    check_tied_layers(c, file);
    check_positions(c, file);
    std::int64_t limit = std::int64_t{1} << 40;
    const std::int64_t blocks = c.layers + (c.kind == "encoder-decoder" ? c.decoder_depth() : 0);
    const std::int64_t last = c.last_width(), merged = last > c.width ? 2 * last : 0;  // a merge's product
    for (std::int64_t width : c.ffn.width.list()) {
        auto elements = checked_mul(last, std::max(width, merged));
        if (elements) elements = checked_mul(*elements, 3 * blocks);
        if (!elements || *elements >= limit)
            fail_input(file, "model.width", "a model of fewer than 2^40 parameters", "more");
    }
}

void require_learnable(const ModelConfig& c, std::string_view file) {
    const std::vector<std::int64_t>& counts = c.experts.count.list();
    const bool routes = std::ranges::any_of(counts, [](std::int64_t count) { return count > 1; });
    if (routes && c.experts.used == 1 && c.experts.renormalize && c.experts.balance_loss == 0)
        fail_input(file, "model.experts.renormalize", "false, as model.experts.used is 1", "true",
                   "the one weight of a token would always be 1, and its router would learn nothing");
    const auto& p = c.position;
    if (p.factors || p.long_factors)
        fail_input(file, std::string("model.position.") + (p.factors ? "factors" : "long_factors"),
                   "false in a model that begins from nothing", "true",
                   "its factors would all be 1; model.position.scaling.kind stretches a context");
}

}  // namespace linnet
