// One double a "vector", for the table that gradients are checked in: exactness before speed, so exp and erf
// are the C library's.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace linnet {
namespace {

using Real = double;
using Vec = double;
constexpr int W = 1;

constexpr int tile_rows = 4, tile_vectors = 4;
constexpr int64_t block_m = 64, block_n = 512, block_k = 256;
constexpr int small_rows = 4, small_vectors = 4;
constexpr int gemv_rows = 4;  // rows of A at a time, in decoding

inline Vec zero() {
    return 0;
}
inline Vec set1(double x) {
    return x;
}
inline Vec load(const double* p) {
    return *p;
}
inline Vec load_n(const double* p, int64_t n) {
    return n > 0 ? *p : 0;
}
inline void store(double* p, Vec v) {
    *p = v;
}
inline void store_n(double* p, Vec v, int64_t n) {
    if (n > 0) *p = v;
}

inline Vec fma(Vec a, Vec b, Vec c) {
    return a * b + c;
}
inline Vec fnma(Vec a, Vec b, Vec c) {
    return c - a * b;
}
// Where an operand is NaN the second one is the result: put the data second to keep its NaN.
inline Vec max(Vec a, Vec b) {
    return a > b ? a : b;
}
inline Vec min(Vec a, Vec b) {
    return a < b ? a : b;
}
inline Vec sqrt(Vec a) {
    return __builtin_sqrt(a);
}
inline Vec abs(Vec a) {
    return __builtin_fabs(a);
}
inline Vec if_positive(Vec x, Vec a, Vec b) {
    return x > 0 ? a : b;
}
inline Vec keep(Vec v, int64_t begin, int64_t end, Vec other) {
    return begin <= 0 && end > 0 ? v : other;
}
inline double sum(Vec v) {
    return v;
}
inline double largest(Vec v) {
    return v;
}

struct Wide {
    double value;
};
inline Wide wide_zero() {
    return {0};
}
inline void add_to(Wide& w, Vec v) {
    w.value += v;
}
inline void add_squares_to(Wide& w, Vec v) {
    w.value += v * v;
}
inline double sum(const Wide& w) {
    return w.value;
}

inline void prefetch(const void* p) {
    __builtin_prefetch(p);
}

inline void load_pairs(const double* p, Vec& a, Vec& b) {
    a = p[0], b = p[1];
}
inline void store_pairs(double* p, Vec a, Vec b) {
    p[0] = a, p[1] = b;
}
inline void transpose(Vec (&)[W]) {}

}  // namespace
}  // namespace linnet

#include "kernels/stored_scalar.inl"

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
