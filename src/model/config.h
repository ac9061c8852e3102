// A model is data: what a JSON config may say of one, with its defaults and its checks.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace linnet {

/// The `model` part of a config (models/README.md describes every key).
struct ModelConfig {
    std::string kind = "decoder";
    std::int64_t context = 256;   // positions
    std::int64_t width = 0;       // C
    std::int64_t layers = 0;
    std::int64_t heads = 0;       // H
    std::int64_t kv_heads = 0;    // 0: heads
    std::int64_t head_width = 0;  // D; 0: width / heads
    std::int64_t vocabulary = 0;  // V; from the tokenizer
    struct {
        std::int64_t width = 0;  // F; 0: 4 · width
        std::string activation = "gelu-tanh";
        bool gated = false;
    } ffn;
    struct {
        std::string kind = "layer", placement = "pre";
        double epsilon = 1e-5;
        bool bias = true;  // LayerNorm only
    } norm;
    struct {
        std::string kind = "learned";
        double theta = 10000;
        bool halves = false;  // RoPE pairs (i, i + D/2) rather than (2i, 2i + 1)
    } position;
    struct {
        bool bias = true;         // q, k, v and output projections
        std::int64_t window = 0;  // tokens; 0: none
    } attention;
    bool ffn_bias = true;
    bool tie_embeddings = true;
    double dropout = 0;
    double init_std = 0.02;

};

}  // namespace linnet
