#include "generate/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"

namespace linnet {
namespace {

/// "sample", and above it the number of the sample.
constexpr std::uint64_t sampling_stream = 0x73616D706C65;
static_assert(sampling_stream < std::uint64_t{1} << 48 && most_samples <= 1 << 16);

}  // namespace

std::optional<TokenId> argmax(std::span<const float> logits) {
    float top = -std::numeric_limits<float>::infinity();
    std::size_t best = 0;
    bool nan = false;
    for (std::size_t i = 0; i < logits.size(); i++) {
        nan |= logits[i] != logits[i];
        if (logits[i] > top) top = logits[i], best = i;
    }
    if (nan || !std::isfinite(top)) return std::nullopt;
    return static_cast<TokenId>(best);
}

std::span<const float> Sampler::penalized(std::span<const float> logits, std::span<const TokenId> history) {
    if (options_.repeat_penalty == 1 || options_.repeat_window == 0 || history.empty()) return logits;
    scores_.assign(logits.begin(), logits.end());
    std::size_t window = std::min(history.size(), static_cast<std::size_t>(options_.repeat_window));
    float penalty = static_cast<float>(options_.repeat_penalty);
    for (TokenId id : history.last(window)) {
        std::size_t i = static_cast<std::size_t>(id);
        if (i >= logits.size()) continue;
        scores_[i] = logits[i] > 0 ? logits[i] / penalty
                                   : logits[i] * penalty;  // from logits: once, however often seen
    }
    return scores_;
}

/// candidates_ = the k likeliest, sorted; all of them in id order where k is off. One pass with a floor: a
/// token at or below the k-th best so far can never enter (equal ones lose by their higher id), so nearly all
/// of a large vocabulary costs one comparison.
void Sampler::keep_top_k(std::span<const float> logits) {
    std::size_t k = static_cast<std::size_t>(options_.top_k);
    candidates_.clear();
    if (k == 0 || k >= logits.size()) {
        for (std::size_t i = 0; i < logits.size(); i++)
            candidates_.push_back({logits[i], static_cast<TokenId>(i)});
        return;
    }
    std::size_t room = 2 * k + 64;
    bool full = false;
    float floor = 0;
    auto cut = [&] {
        std::nth_element(candidates_.begin(), candidates_.begin() + (k - 1), candidates_.end(), likelier);
        candidates_.resize(k);
        floor = candidates_[k - 1].logit;
        full = true;
    };
    for (std::size_t i = 0; i < logits.size(); i++) {
        if (full && logits[i] <= floor) continue;
        candidates_.push_back({logits[i], static_cast<TokenId>(i)});
        if (candidates_.size() == room) cut();
    }
    if (candidates_.size() > k) cut();
    std::sort(candidates_.begin(), candidates_.end(), likelier);
}

/// Cuts to the shortest run of the likeliest that holds top_p of the whole. Sorted in growing pieces: the run
/// is short when the model knows what it wants, and then the rest need not be in order.
void Sampler::keep_top_p(float top) {
    double whole = 0, held = 0;
    for (const Candidate& c : candidates_) whole += std::exp(static_cast<double>(c.logit - top));
    std::size_t sorted = 0, n = candidates_.size(), piece = 64;
    for (std::size_t i = 0; i < n; i++) {
        if (i == sorted) {
            sorted = std::min(n, sorted + piece);
            piece *= 4;
            auto begin = candidates_.begin() + static_cast<std::ptrdiff_t>(i);
            auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(sorted);
            if (end != candidates_.end()) std::nth_element(begin, end - 1, candidates_.end(), likelier);
            std::sort(begin, end, likelier);
        }
        held += std::exp(static_cast<double>(candidates_[i].logit - top));
        if (held >= options_.top_p * whole) {
            candidates_.resize(i + 1);
            return;
        }
    }
}

std::optional<TokenId> Sampler::pick(std::span<const float> logits, std::span<const TokenId> history,
                                     std::uint64_t step) {
    std::span<const float> scores = penalized(logits, history);
    std::optional<TokenId> best = argmax(scores);
    if (!best || options_.temperature == 0 || options_.top_k == 1) return best;
    float top = scores[static_cast<std::size_t>(*best)];
    keep_top_k(scores);
    if (options_.top_p < 1) keep_top_p(top);
    if (options_.min_p > 0) {
        double floor = top + std::log(options_.min_p);
        std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < floor; });
    }
    double whole = 0;
    weights_.clear();
    for (const Candidate& c : candidates_) {
        whole += std::exp(static_cast<double>(c.logit - top) / options_.temperature);
        weights_.push_back(whole);
    }
    double draw = Rng(options_.seed, sampling_stream | options_.sample << 48).uniform(step) * whole;
    std::size_t i =
        static_cast<std::size_t>(std::upper_bound(weights_.begin(), weights_.end(), draw) - weights_.begin());
    return candidates_[std::min(i, candidates_.size() - 1)]
        .id;  // the last where rounding put the draw past the end
}

}  // namespace linnet
