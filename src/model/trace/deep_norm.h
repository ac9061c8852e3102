// DeepNorm (Wang et al. 2022, "DeepNet: scaling Transformers to 1,000 layers", figure 2).
#pragma once
#include <cmath>

#include "model/config/config.h"

namespace linnet {

/// x + f(x) becomes alpha x + f(x), and what makes f(x) linearly (values, outputs, feed-forward layers)
/// starts beta times as large.
struct DeepNorm {
    double alpha, beta;
};

/// Of one stack of a model; `beside`: of a decoder that looks at an encoder. An encoder that is looked at
/// goes by the depths of both.
inline DeepNorm deep_norm(const ModelConfig& c, bool beside) {
    const auto encoder = static_cast<double>(c.layers), decoder = static_cast<double>(c.decoder_depth());
    if (beside) return {std::pow(3 * decoder, 0.25), std::pow(12 * decoder, -0.25)};
    if (c.kind != "encoder-decoder") return {std::pow(2 * encoder, 0.25), std::pow(8 * encoder, -0.25)};
    const double both = std::pow(std::pow(encoder, 4) * decoder, 1.0 / 16);
    return {0.81 * both, 0.87 / both};
}

}  // namespace linnet
