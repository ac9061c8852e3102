// One draw in the making: the tokens that are still in it, and what every sampler does to them.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "generate/sampling/mask.h"
#include "generate/sampling/options.h"
#include "text/tokenizer.h"

namespace linnet {

struct TokenCandidate {
    float logit;
    TokenId id;
};
inline bool likelier(const TokenCandidate& a, const TokenCandidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

/// Purposes of random numbers: streams of their own (base/rng.h), each with the number of the sample above
/// it. The first is "sample", which texts of all versions were drawn with.
enum class RandomPurpose : std::uint64_t { token = 0x73616D706C65, xtc = 0x787463 };

/// The candidates are all of `scores` (but what the mask forbids) until something is cut, then `list`.
/// Probabilities are shares of exp((logit - top) / temperature): the temperature is kept beside the logits,
/// so that a chain which ends with it works on the model's own numbers.
class Draw {
  public:
    /// What a ban makes of a logit. Not minus infinity: a banned token stays what is left where all others
    /// are forbidden.
    static constexpr float lowest = std::numeric_limits<float>::lowest();
    /// What is beyond a float's range, at its end.
    static float bounded(double logit) {
        return static_cast<float>(std::clamp<double>(logit, lowest, -lowest));
    }
    /// Whether a logit is no more than a ban has left of it, also where a temperature has scaled it since.
    static bool banned(float logit) { return logit < lowest * 0x1p-64f; }

    /// `logits` [V] after `history`; `mask` (or none) must outlive the draw. `step` numbers a text's picks.
    void begin(const SamplerOptions& options, const Tokenizer* tokenizer, std::span<const float> logits,
               std::span<const TokenId> history, std::uint64_t step, const TokenMask* mask);

    /// The lowest id among the likeliest; nothing where a logit is NaN or the largest is not finite.
    std::optional<TokenId> best();
    /// Finds `top`; false where best() is nothing.
    bool find_top();

    /// The candidates as a list, in id order until something orders it.
    std::vector<TokenCandidate>& list();
    /// list() after the first `k` of the likeliest, in order; one pass over a vocabulary.
    void keep_top_k(std::size_t k);
    /// Where a candidate list was changed by more than cutting its tail: the largest logit again.
    void refresh_top();
    /// Changes the logits of the candidates that have a value: change(value, logit).
    template <class T>
    void adjust(const std::map<TokenId, T>& of, auto&& change) {
        if (whole_) {
            std::span<float> scores = own_scores();
            for (const auto& [id, value] : of)
                if (auto i = static_cast<std::size_t>(id); i < scores.size())
                    scores[i] = change(value, scores[i]);
        } else {
            for (TokenCandidate& c : list_)
                if (auto found = of.find(c.id); found != of.end()) c.logit = change(found->second, c.logit);
        }
    }
    /// Makes the logits those that the temperature has scaled, for a sampler that changes them.
    void apply_temperature();
    double weight(const TokenCandidate& c) const;  // not normalized
    double sum();                                  // of the candidates' weights
    double uniform(RandomPurpose purpose) const;
    /// A candidate by its probability.
    TokenId take();

    const SamplerOptions* options = nullptr;
    const Tokenizer* tokenizer = nullptr;  // none: DRY has no breakers
    std::span<const TokenId> history;
    float top = 0;
    double temperature = 1;

  private:
    std::span<float> own_scores();

    std::span<const float> scores_;  // [V]
    const TokenMask* mask_ = nullptr;
    std::uint64_t step_ = 0;
    bool whole_ = true;
    std::vector<float> own_;  // [V], where logits were changed
    std::vector<TokenCandidate> list_;
    std::vector<double> weights_;
};

}  // namespace linnet
