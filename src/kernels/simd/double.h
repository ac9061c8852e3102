// One double a "vector", for the table that gradients are checked in: exactness before speed, so exp and erf
// are the C library's.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace linnet {
namespace {

using Real = double;

}  // namespace
}  // namespace linnet

#include "kernels/simd/one.inl"
#include "kernels/simd/stored_scalar.inl"

namespace linnet {
namespace {

struct StoredF64 {
    using Element = double;
    static Vec get(const double* p) { return *p; }
    static Vec get_n(const double* p, int64_t n) { return n > 0 ? *p : 0; }
    static void put_n(double* p, Vec v, int64_t n) {
        if (n > 0) *p = v;
    }
};

using StoredReal = StoredF64;

inline Vec round(Vec a) {  // to nearest even, |a| < 2^51: the adder rounds
    double shift = 6755399441055744.0;
    return (a + shift) - shift;
}
inline Vec exp(Vec x) {
    return __builtin_exp(x);
}

/// The standard normal's distribution function and density, for GELU (erfc keeps the left tail's digits).
inline void normal(Vec x, Vec& cdf, Vec& pdf) {
    cdf = 0.5 * __builtin_erfc(x * -0.70710678118654752440);
    pdf = 0.39894228040143267794 * __builtin_exp(-0.5 * x * x);
}

}  // namespace
}  // namespace linnet
