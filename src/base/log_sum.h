// The logarithm of a sum of exponentials.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>

namespace linnet {

/// log Σ exp(x), in double precision, without overflow; `x` is not empty.
inline double log_sum(std::span<const float> x) {
    const double top = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (float each : x) sum += std::exp(static_cast<double>(each) - top);
    return top + std::log(sum);
}

}  // namespace linnet
