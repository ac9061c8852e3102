// One float per "vector", no instruction set assumed: the slow reference that every other set is tested
// against, and what an old processor runs.
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

/// Sums of four neighbouring products of signed bytes: lane l is that of bytes 4l … 4l + 3.
inline Ints8 dot_signed(Bytes32 codes, Bytes32 a) {
    Ints8 sums{};
    for (int i = 0; i < 32; i++)
        sums[i / 4] += static_cast<signed char>(codes[i]) * static_cast<signed char>(a[i]);
    return sums;
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
    // Unsigned, because sums that come to nothing (of numbers that are not finite) may leave 32 bits.
    return static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(low(a) * low(b)) +
                                static_cast<uint32_t>((a >> 16) * (b >> 16)));
}
/// Two numbers, rounded, as a pair of 16-bit integers.
inline Vec short_words(Vec a, Vec b) {
    auto whole = [](Vec x) -> uint32_t {  // they fit; NaN becomes -32768, as in AVX-512
        return x > -32768 && x < 32767.5f ? static_cast<uint16_t>(static_cast<int32_t>(round(x))) : 0x8000;
    };
    return __builtin_bit_cast(float, whole(a) | whole(b) << 16);
}
inline Vec to_real(Integers x) {
    return static_cast<float>(x);
}

}  // namespace
}  // namespace linnet

#include "kernels/simd/dot_plain.inl"
#include "kernels/simd/math_float.inl"
