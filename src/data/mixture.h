// Windows out of several texts, each as often as its weight says.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/batches.h"

namespace linnet {

class WindowMixture {
  public:
    /// One source, or several with as many positive weights. Error(Exit::input) where the training split of
    /// one has fewer than T + 1 tokens.
    WindowMixture(std::vector<TokenSource> sources, std::vector<double> weights, std::uint64_t seed,
                  std::int64_t T);

    /// Sequence `index` of the run (WindowSampler::train_window says which that is). Its source, and which of
    /// that source's own sequences it is, depend on weights and index alone, so resuming needs no state. Of
    /// the first n sequences each source has its share, within the number of sources.
    void train_window(std::uint64_t index, std::span<std::int32_t> inputs,
                      std::span<std::int32_t> targets) const;
    struct Place {
        std::size_t part;
        std::uint64_t index;
    };
    Place place(std::uint64_t index) const;
    /// How many of the first `count` sequences are source `part`'s: its position.
    std::uint64_t drawn(std::size_t part, std::uint64_t count) const;

    std::size_t parts() const { return samplers_.size(); }
    const WindowSampler& part(std::size_t i) const { return samplers_[i]; }
    double weight(std::size_t i) const { return weights_.empty() ? 1 : weights_[i]; }
    std::uint64_t size(DataSplit split) const;  // tokens of all sources

  private:
    std::vector<WindowSampler> samplers_;
    std::vector<double> weights_;  // empty: one source
    std::vector<double> rates_;    // of source i among those from i on
};

}  // namespace linnet
