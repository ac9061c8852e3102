#include "model/config.h"

#include "base/checked.h"
#include "base/error.h"
#include "kernels/kernels.h"
#include "model/trace.h"

namespace linnet {

std::vector<Field> model_fields(ModelConfig& c) {
    constexpr double many = 1 << 24;
    return {
        {"model.kind", &c.kind, "what the model does", 0, 0, {"decoder"}},
        {"model.context", &c.context, "positions a sequence may have", 1, many},
        {"model.width", &c.width, "width of the residual stream", 1, many},
        {"model.layers", &c.layers, "blocks", 1, 4096},
        {"model.heads", &c.heads, "query heads", 1, 4096},
        {"model.kv_heads", &c.kv_heads, "key and value heads; 0: as many as query heads", 0, 4096},
        {"model.head_width", &c.head_width, "width of a head; 0: width / heads", 0, many},
        {"model.ffn.width", &c.ffn.width, "width of the feed-forward layer; 0: 4 x width", 0, many},
        {"model.ffn.activation", &c.ffn.activation, "", 0, 0, activation_names()},
        {"model.ffn.gated", &c.ffn.gated, "SwiGLU (with silu), GeGLU (with gelu)"},
        {"model.ffn.bias", &c.ffn.bias, "biases in the feed-forward layer"},
        {"model.norm.kind", &c.norm.kind, "LayerNorm or RMSNorm", 0, 0, {"layer", "rms"}},
        {"model.norm.placement", &c.norm.placement, "", 0, 0, {"pre", "post", "sandwich"}},
        {"model.norm.epsilon", &c.norm.epsilon, "", 1e-12, 1},
        {"model.position.kind", &c.position.kind, "", 0, 0, {"learned", "sinusoidal", "rope", "none"}},
        {"model.position.theta", &c.position.theta, "base of the rotary angles", 1, 1e12},
        {"model.position.halves", &c.position.halves, "rotary pairs (i, i + D/2) instead of (2i, 2i + 1)"},
        {"model.attention.bias", &c.attention.bias, "biases in the projections"},
        {"model.attention.output_bias",
         &c.attention.output_bias,
         "false: q, k and v alone have the biases of attention.bias",
         0,
         0,
         {},
         true},
        {"model.attention.window", &c.attention.window, "positions that attention looks back; 0: all", 0,
         many},
        {"model.tie_embeddings", &c.tie_embeddings, "the output product uses the token embedding"},
        {"model.dropout", &c.dropout, "probability, in training", 0, 0.99},
        {"model.init_std", &c.init_std, "standard deviation of the first weights", 0, 10},
    };
}

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
    c.kv_heads = filled(c.kv_heads, c.layers, [&](std::int64_t layer) { return c.heads.at(layer); });
    for (std::int64_t layer = 0; layer < c.layers; layer++)
        if (c.heads.at(layer) % c.kv_heads.at(layer) != 0)
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

void check_positions(const ModelConfig& c, std::string_view file) {
    for (const std::string& kind : c.position.kind.list()) {
        if (kind == "rope" && c.head_width % 2 != 0)
            fail_input(file, "model.head_width", "an even number for rope", std::to_string(c.head_width));
        if (c.position.kind.is_list() && kind != "rope" && kind != "none")
            fail_input(file, "model.position.kind", "rope or none in a list", kind,
                       "other kinds serve all layers at once");
    }
}

}  // namespace

void shorten_lists(ModelConfig& c) {
    each_per_layer(c, [&](const Field&, auto& list) { list.shorten(c.layers); });
}

void resolve(ModelConfig& c, std::string_view file) {
    if (c.width <= 0) fail_input(file, "model.width", "a positive number", std::to_string(c.width));
    if (c.layers <= 0) fail_input(file, "model.layers", "a positive number", std::to_string(c.layers));
    each_per_layer(c, [&](const Field& field, auto& list) {
        if (list.list().size() > static_cast<std::size_t>(c.layers))
            fail_input(file, field.key, "at most " + std::to_string(c.layers) + " values, one per layer",
                       std::to_string(list.list().size()));
    });
    check_heads(c, file);
    if (!c.attention.bias) c.attention.output_bias = true;  // means nothing then
    c.ffn.width = filled(c.ffn.width, c.layers, [&](std::int64_t) { return 4 * c.width; });
    shorten_lists(c);
    check_positions(c, file);
    std::int64_t limit = std::int64_t{1} << 40;
    for (std::int64_t width : c.ffn.width.list()) {
        auto elements = checked_mul(c.width, width);
        if (elements) elements = checked_mul(*elements, 3 * c.layers);
        if (!elements || *elements >= limit)
            fail_input(file, "model.width", "a model of fewer than 2^40 parameters", "more");
    }
}

}  // namespace linnet
