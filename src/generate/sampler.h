// From logits to the next token.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "generate/sampling/chain.h"
#include "generate/sampling/draw.h"
#include "generate/sampling/mask.h"
#include "generate/sampling/options.h"

namespace linnet {

/// Picks tokens: biases, then the samplers in the order of options.samplers, then the draw. With Mirostat,
/// samplers that cut are passed over and it takes the token. Beside scratch memory it holds state() alone:
/// equal arguments and states give equal picks, whatever came before.
class Sampler {
  public:
    /// What Mirostat has learned from a text so far.
    struct State {
        double mu = 0;
        bool operator==(const State&) const = default;
    };

    /// `tokenizer` (for DRY's breakers; or none) must outlive it. Error(Exit::input) for an unknown sampler.
    explicit Sampler(const SamplerOptions& options, const Tokenizer* tokenizer = nullptr);

    /// The next token after `history` (newest last), given its logits [V]; one that `mask` allows, where
    /// there is one. `step` numbers the picks of one text: random numbers are a function of (seed, sample,
    /// step, purpose). Ties go to the lower id. Nothing where a logit is NaN or the largest that is allowed
    /// is not finite: the model's weights are damaged.
    std::optional<TokenId> pick(std::span<const float> logits, std::span<const TokenId> history,
                                std::uint64_t step, const TokenMask* mask = nullptr);

    const State& state() const { return state_; }
    void set_state(const State& state) { state_ = state; }

  private:
    SamplerOptions options_;
    const Tokenizer* tokenizer_;
    SamplerChain chain_;      // those that are active
    bool likeliest_ = false;  // the chain comes to the likeliest token after what reweighs
    State state_;
    Draw draw_;
};

}  // namespace linnet
