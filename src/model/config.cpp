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
        {"model.attention.window", &c.attention.window, "positions that attention looks back; 0: all", 0,
         many},
        {"model.tie_embeddings", &c.tie_embeddings, "the output product uses the token embedding"},
        {"model.dropout", &c.dropout, "probability, in training", 0, 0.99},
        {"model.init_std", &c.init_std, "standard deviation of the first weights", 0, 10},
    };
}

void resolve(ModelConfig& c, std::string_view file) {
    auto need = [&](bool holds, const char* key, const std::string& expected, const std::string& got) {
        if (!holds) fail_input(file, key, expected, got);
    };
    auto text = [](std::int64_t n) { return std::to_string(n); };
    need(c.width > 0, "model.width", "a positive number", text(c.width));
    need(c.layers > 0, "model.layers", "a positive number", text(c.layers));
    need(c.heads > 0, "model.heads", "a positive number", text(c.heads));
    if (c.kv_heads == 0) c.kv_heads = c.heads;
    need(c.heads % c.kv_heads == 0, "model.kv_heads", "a divisor of heads (" + text(c.heads) + ")",
         text(c.kv_heads));
    if (c.head_width == 0) {
        need(c.width % c.heads == 0, "model.heads", "a divisor of width (" + text(c.width) + ")",
             text(c.heads));
        c.head_width = c.width / c.heads;
    }
    need(c.head_width <= kernels().attention_max_head_width, "model.head_width",
         "at most " + text(kernels().attention_max_head_width), text(c.head_width));
    if (c.ffn.width == 0) c.ffn.width = 4 * c.width;
    need(c.position.kind != "rope" || c.head_width % 2 == 0, "model.head_width", "an even number for rope",
         text(c.head_width));
    std::int64_t limit = std::int64_t{1} << 40;
    auto elements = checked_mul(c.width, c.ffn.width);
    if (elements) elements = checked_mul(*elements, 3 * c.layers);
    need(elements && *elements < limit, "model.width", "a model of fewer than 2^40 parameters", "more");
}

}  // namespace linnet
