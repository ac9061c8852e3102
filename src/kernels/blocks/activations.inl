// Rows of activations as whole numbers, for products with weights of block types.
//
// Writing uses bytes: activations become d · q with |q| ≤ 127, so that sums of products are exact integers.
// 32 share a d, or 256 where the type's scales are whole numbers: then a sum over 256 is exact. Every step
// below has one rounding and one order on all instruction sets: the bits are the same on each of them.
#pragma once
#include "kernels/types/parts.inl"

namespace linnet {
namespace {

constexpr int byte_most = 127;  // of a whole activation's magnitude

/// Whether so many products of codes, any that a block can hold, with activations add up within 16 bits.
template <class Block>
constexpr bool fits_16(int products) {
    return products * Block::greatest * byte_most <= 0x7FFF;
}

/// 256 activations, in 8 groups of 32 and 16 halves of such groups. A shorter last block is filled with
/// zeros.
struct alignas(32) ActivationBlock {
    Whole q[run_length];
    float d[8];
    float first[8], second[8];  // d · Σ q over the first and the second half of each group
};

/// 256 activations with one scale.
struct alignas(32) ActivationRun {
    Whole q[run_length];
    Shorts16 sums;  // of q: of the eight groups' first halves, then of the second ones
    float d;
};

inline Floats8 larger(Floats8 a, Floats8 b) {
    return a > b ? a : b;
}
inline Floats8 magnitudes(Floats8 x) {
    return larger(x, -x);
}

/// Over the lanes, as a tree: 4 apart, 2 apart, neighbours.
inline float total(Floats8 v) {
    v += __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
    v += __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    return v[0] + v[1];
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

/// The scale with which n numbers, a multiple of 8, become whole ones of at most `most`.
inline WholeScale scale_of(const float* x, int64_t n, float most) {
    Floats8 highest = all_of(0), doubt = all_of(0);
    for (int64_t i = 0; i < n; i += 8) {
        Floats8 v = get_vector<Floats8>(x + i);
        highest = larger(highest, magnitudes(v));
        doubt += v * all_of(0);  // NaN where v is not finite
    }
    return whole_scale(largest_of(highest), total(doubt), most);
}

/// A group of 32 as bytes, and the sums of its two halves.
struct HalfSums {
    int32_t first, second;
};
inline HalfSums bytes_of_group(const float* x, float to_whole, Whole* to) {
    if (to_whole == 0) {  // a number that is not finite is no integer
        __builtin_memset(to, 0, 32);
        return {0, 0};
    }
    Ints8 q[4];
    for (int i = 0; i < 4; i++) {
        q[i] = __builtin_convertvector(rounded(get_vector<Floats8>(x + 8 * i) * all_of(to_whole)), Ints8);
        using Bytes8 = signed char __attribute__((vector_size(8)));
        put_vector(to + 8 * i, __builtin_convertvector(q[i], Bytes8));
    }
    return {total(q[0] + q[1]), total(q[2] + q[3])};
}

inline void quantize_group(const float* x, int group, ActivationBlock& to) {
    const WholeScale scale = scale_of(x, 32, byte_most);
    const HalfSums sums = bytes_of_group(x, scale.to, to.q + 32 * group);
    to.d[group] = scale.back;
    to.first[group] = scale.back * static_cast<float>(sums.first);
    to.second[group] = scale.back * static_cast<float>(sums.second);
}

/// Rows of k activations, a multiple of 256.
inline void quantize_activations(const float* x, int64_t k, ActivationRun* to) {
    for (; k > 0; k -= run_length, x += run_length, to++) {
        const WholeScale scale = scale_of(x, run_length, byte_most);
        for (int group = 0; group < 8; group++) {
            const HalfSums sums = bytes_of_group(x + 32 * group, scale.to, to->q + 32 * group);
            to->sums[group] = static_cast<int16_t>(sums.first);
            to->sums[8 + group] = static_cast<int16_t>(sums.second);
        }
        to->d = scale.back;
    }
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
