// Products of small integers, for sets that have no instructions for them beyond dot_signed, which stands
// before this file.
#pragma once
#include "kernels/simd/lanes.h"

namespace linnet {
namespace {

/// sums + dot_signed; codes without a sign are signed bytes, too, as they are below 128.
inline Ints8 add_signed(Ints8 sums, Bytes32 codes, Bytes32 a) {
    return sums + dot_signed(codes, a);
}
inline Ints8 add_codes(Ints8 sums, Bytes32 codes, Bytes32 a) {
    return add_signed(sums, codes, a);
}
/// sums + the products of four vectors.
inline Ints8 add_small_codes(Ints8 sums, const Bytes32 (&codes)[4], const Bytes32 (&a)[4]) {
    for (int i = 0; i < 4; i++) sums = add_codes(sums, codes[i], a[i]);
    return sums;
}
/// sums + products as above, those of lane l times the whole number in the low half of by's lane l.
inline Ints8 add_scaled_codes(Ints8 sums, Bytes32 codes, Bytes32 a, Ints8 by) {
    return sums + dot_signed(codes, a) * (by << 16 >> 16);
}
/// Sums of two neighbouring products.
inline Ints8 dot_pairs(Shorts16 a, Shorts16 b) {
    Ints8 sums{};
    for (int i = 0; i < 16; i++) sums[i / 2] += a[i] * b[i];
    return sums;
}

}  // namespace
}  // namespace linnet
