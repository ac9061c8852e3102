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

#include "kernels/simd_one.inl"
#include "kernels/stored_scalar.inl"

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

}  // namespace
}  // namespace linnet

#include "kernels/math_float.inl"
