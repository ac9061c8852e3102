// How far a model's predictions are from another's, on a text.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "model/engine/engine.h"
#include "model/model.h"

namespace linnet {

/// Over all predicted tokens. Divergences are in nats, of the candidate from the reference:
/// Σ p ln(p / q), p the reference's probabilities.
struct Divergence {
    std::int64_t tokens = 0;
    double reference_nll = 0, candidate_nll = 0;  // mean per token
    double mean = 0, percentile99 = 0;
    double same_top = 0;  // share of the tokens for which both think the same one likeliest
};

/// Both models, run with `options`, read `ids` in disjoint windows of `options.context` tokens, `windows` of
/// them at most (0: all), the rest is left out. Both must have as many tokens in their vocabulary;
/// Error(Exit::input) otherwise. `progress` is told of the windows done and of all.
Divergence measure_divergence(const std::shared_ptr<const Model>& reference,
                              const std::shared_ptr<const Model>& candidate, std::span<const TokenId> ids,
                              const EngineOptions& options, std::int64_t windows,
                              const std::function<void(double done, double all)>& progress);

}  // namespace linnet
