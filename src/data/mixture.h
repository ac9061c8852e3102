// Windows out of several texts, each as often as its weight says; of packed texts (packing.h) bins.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/batches.h"

namespace linnet {

/// Of source i of a run with this seed: sources that are alike are read in orders that are not.
inline std::uint64_t seed_of_source(std::uint64_t seed, std::size_t i) {
    return seed + i;
}

class WindowMixture {
  public:
    /// One source, or several with as many positive weights. Error(Exit::input) where the training split of
    /// one that is a stream has fewer than T + 1 tokens. Packed texts have seeds of their own.
    WindowMixture(std::vector<TokenSource> sources, std::vector<double> weights, std::uint64_t seed,
                  std::int64_t T);

    /// Adds window `index` of the run (WindowSampler::train_window says which that is) to a batch. Its
    /// source, and which of that source's own windows it is, depend on weights and index alone, so resuming
    /// needs no state. Of the first n windows each source has its share, within the number of sources.
    void add(std::uint64_t index, Batch& batch) const;
    struct Place {
        std::size_t part;
        std::uint64_t index;
    };
    Place place(std::uint64_t index) const;
    /// How many of the first `count` windows are source `part`'s: its position.
    std::uint64_t drawn(std::size_t part, std::uint64_t count) const;
    /// Rows with a loss in the windows [begin, end).
    std::int64_t targets(std::uint64_t begin, std::uint64_t end) const;

    std::size_t parts() const { return samplers_.size(); }
    const WindowSampler& part(std::size_t i) const { return samplers_[i]; }
    double weight(std::size_t i) const { return weights_.empty() ? 1 : weights_[i]; }
    std::uint64_t size(DataSplit split) const;  // tokens of all sources
    std::uint64_t epoch_rows() const;           // that reading all of them once takes

  private:
    std::vector<WindowSampler> samplers_;
    std::vector<double> weights_;  // empty: one source
    std::vector<double> rates_;    // of source i among those from i on
};

}  // namespace linnet
