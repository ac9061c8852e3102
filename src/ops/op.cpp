#include "ops/op.h"

#include <cstdio>
#include <stdexcept>

#include "ops/experts.h"
#include "ops/sample.h"

namespace linnet {

bool Attributes::has(std::string_view name) const {
    for (const auto& [key, value] : values_)
        if (key == name) return true;
    return false;
}

double Attributes::number(std::string_view name) const {
    for (const auto& [key, value] : values_)
        if (key == name) return value;
    throw std::logic_error("an operation lacks its attribute " + std::string(name));
}

std::string Attributes::text(int digits) const {
    std::string out;
    for (const auto& [key, value] : values_) {
        char number[32];
        std::snprintf(number, sizeof number, "%.*g", digits, value);
        out += (out.empty() ? "" : " ") + std::string(key) + "=" + number;
    }
    return out;
}

std::span<const Op* const> all_ops() {
    static const Op* const ops[] = {
        &embedding_op,
        &position_embedding_op,
        &sinusoidal_op,
        &position_bits_op,
        &linear_op,
        &layer_norm_op,
        &rms_norm_op,
        &rope_op,
        &append_op,
        &attention_op,
        &activation_op,
        &gated_op,
        &add_op,
        &mix_op,
        &scale_op,
        &clamp_op,
        &softcap_op,
        &dropout_op,
        &get_rows_op,
        &pool_op,
        &vectors_op,
        &project_op,
        &windows_op,
        &merge_op,
        &window_bias_op,
        &cross_entropy_op,
        &sample_op,
        &differ_op,
        &insert_op,
        &expert_choice_op,
        &expert_weights_op,
        &expert_places_op,
        &expert_bounds_op,
        &to_experts_op,
        &expert_linear_op,
        &from_experts_op,
        &row_gate_op,
        &router_loss_op,
        &score_bias_op,
        &biased_attention_op,
        &additive_attention_op,
        &conv_op,
        &shift_op,
        &selective_scan_op,
        &linear_scan_op,
        &delta_scan_op,
        &linear_attention_op,
        &reverse_op,
        &lstm_op,
        &multiply_op,
        &weigh_op,
        &group_sum_op,
        &repeat_op,
    };
    return ops;
}

}  // namespace linnet
