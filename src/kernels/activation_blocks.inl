// Rows of activations as whole numbers, for products with weights of block types.
//
// Writing wants bytes: every 32 activations become d · q with |q| ≤ 127, so that a product with 32 weights is
// an exact sum of integers. Every step below has one rounding and one order on all instruction sets: the bits
// are the same on each of them.
#pragma once
#include "kernels/types/parts.inl"

namespace linnet {
namespace {

/// 256 activations, in 8 groups of 32 and 16 halves of such groups. A shorter last block is filled with
/// zeros.
struct alignas(32) ActivationBlock {
    Whole q[run_length];
    float d[8];
    float first[8], second[8];  // d · Σ q over the first and the second half of each group
};

inline Floats8 larger(Floats8 a, Floats8 b) {
    return a > b ? a : b;
}
inline Floats8 magnitudes(Floats8 x) {
    return larger(x, -x);
}

/// Over the lanes, as a tree: 4 apart, 2 apart, neighbours.
inline float total(Floats8 v) {
    float a = v[0] + v[4], b = v[1] + v[5], c = v[2] + v[6], d = v[3] + v[7];
    return (a + c) + (b + d);
}
inline float largest_of(Floats8 v) {
    v = larger(v, __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3));
    v = larger(v, __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5));
    return v[0] > v[1] ? v[0] : v[1];
}
inline int32_t total(Ints8 v) {
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    return v[0] + v[1];
}

/// To the nearest whole number, of two the even one: |x| < 2²².
inline Floats8 rounded(Floats8 x) {
    const Floats8 shift = all_of(12582912.0f);
    return (x + shift) - shift;
}

/// What a number is multiplied with to become a whole one of at most `most`, and back. Where something is not
/// finite, `doubt` (a sum of x - x) is NaN, and so is all that is made with the scale.
struct WholeScale {
    float to, back;
};
inline WholeScale whole_scale(float largest, float doubt, float most) {
    bool usable = largest > 1e-30f && doubt == 0;
    return {usable ? most / largest : 0.0f, usable ? largest / most : doubt};
}

/// One group of 32: its bytes, its scale, its sums.
inline void quantize_group(const float* x, int group, ActivationBlock& to) {
    Floats8 v[4], most = all_of(0), doubt = all_of(0);
    for (int i = 0; i < 4; i++) {
        v[i] = get_vector<Floats8>(x + 8 * i);
        most = larger(most, magnitudes(v[i]));
        doubt += v[i] * all_of(0);  // NaN where v is not finite
    }
    WholeScale scale = whole_scale(largest_of(most), total(doubt), 127);
    Ints8 q[4];
    for (int i = 0; i < 4; i++) {
        q[i] = __builtin_convertvector(rounded(v[i] * all_of(scale.to)), Ints8);
        using Bytes8 = signed char __attribute__((vector_size(8)));
        put_vector(to.q + 32 * group + 8 * i, __builtin_convertvector(q[i], Bytes8));
    }
    to.d[group] = scale.back;
    to.first[group] = scale.back * static_cast<float>(total(q[0] + q[1]));
    to.second[group] = scale.back * static_cast<float>(total(q[2] + q[3]));
}

/// Rows of k activations, a multiple of 32, as ceil(k / 256) blocks.
inline void quantize_activations(const float* x, int64_t k, ActivationBlock* to) {
    for (; k > 0; k -= run_length, x += run_length, to++) {
        for (int group = 0; group < 8; group++) {
            if (32 * group < k) {
                quantize_group(x + 32 * group, group, *to);
            } else {
                __builtin_memset(to->q + 32 * group, 0, 32);
                to->d[group] = to->first[group] = to->second[group] = 0;
            }
        }
    }
}

}  // namespace
}  // namespace linnet
