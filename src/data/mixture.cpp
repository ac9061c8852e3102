#include "data/mixture.h"

#include <cmath>

namespace linnet {
namespace {

/// Of the first n windows, so many are of a source that gets `rate` of them.
std::uint64_t share(std::uint64_t n, double rate) {
    return static_cast<std::uint64_t>(std::floor(static_cast<double>(n) * rate));
}

}  // namespace

WindowMixture::WindowMixture(std::vector<TokenSource> sources, std::vector<double> weights,
                             std::uint64_t seed, std::int64_t T)
    : weights_(std::move(weights)) {
    for (std::size_t i = 0; i < sources.size(); i++)
        samplers_.emplace_back(std::move(sources[i]), seed_of_source(seed, i), T);
    rates_.resize(samplers_.size(), 1);
    double rest = 0;
    for (std::size_t i = samplers_.size(); i-- > 0;) {
        rest += weight(i);
        rates_[i] = i + 1 == samplers_.size() ? 1 : weight(i) / rest;
    }
}

WindowMixture::Place WindowMixture::place(std::uint64_t index) const {
    // Each source takes its share of the windows that those before it have left, evenly spread.
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

std::int64_t WindowMixture::targets(std::uint64_t begin, std::uint64_t end) const {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < samplers_.size(); i++)
        count += samplers_[i].targets(drawn(i, begin), drawn(i, end));
    return count;
}

void WindowMixture::add(std::uint64_t index, Batch& batch) const {
    const Place at = place(index);
    samplers_[at.part].add(DataSplit::train, at.index, batch);
}

std::uint64_t WindowMixture::size(DataSplit split) const {
    std::uint64_t tokens = 0;
    for (const WindowSampler& sampler : samplers_) tokens += sampler.source().size(split);
    return tokens;
}

std::uint64_t WindowMixture::epoch_rows() const {
    std::uint64_t rows = 0;
    for (const WindowSampler& sampler : samplers_) rows += sampler.epoch_rows();
    return rows;
}

}  // namespace linnet
