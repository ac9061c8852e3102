#include "generate/sampling/draw.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/rng.h"

namespace linnet {

void Draw::begin(const SamplerOptions& settings, const Tokenizer* spelling, std::span<const float> logits,
                 std::span<const TokenId> text, std::uint64_t step, const TokenMask* mask) {
    options = &settings;
    tokenizer = spelling;
    history = text;
    scores_ = logits;
    step_ = step;
    mask_ = mask;
    whole_ = true;
    temperature = 1;
    for (const LogitBias& b : settings.biases)
        if (auto id = static_cast<std::size_t>(b.id); id < logits.size()) {
            float& score = own_scores()[id];  // several for one token add up, but for a ban
            if (score > lowest) score = std::clamp(score + b.bias, lowest, -lowest);
        }
}

std::span<float> Draw::own_scores() {
    if (scores_.data() != own_.data()) {
        own_.assign(scores_.begin(), scores_.end());
        scores_ = own_;
    }
    return own_;
}

std::optional<TokenId> Draw::best() {
    float highest = -std::numeric_limits<float>::infinity();
    if (!whole_) {
        const TokenCandidate& c = *std::min_element(list_.begin(), list_.end(), likelier);
        return c.id;
    }
    std::size_t found = 0;
    bool nan = false;
    if (mask_ && mask_->listed()) {
        for (float x : scores_) nan |= x != x;
        for (TokenId id : mask_->list())
            if (float x = scores_[static_cast<std::size_t>(id)]; x > highest)
                highest = x, found = static_cast<std::size_t>(id);
    } else {
        for (std::size_t i = 0; i < scores_.size(); i++) {
            nan |= scores_[i] != scores_[i];
            if (scores_[i] > highest && (!mask_ || mask_->has(i))) highest = scores_[i], found = i;
        }
    }
    if (nan || !std::isfinite(highest)) return std::nullopt;
    return static_cast<TokenId>(found);
}

bool Draw::find_top() {
    const std::optional<TokenId> id = best();
    if (!id) return false;
    if (whole_)
        top = scores_[static_cast<std::size_t>(*id)];
    else
        refresh_top();
    return true;
}

void Draw::refresh_top() {
    top = lowest;
    for (const TokenCandidate& c : list_) top = std::max(top, c.logit);
}

std::vector<TokenCandidate>& Draw::list() {
    if (!whole_) return list_;
    whole_ = false;
    list_.clear();
    if (mask_ && mask_->listed()) {
        for (TokenId id : mask_->list()) list_.push_back({scores_[static_cast<std::size_t>(id)], id});
        return list_;
    }
    for (std::size_t i = 0; i < scores_.size(); i++)
        if (!mask_ || mask_->has(i)) list_.push_back({scores_[i], static_cast<TokenId>(i)});
    return list_;
}

/// One pass with a floor: a token at or below the k-th best so far can never enter (equal ones lose by their
/// higher id), so nearly all of a large vocabulary costs one comparison.
void Draw::keep_top_k(std::size_t k) {
    auto cut = [&] {
        std::nth_element(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(k - 1), list_.end(),
                         likelier);
        list_.resize(k);
    };
    if (whole_ && k >= scores_.size()) return;
    if (whole_ && !(mask_ && mask_->listed())) {
        whole_ = false;
        list_.clear();
        const std::size_t room = 2 * k + 64;
        bool full = false;
        float floor = 0;
        for (std::size_t i = 0; i < scores_.size(); i++) {
            if (full && scores_[i] <= floor) continue;
            if (mask_ && !mask_->has(i)) continue;
            list_.push_back({scores_[i], static_cast<TokenId>(i)});
            if (list_.size() < room) continue;
            cut();
            floor = list_[k - 1].logit;
            full = true;
        }
    }
    if (list().size() > k) cut();
    std::sort(list_.begin(), list_.end(), likelier);
}

void Draw::apply_temperature() {
    if (temperature == 1) return;
    // A temperature that would take logits beyond a float's range is 0 as far as that can tell: one that
    // leaves them there keeps their order.
    double most = 0;
    for (const TokenCandidate& c : list())
        if (!banned(c.logit)) most = std::max(most, std::fabs(static_cast<double>(c.logit)));
    const double divisor = std::max(temperature, most / static_cast<double>(-lowest));
    for (TokenCandidate& c : list()) c.logit = bounded(static_cast<double>(c.logit) / divisor);
    temperature = 1;
}

double Draw::weight(const TokenCandidate& c) const {
    return std::exp(static_cast<double>(c.logit - top) / temperature);
}

double Draw::sum() {
    double whole = 0;
    for (const TokenCandidate& c : list()) whole += weight(c);
    return whole;
}

double Draw::uniform(RandomPurpose purpose) const {
    static_assert(most_samples <= 1 << 16);
    return Rng(options->seed, static_cast<std::uint64_t>(purpose) | options->sample << 48).uniform(step_);
}

TokenId Draw::take() {
    double whole = 0;
    weights_.clear();
    for (const TokenCandidate& c : list()) {
        whole += weight(c);
        weights_.push_back(whole);
    }
    const double draw = uniform(RandomPurpose::token) * whole;
    const auto i =
        static_cast<std::size_t>(std::upper_bound(weights_.begin(), weights_.end(), draw) - weights_.begin());
    return list_[std::min(i, list_.size() - 1)].id;  // the last where rounding put the draw past the end
}

}  // namespace linnet
