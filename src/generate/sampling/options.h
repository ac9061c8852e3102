// What a sampler may be told.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace linnet {

/// Added to the logit of a token before all else; minus infinity bans the token (where anything else is
/// left).
struct LogitBias {
    TokenId id = 0;
    float bias = 0;
};

/// The order in which samplers are applied, where no other is asked for: llama.cpp's. Cutting before the
/// temperature keeps what is cut off independent of it.
inline constexpr const char* default_samplers =
    "penalties; dry; top_n_sigma; top_k; typical_p; top_p; min_p; xtc; temperature";

/// Each belongs to the sampler named in brackets (chain.cpp has them all, with their sources).
struct SamplerOptions {
    double temperature = 0.8;      // [temperature] 0: always the likeliest token
    double dynatemp_range = 0;     // [temperature] varies it by entropy, from T - range to T + range (0: off)
    double dynatemp_exponent = 1;  // [temperature]
    std::int64_t top_k = 40;       // [top_k] keep the k likeliest (0: all)
    double top_p = 0.95;           // [top_p] keep the likeliest of together this probability (1: all)
    double min_p = 0.05;     // [min_p] keep those with this share of the likeliest's probability (0: all)
    double typical_p = 1;    // [typical_p] keep the most typical of together this probability (1: all)
    double top_n_sigma = 0;  // [top_n_sigma] keep logits within n standard deviations of the largest (0: all)
    double repeat_penalty = 1;             // [penalties] above 1: recent tokens are less likely (1: off)
    double frequency_penalty = 0;          // [penalties] subtracted for every time that a token is there
    double presence_penalty = 0;           // [penalties] subtracted where a token is there
    std::int64_t repeat_window = 64;       // [penalties] recent tokens that these look at
    double dry_multiplier = 0;             // [dry] 0: off
    double dry_base = 1.75;                // [dry]
    std::int64_t dry_allowed_length = 2;   // [dry] longest repetition that costs nothing
    std::int64_t dry_penalty_last_n = -1;  // [dry] recent tokens that it looks at; -1: all
    std::vector<std::string> dry_breakers{"\n", ":", "\"", "*"};  // [dry] no repetition reaches across these
    double xtc_probability = 0;                                   // [xtc] of cutting at all (0: off)
    double xtc_threshold = 0.1;                                   // [xtc] above 0.5: off
    std::int64_t mirostat = 0;  // 2: Mirostat 2 takes the place of all that cut
    double mirostat_lr = 0.1;   // its learning rate η
    double mirostat_ent = 5;    // its target τ: surprise in bits
    std::string samplers = default_samplers;
    std::vector<LogitBias> biases;
    std::uint64_t seed = 0;
    std::uint64_t sample = 0;  // of several texts with one seed; below most_samples
};
inline constexpr std::uint64_t most_samples = 1 << 16;

}  // namespace linnet
