// One float a "vector", no instruction set assumed: the slow twin that every other set is tested against, and
// what an old processor runs.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace linnet {
namespace {

using Real = float;

}  // namespace
}  // namespace linnet

#include "kernels/simd/one.inl"
#include "kernels/simd/stored_scalar.inl"

namespace linnet {
namespace {

inline Vec round(Vec a) {  // to nearest even, |a| < 2^22: the adder rounds
    float shift = 12582912.0f;
    return (a + shift) - shift;
}
inline Vec scale2(Vec a, Vec n) {  // a · 2^n, n whole, in two steps: 2^n alone may not be a normal number
    int32_t whole = n == n ? static_cast<int32_t>(n) : 0, half = whole >> 1;
    return a * __builtin_bit_cast(float, (half + 127) << 23) *
           __builtin_bit_cast(float, (whole - half + 127) << 23);
}

using StoredReal = StoredF32;

/// 32 products of signed bytes, in eight sums: the first 16 in lanes 0–3.
template <class Sums>
inline Sums dot_32(const signed char* w, const signed char* a) {
    Sums sums{};
    for (int lane = 0; lane < 8; lane++)
        for (int i = 4 * lane; i < 4 * lane + 4; i++) sums[lane] += w[i] * a[i];
    return sums;
}

/// Neighbouring lanes of a and b added: a0+a1, a2+a3, b0+b1, b2+b3, then the same of the upper halves.
template <class Sums>
inline Sums add_neighbours(Sums a, Sums b) {
    return __builtin_shufflevector(a, b, 0, 2, 8, 10, 4, 6, 12, 14) +
           __builtin_shufflevector(a, b, 1, 3, 9, 11, 5, 7, 13, 15);
}

/// The sum of products of two 16-bit integers, two to a word.
constexpr int pair_rows = 4;
using Integers = int32_t;
inline Integers no_integers() {
    return 0;
}
inline Integers load_integers(const float* p) {
    return __builtin_bit_cast(int32_t, *p);
}
inline Integers set1_integer(int32_t x) {
    return x;
}
inline Integers add_pairs(Integers sum, Integers a, Integers b) {
    // Halves by shifts: from casts to int16_t GCC 12 makes wrong vectors of the whole tile on aarch64.
    auto low = [](int32_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x) << 16) >> 16; };
    return sum + low(a) * low(b) + (a >> 16) * (b >> 16);
}
inline Vec to_real(Integers x) {
    return static_cast<float>(x);
}

}  // namespace
}  // namespace linnet

#include "kernels/simd/math_float.inl"
