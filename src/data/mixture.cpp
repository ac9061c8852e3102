#include "data/mixture.h"

#include <cmath>

namespace linnet {
namespace {

/// Of the first n sequences, so many are of a source that gets `rate` of them.
std::uint64_t share(std::uint64_t n, double rate) {
    return static_cast<std::uint64_t>(std::floor(static_cast<double>(n) * rate));
}

}  // namespace

WindowMixture::WindowMixture(std::vector<TokenSource> sources, std::vector<double> weights,
                             std::uint64_t seed, std::int64_t T)
    : weights_(std::move(weights)) {
    for (std::size_t i = 0; i < sources.size(); i++)
        samplers_.emplace_back(std::move(sources[i]), seed + i, T);
    rates_.resize(samplers_.size(), 1);
    double rest = 0;
    for (std::size_t i = samplers_.size(); i-- > 0;) {
        rest += weight(i);
        rates_[i] = i + 1 == samplers_.size() ? 1 : weight(i) / rest;
    }
}

WindowMixture::Place WindowMixture::place(std::uint64_t index) const {
    // Each source takes its share of the sequences that those before it have left, evenly spread.
    for (std::size_t i = 0; i + 1 < samplers_.size(); i++) {
        const std::uint64_t before = share(index, rates_[i]);
        if (share(index + 1, rates_[i]) > before) return {i, before};
        index -= before;
    }
    return {samplers_.size() - 1, index};
}

std::uint64_t WindowMixture::drawn(std::size_t part, std::uint64_t count) const {
    for (std::size_t i = 0; i < part; i++) count -= share(count, rates_[i]);
    return part + 1 == samplers_.size() ? count : share(count, rates_[part]);
}

void WindowMixture::train_window(std::uint64_t index, std::span<std::int32_t> inputs,
                                 std::span<std::int32_t> targets) const {
    const Place at = place(index);
    samplers_[at.part].train_window(at.index, inputs, targets);
}

std::uint64_t WindowMixture::size(DataSplit split) const {
    std::uint64_t tokens = 0;
    for (const WindowSampler& sampler : samplers_) tokens += sampler.source().size(split);
    return tokens;
}

}  // namespace linnet
