// A sum of products in the order of its elements, for ops whose rows are short.
#pragma once
#include <cstdint>

namespace linnet {

template <class Real>
Real dot(std::int64_t n, const Real* x, const Real* y) {
    Real sum = 0;
    for (std::int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

}  // namespace linnet
