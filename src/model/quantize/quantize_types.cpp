#include "model/quantize/quantize_types.h"

#include <algorithm>
#include <charconv>

#include "model/architectures.h"

namespace linnet {
namespace {

constexpr QuantizeMix mixes[] = {
    {"f32", DType::f32, 0},      {"f16", DType::f16, 1},        {"bf16", DType::bf16, 32},
    {"q8_0", DType::q8_0, 7},    {"q4_0", DType::q4_0, 2},      {"q4_1", DType::q4_1, 3},
    {"q5_0", DType::q5_0, 8},    {"q5_1", DType::q5_1, 9},      {"q2_k", DType::q2_k, 10},
    {"q3_k", DType::q3_k, 11},   {"q3_k_m", DType::q3_k, 12},   {"q4_k", DType::q4_k, 14},
    {"q4_k_m", DType::q4_k, 15}, {"q5_k", DType::q5_k, 16},     {"q5_k_m", DType::q5_k, 17},
    {"q6_k", DType::q6_k, 18},   {"iq4_nl", DType::iq4_nl, 25}, {"iq4_xs", DType::iq4_xs, 30},
    {"mxfp4", DType::mxfp4, 38}, {"tq2_0", DType::tq2_0, 37},
};

/// Layers that a rule is for; "more" are the first and the last eighth and every third between.
enum class Layers { all, first_two, first_four, eighth, sixteenth, more };
enum class When { always, many_heads, no_importance, importance };  // many_heads: at least 4 per key

/// The first rule that fits a tensor names its type (llama.cpp, llama-quant.cpp: llama_tensor_get_type).
struct Rule {
    std::string_view mix, tensor;  // tensor: what its name contains
    Layers layers;
    When when;
    DType type;
};
constexpr Rule rules[] = {
    {"q2_k", "attn_v.weight", Layers::all, When::many_heads, DType::q4_k},
    {"q2_k", "attn_v.weight", Layers::all, When::always, DType::q3_k},
    {"q2_k", "ffn_down", Layers::all, When::always, DType::q3_k},
    {"q2_k", "attn_output.weight", Layers::all, When::always, DType::q3_k},
    {"q3_k_m", "attn_v.weight", Layers::first_two, When::always, DType::q5_k},
    {"q3_k_m", "attn_v.weight", Layers::all, When::always, DType::q4_k},
    {"q3_k_m", "ffn_down", Layers::sixteenth, When::always, DType::q5_k},
    {"q3_k_m", "ffn_down", Layers::all, When::always, DType::q4_k},
    {"q3_k_m", "attn_output.weight", Layers::all, When::always, DType::q4_k},
    {"q3_k_m", "attn_qkv.weight", Layers::all, When::always, DType::q4_k},
    {"q4_k", "attn_v.weight", Layers::first_four, When::always, DType::q5_k},
    {"q4_k", "ffn_down", Layers::eighth, When::always, DType::q5_k},
    {"q4_k_m", "attn_v.weight", Layers::more, When::always, DType::q6_k},
    {"q4_k_m", "ffn_down", Layers::more, When::always, DType::q6_k},
    {"q4_k_m", "attn_qkv.weight", Layers::all, When::always, DType::q5_k},
    {"q5_k_m", "attn_v.weight", Layers::more, When::always, DType::q6_k},
    {"q5_k_m", "ffn_down", Layers::more, When::always, DType::q6_k},
    {"q5_k_m", "attn_qkv.weight", Layers::all, When::always, DType::q6_k},
    {"iq4_nl", "attn_v.weight", Layers::all, When::many_heads, DType::q5_k},
    {"iq4_nl", "ffn_down", Layers::eighth, When::no_importance, DType::q5_k},
    {"iq4_xs", "attn_v.weight", Layers::all, When::many_heads, DType::q5_k},
    {"iq4_xs", "ffn_down", Layers::eighth, When::no_importance, DType::q5_k},
    {"q4_0", "ffn_down", Layers::eighth, When::importance, DType::q4_1},
    {"q5_0", "ffn_down", Layers::eighth, When::importance, DType::q5_1},
    {"tq2_0", "token_embd.weight", Layers::all, When::always, DType::q4_k},
};

/// Where rows are not whole blocks of 256.
struct Fallback {
    DType type, instead;
};
constexpr Fallback fallbacks[] = {
    {DType::q2_k, DType::iq4_nl}, {DType::q3_k, DType::iq4_nl}, {DType::iq4_xs, DType::iq4_nl},
    {DType::q4_k, DType::q5_0},   {DType::q5_k, DType::q5_1},   {DType::q6_k, DType::q8_0},
    {DType::tq2_0, DType::q4_0},
};

/// The number in "blk.N." or "enc.blk.N."; -1 where there is none, or one that no model's layer has.
std::int64_t layer_of(std::string_view name) {
    std::int64_t layer = -1;
    const std::string number = parts_of(name).layer;
    std::from_chars(number.data(), number.data() + number.size(), layer);
    return layer < most_layers ? layer : -1;
}

bool fits(Layers layers, std::int64_t i, std::int64_t count) {
    switch (layers) {
        case Layers::all:
            return true;
        case Layers::first_two:
            return i < 2;
        case Layers::first_four:
            return i < 4;
        case Layers::eighth:
            return i < count / 8;
        case Layers::sixteenth:
            return i < count / 16;
        case Layers::more:
            return i < count / 8 || i >= 7 * count / 8 || (i - count / 8) % 3 == 2;
    }
    return false;
}

bool fits(When when, const QuantizeModel& model, bool importance) {
    switch (when) {
        case When::always:
            return true;
        case When::many_heads:
            return model.heads_per_key >= 4;
        case When::no_importance:
            return !importance;
        case When::importance:
            return importance;
    }
    return false;
}

bool whole_blocks(const GgufTensor& tensor, DType type) {
    return tensor.shape.columns() % info(type).block == 0;
}

DType output_type(DType base, const GgufTensor& tensor) {
    if (info(base).block == 1 || base == DType::q8_0) return base;
    return base == DType::mxfp4 || !whole_blocks(tensor, base) ? DType::q8_0 : DType::q6_k;
}

DType ruled_type(const QuantizeMix& mix, const QuantizeModel& model, const GgufTensor& tensor,
                 bool importance) {
    std::string_view name = tensor.name;
    if (name == "output.weight" || (name == "token_embd.weight" && !model.has_output))
        return output_type(mix.base, tensor);
    for (const Rule& rule : rules)
        if (rule.mix == mix.name && name.find(rule.tensor) != name.npos &&
            fits(rule.layers, layer_of(name), model.layers) && fits(rule.when, model, importance))
            return rule.type;
    return mix.base;
}

}  // namespace

std::span<const QuantizeMix> quantize_mixes() {
    return mixes;
}

const QuantizeMix* quantize_mix(std::string_view name) {
    auto found =
        std::find_if(std::begin(mixes), std::end(mixes), [&](auto& mix) { return mix.name == name; });
    return found == std::end(mixes) ? nullptr : found;
}

QuantizeModel quantize_model(const Gguf& file) {
    QuantizeModel model;
    std::string kind(file.string("general.architecture").value_or(""));
    auto number = [&](const char* key) {
        std::string name = kind + key;
        const GgufValue* value = file.find(name);
        return value && std::holds_alternative<std::uint64_t>(*value)
                   ? file.integer(name, INT32_MAX).value_or(0)
                   : 0;
    };
    auto heads = number(".attention.head_count"), keys = number(".attention.head_count_kv");
    if (keys > 0) model.heads_per_key = static_cast<std::int64_t>(heads / keys);
    for (const GgufTensor& tensor : file.tensors())
        model.layers = std::max(model.layers, layer_of(tensor.name) + 1);
    model.has_output = file.tensor("output.weight") != nullptr;
    return model;
}

bool is_quantized_tensor(const GgufTensor& tensor) {
    std::string_view name = tensor.name;
    if (tensor.shape.rank < 2 || !name.ends_with("weight") || !info(tensor.type).is_weight) return false;
    for (std::string_view other :
         {"_norm.weight", "ffn_gate_inp.weight", "position_embd", "token_types", "rel_b", "ssm_conv1d",
          "time_mix_first", "time_mix_lerp", "time_mix_decay", "time_mix_w", "time_mix_a", "time_mix_g1",
          "time_mix_g2", "time_mix_v0", "time_mix_v1", "time_mix_v2"})  // small, and runtimes want them plain
        if (name.find(other) != name.npos) return false;
    return true;
}

DType quantized_type(const QuantizeMix& mix, const QuantizeModel& model, const GgufTensor& tensor, bool pure,
                     bool importance) {
    DType type = pure ? mix.base : ruled_type(mix, model, tensor, importance);
    for (const Fallback& fallback : fallbacks)
        if (fallback.type == type && !whole_blocks(tensor, type)) {
            type = fallback.instead;
            break;
        }
    return whole_blocks(tensor, type) ? type : DType::f16;
}

}  // namespace linnet
