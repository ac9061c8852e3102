// One number per "vector", of the type that the includer called Real: the primitives that float and double
// share.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/lanes.h"

namespace linnet {
namespace {

using Vec = Real;
constexpr int W = 1;

constexpr int tile_rows = 4, tile_vectors = 4;
constexpr int64_t block_m = 64, block_n = 512, block_k = 256;
constexpr int small_rows = 4, small_vectors = 4;
constexpr int gemv_rows = 4;  // rows of A at a time, in decoding

inline Vec zero() {
    return 0;
}
inline Vec set1(Real x) {
    return x;
}
inline Vec load(const Real* p) {
    return *p;
}
inline Vec load_n(const Real* p, int64_t n) {
    return n > 0 ? *p : 0;
}
inline void store(Real* p, Vec v) {
    *p = v;
}
inline void store_n(Real* p, Vec v, int64_t n) {
    if (n > 0) *p = v;
}

/// a·b + c in two roundings: a real fma would be a library call
inline Vec fma(Vec a, Vec b, Vec c) {
    return a * b + c;
}
/// c - a·b
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
    // The square root of a float taken in double and rounded is the float's own, to the last bit.
    return static_cast<Real>(__builtin_sqrt(static_cast<double>(a)));
}
inline Vec abs(Vec a) {
    return static_cast<Real>(__builtin_fabs(static_cast<double>(a)));
}
inline Vec if_positive(Vec x, Vec a, Vec b) {
    return x > 0 ? a : b;
}
inline Vec keep(Vec v, int64_t begin, int64_t end, Vec other) {
    return begin <= 0 && end > 0 ? v : other;
}
inline Real sum(Vec v) {
    return v;
}
inline Real largest(Vec v) {
    return v;
}

struct Wide {
    double value;
};
inline Wide wide_zero() {
    return {0};
}
inline void add_to(Wide& w, Vec v) {
    w.value += static_cast<double>(v);
}
inline void add_squares_to(Wide& w, Vec v) {
    w.value += static_cast<double>(v) * static_cast<double>(v);
}
inline double sum(const Wide& w) {
    return w.value;
}

// Random numbers: a word, its product with another of 64 bits, and what is kept by it.
using Words = uint32_t;
inline Words multiply_words(Words a, uint32_t by, Words& high) {
    const uint64_t product = uint64_t{a} * by;
    high = static_cast<uint32_t>(product >> 32);
    return static_cast<uint32_t>(product);
}
/// v where the draw is at least `limit`, else 0.
inline Vec keep_drawn(const uint16_t* draws, uint32_t limit, Vec v) {
    return *draws >= limit ? v : Vec(0);
}

inline void load_pairs(const Real* p, Vec& a, Vec& b) {
    a = p[0], b = p[1];
}
inline void store_pairs(Real* p, Vec a, Vec b) {
    p[0] = a, p[1] = b;
}
inline void transpose(Vec (&)[W]) {}

}  // namespace
}  // namespace linnet
