// From logits to the next token.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "text/tokenizer.h"

namespace linnet {

/// Applied in this order (llama.cpp's): repetition penalty, top-k, top-p, min-p, temperature. Cutting before
/// the temperature keeps what is cut off independent of it.
struct SamplerOptions {
    double temperature = 0.8;  // 0: always the likeliest token
    std::int64_t top_k = 40;   // keep the k likeliest (0: all)
    double top_p = 0.95;       // keep the likeliest that together have at least this probability (1: all);
                          // Holtzman et al. 2020, "The curious case of neural text degeneration", section 3.1
    double min_p = 0.05;  // keep those with at least this share of the likeliest's probability (0: all);
                          // Nguyen et al. 2024, "Turning up the heat: min-p sampling"
    double repeat_penalty =
        1;  // > 1: tokens of the last repeat_window are made less likely (1: off);
            // Keskar et al. 2019, CTRL, section 4.1: logit / p where positive, else logit · p
    std::int64_t repeat_window = 64;
    std::uint64_t seed = 0;
    std::uint64_t sample = 0;  // of several texts with one seed; below most_samples
};
inline constexpr std::uint64_t most_samples = 1 << 16;

/// Picks tokens. Holds scratch memory only, so that equal arguments give equal picks whatever came before.
class Sampler {
  public:
    explicit Sampler(const SamplerOptions& options) : options_(options) {}

    /// The next token after `history` (newest last), given its logits [V]. `step` numbers the picks of one
    /// text: the random number is a function of (seed, sample, step) alone. Ties go to the lower id.
    /// Nothing where a logit is NaN or the largest is not finite: the model's weights are damaged.
    std::optional<TokenId> pick(std::span<const float> logits, std::span<const TokenId> history,
                                std::uint64_t step);

  private:
    struct Candidate {
        float logit;
        TokenId id;
    };
    static bool likelier(const Candidate& a, const Candidate& b) {
        return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
    }
    std::span<const float> penalized(std::span<const float> logits, std::span<const TokenId> history);
    void keep_top_k(std::span<const float> logits);
    void keep_top_p(float top);

    SamplerOptions options_;
    std::vector<float> scores_;          // [V], where the penalty changes logits
    std::vector<Candidate> candidates_;  // what is still in the draw
    std::vector<double> weights_;
};

/// The lowest id among the largest logits; nothing where Sampler::pick has nothing.
std::optional<TokenId> argmax(std::span<const float> logits);

}  // namespace linnet
