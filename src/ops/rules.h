// Rules and small sums that many ops have.
#pragma once
#include <algorithm>
#include <cmath>

#include "ops/op.h"

namespace linnet {

/// An output as wide as the first input.
inline std::int64_t input_width(const NodeShape& s) {
    return s.in[0];
}
inline std::int64_t one_wide(const NodeShape&) {
    return 1;
}
/// An op that only moves numbers.
inline double no_flops(const NodeShape&, double) {
    return 0;
}

/// What drops each element of a node with probability p, exact to 1 / 65536: a function of (seed, step, node,
/// element), so that a mask is drawn again and never stored. Outside of training all are kept.
template <class Real>
Dropout<Real> dropout_of(const Call<Real>& call, double p) {
    Dropout<Real> d;
    d.key = call.batch->seed, d.stream = call.batch->step << 16 | static_cast<std::uint64_t>(call.node);
    if (call.batch->training)
        d.limit = static_cast<std::uint32_t>(p * 65536), d.factor = static_cast<Real>(1 / (1 - p));
    return d;
}

/// A gradient beside those that came before: x + y, or y where it is the first.
template <class Real>
Real accumulated(bool accumulate, Real x, Real y) {
    return accumulate ? x + y : y;
}

/// The same of a row of n: y += x, or y = x.
template <class Real>
void put_row(const Call<Real>& call, bool accumulate, std::int64_t n, const Real* x, Real* y) {
    if (accumulate)
        call.kernels->add(n, y, x, y);
    else
        std::copy_n(x, n, y);
}

template <class Real>
Real sigmoid(Real x) {
    return 1 / (1 + std::exp(-x));
}

/// A sum of products in the order of its elements, for ops whose rows are short.
template <class Real>
Real dot(std::int64_t n, const Real* x, const Real* y) {
    Real sum = 0;
    for (std::int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

}  // namespace linnet
