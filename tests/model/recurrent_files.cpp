#include "recurrent_files.h"

#include <cmath>

namespace linnet::test {
namespace {

std::int64_t number(const FamilyFile& file, const std::string& key) {
    for (const auto& [name, value] : file.keys)
        if (name == key) return std::get<std::uint32_t>(value);
    return 0;
}

ExtraTensor matrix(const std::string& name, std::int64_t rows, std::int64_t columns) {
    return {name, rows, columns, 0, 1.5F / std::sqrt(static_cast<float>(columns))};
}

std::vector<ExtraTensor> mamba(const FamilyFile& file) {
    const std::int64_t inner = number(file, "ssm.inner_size"), states = number(file, "ssm.state_size"),
                       rank = number(file, "ssm.time_step_rank"), conv = number(file, "ssm.conv_kernel");
    std::vector<ExtraTensor> all = {matrix("ssm_in.weight", 2 * inner, file.width),
                                    matrix("ssm_conv1d.weight", inner, conv),
                                    {"ssm_conv1d.bias", inner},
                                    matrix("ssm_x.weight", rank + 2 * states, inner),
                                    matrix("ssm_dt.weight", inner, rank),
                                    {"ssm_dt.bias", inner, 0, -1, 1},
                                    {"ssm_a", inner, states, -4, 2},
                                    {"ssm_d", inner, 0, 1},
                                    matrix("ssm_out.weight", file.width, inner)};
    if (file.arch == "jamba")
        for (const auto& [name, size] :
             {std::pair{"dt", rank}, std::pair{"b", states}, std::pair{"c", states}})
            all.push_back({std::string("ssm_") + name + "_norm.weight", size, 0, 1});
    return all;
}

std::vector<ExtraTensor> mamba2(const FamilyFile& file) {
    const std::int64_t inner = number(file, "ssm.inner_size"), states = number(file, "ssm.state_size"),
                       heads = number(file, "ssm.time_step_rank"), conv = number(file, "ssm.conv_kernel"),
                       groups = number(file, "ssm.group_count"), all = inner + 2 * groups * states;
    return {matrix("ssm_in.weight", inner + all + heads, file.width),
            matrix("ssm_conv1d.weight", all, conv),
            {"ssm_conv1d.bias", all},
            {"ssm_dt.bias", heads, 0, -1, 1},
            {"ssm_a", heads, 1, -4, 2},
            {"ssm_d", heads, 1, 1},
            {"ssm_norm.weight", groups, inner / groups, 1},
            matrix("ssm_out.weight", file.width, inner)};
}

std::vector<ExtraTensor> rwkv7(const FamilyFile& file, std::int64_t layer) {
    const std::int64_t c = file.width, rate = number(file, "attention.iclr_lora_rank");
    std::vector<ExtraTensor> all = {{"time_mix_lerp_fused.weight", 6, c, 0.5F, 0.3F, {6, 1, 1, c}},
                                    {"time_mix_ln.weight", c, 0, 1},
                                    {"time_mix_ln.bias", c},
                                    {"channel_mix_lerp_k.weight", c, 0, 0.5F, 0.3F, {1, 1, c}},
                                    matrix("channel_mix_key.weight", file.ffn, c),
                                    matrix("channel_mix_value.weight", c, file.ffn)};
    for (const char* name : {"receptance", "key", "value", "output"})
        all.push_back(matrix(std::string("time_mix_") + name + ".weight", c, c));
    for (const char* name : {"k_k", "k_a", "r_k"})
        all.push_back({std::string("time_mix_") + name + ".weight", c, 0, 0.7F});
    auto thin = [&](const std::string& name, std::int64_t rank, bool bias) {
        if (bias) all.push_back({"time_mix_" + name + "0.weight", c, 0, -1, 1});
        all.push_back(matrix("time_mix_" + name + "1.weight", rank, c));
        all.push_back(matrix("time_mix_" + name + "2.weight", c, rank));
    };
    thin("w", number(file, "attention.decay_lora_rank"), true), thin("a", rate, true);
    thin("g", number(file, "attention.gate_lora_rank"), false);
    thin("v", layer == 0 ? rate : number(file, "attention.value_residual_mix_lora_rank"), true);
    return all;
}

std::vector<ExtraTensor> rwkv6(const FamilyFile& file) {
    const std::int64_t c = file.width, mix = number(file, "time_mix_extra_dim"),
                       decay = number(file, "time_decay_extra_dim"), d = number(file, "wkv.head_size");
    std::vector<ExtraTensor> all = {{"time_mix_lerp_x.weight", c, 0, 0.5F, 0.3F, {1, 1, c}},
                                    matrix("time_mix_w1.weight", 5 * mix, c),
                                    {"time_mix_w2.weight", 5 * c, mix, 0, 0.2F, {5, c, mix}},
                                    {"time_mix_first.weight", c / d, d, 0.5F},
                                    {"time_mix_decay.weight", c, 0, -2, 1},
                                    matrix("time_mix_decay_w1.weight", decay, c),
                                    matrix("time_mix_decay_w2.weight", c, decay),
                                    {"time_mix_ln.weight", c, 0, 1},
                                    {"time_mix_ln.bias", c},
                                    {"channel_mix_lerp_k.weight", c, 0, 0.5F, 0.3F, {1, 1, c}},
                                    {"channel_mix_lerp_r.weight", c, 0, 0.5F, 0.3F, {1, 1, c}},
                                    matrix("channel_mix_key.weight", file.ffn, c),
                                    matrix("channel_mix_value.weight", c, file.ffn),
                                    matrix("channel_mix_receptance.weight", c, c)};
    for (const char* name : {"receptance", "key", "value", "gate", "output"})
        all.push_back(matrix(std::string("time_mix_") + name + ".weight", c, c));
    if (file.gated)  // as new converters write them
        all.push_back({"time_mix_lerp_fused.weight", 5, c, 0.5F, 0.3F, {5, 1, 1, c}});
    else
        for (const char* name : {"w", "k", "v", "r", "g"})
            all.push_back({std::string("time_mix_lerp_") + name + ".weight", c, 0, 0.5F, 0.3F, {1, 1, c}});
    return all;
}

}  // namespace

std::vector<ExtraTensor> mixer_tensors(const FamilyFile& file, const std::string& mixer, std::int64_t layer) {
    if (mixer == "mamba") return mamba(file);
    if (mixer == "mamba2") return mamba2(file);
    if (mixer == "rwkv7") return rwkv7(file, layer);
    if (mixer == "rwkv6") return rwkv6(file);
    return {};
}

}  // namespace linnet::test
