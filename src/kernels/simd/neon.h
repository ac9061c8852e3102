// NEON (Advanced SIMD of AArch64): 4 floats per vector, 32 registers. No masked moves: tails go element by
// element.
#pragma once
#include <arm_neon.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/lanes.h"
#include "kernels/simd/widen_plain.inl"

namespace linnet {
namespace {

using Real = float;
using Vec = float32x4_t;
constexpr int W = 4;

// The register tile of the matrix product: 8 × 3 vectors of sums, 3 of B, 2 of A: 29 of 32 registers.
constexpr int tile_rows = 8, tile_vectors = 3;
constexpr int64_t block_m = 8 * 16, block_n = 12 * 64, block_k = 384;
constexpr int small_rows = 6, small_vectors = 4;
constexpr int gemv_rows = 4;  // rows of A at a time, in decoding

inline Vec zero() {
    return vdupq_n_f32(0);
}
inline Vec set1(float x) {
    return vdupq_n_f32(x);
}
inline Vec load(const float* p) {
    return vld1q_f32(p);
}
inline void store(float* p, Vec v) {
    vst1q_f32(p, v);
}
inline Vec load_n(const float* p, int64_t n) {
    if (n >= W) return load(p);
    Vec v = zero();
    if (n > 0) v = vld1q_lane_f32(p, v, 0);
    if (n > 1) v = vld1q_lane_f32(p + 1, v, 1);
    if (n > 2) v = vld1q_lane_f32(p + 2, v, 2);
    return v;
}
inline void store_n(float* p, Vec v, int64_t n) {
    if (n >= W) return store(p, v);
    if (n > 0) vst1q_lane_f32(p, v, 0);
    if (n > 1) vst1q_lane_f32(p + 1, v, 1);
    if (n > 2) vst1q_lane_f32(p + 2, v, 2);
}

/// a·b + c
inline Vec fma(Vec a, Vec b, Vec c) {
    return vfmaq_f32(c, a, b);
}
/// c - a·b
inline Vec fnma(Vec a, Vec b, Vec c) {
    return vfmsq_f32(c, a, b);
}
inline Vec choose(uint32x4_t mask, Vec a, Vec b) {
    return vbslq_f32(mask, a, b);
}
// Where an operand is NaN the second one is the result, as on x86: put the data second to keep its NaN.
inline Vec max(Vec a, Vec b) {
    return choose(vcgtq_f32(a, b), a, b);
}
inline Vec min(Vec a, Vec b) {
    return choose(vcltq_f32(a, b), a, b);
}
inline Vec sqrt(Vec a) {
    return vsqrtq_f32(a);
}
inline Vec abs(Vec a) {
    return vabsq_f32(a);
}
inline Vec round(Vec a) {
    return vrndnq_f32(a);
}
inline Vec power2(int32x4_t n) {
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}
inline Vec scale2(Vec a, Vec n) {  // a · 2^n, n whole, in two steps: 2^n alone may not be a normal number
    int32x4_t whole = vcvtq_s32_f32(n), half = vshrq_n_s32(whole, 1);
    return a * power2(half) * power2(vsubq_s32(whole, half));
}
/// x > 0 ? a : b
inline Vec if_positive(Vec x, Vec a, Vec b) {
    return choose(vcgtzq_f32(x), a, b);
}
/// Lanes [begin, end) of v, `other` elsewhere.
inline Vec keep(Vec v, int64_t begin, int64_t end, Vec other) {
    const int32_t lanes[W] = {0, 1, 2, 3};
    int32x4_t lane = vld1q_s32(lanes);
    int32_t from = static_cast<int32_t>(begin < 0 ? 0 : begin > W ? W : begin);
    int32_t to = static_cast<int32_t>(end < 0 ? 0 : end > W ? W : end);
    return choose(vandq_u32(vcgeq_s32(lane, vdupq_n_s32(from)), vcltq_s32(lane, vdupq_n_s32(to))), v, other);
}
inline float sum(Vec v) {
    return vaddvq_f32(v);
}
inline float largest(Vec v) {
    return vmaxvq_f32(v);
}

/// 4 sums in double.
struct Wide {
    float64x2_t low, high;
};
inline Wide wide_zero() {
    return {vdupq_n_f64(0), vdupq_n_f64(0)};
}
inline float64x2_t low_half(Vec v) {
    return vcvt_f64_f32(vget_low_f32(v));
}
inline float64x2_t high_half(Vec v) {
    return vcvt_high_f64_f32(v);
}
inline void add_to(Wide& w, Vec v) {
    w.low = vaddq_f64(w.low, low_half(v));
    w.high = vaddq_f64(w.high, high_half(v));
}
inline void add_squares_to(Wide& w, Vec v) {
    float64x2_t a = low_half(v), b = high_half(v);
    w.low = vfmaq_f64(w.low, a, a);
    w.high = vfmaq_f64(w.high, b, b);
}
inline double sum(const Wide& w) {
    return vaddvq_f64(vaddq_f64(w.low, w.high));
}

// Random numbers: W words, their products with one of 64 bits each, and what is kept by them.
using Words = uint32_t __attribute__((vector_size(16)));
inline Words multiply_words(Words a, uint32_t by, Words& high) {
    const auto x = reinterpret_cast<uint32x4_t>(a);
    const uint32x4_t low = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(x), by)),
                     rest = vreinterpretq_u32_u64(vmull_n_u32(vget_high_u32(x), by));
    high = reinterpret_cast<Words>(vuzp2q_u32(low, rest));
    return reinterpret_cast<Words>(vuzp1q_u32(low, rest));
}
/// v where the draw of its lane is at least `limit`, else 0.
inline Vec keep_drawn(const uint16_t* draws, uint32_t limit, Vec v) {
    const uint32x4_t kept = vcgeq_u32(vmovl_u16(vld1_u16(draws)), vdupq_n_u32(limit));
    return vreinterpretq_f32_u32(vandq_u32(kept, vreinterpretq_u32_f32(v)));
}

/// Pairs (a0, b0, a1, b1, …) apart, and together again.
inline void load_pairs(const float* p, Vec& a, Vec& b) {
    float32x4x2_t x = vld2q_f32(p);
    a = x.val[0], b = x.val[1];
}
inline void store_pairs(float* p, Vec a, Vec b) {
    vst2q_f32(p, {{a, b}});
}

/// Rows become columns.
inline void transpose(Vec (&r)[W]) {
    float64x2_t a = vreinterpretq_f64_f32(vtrn1q_f32(r[0], r[1])),
                b = vreinterpretq_f64_f32(vtrn2q_f32(r[0], r[1]));
    float64x2_t c = vreinterpretq_f64_f32(vtrn1q_f32(r[2], r[3])),
                d = vreinterpretq_f64_f32(vtrn2q_f32(r[2], r[3]));
    r[0] = vreinterpretq_f32_f64(vtrn1q_f64(a, c));
    r[1] = vreinterpretq_f32_f64(vtrn1q_f64(b, d));
    r[2] = vreinterpretq_f32_f64(vtrn2q_f64(a, c));
    r[3] = vreinterpretq_f32_f64(vtrn2q_f64(b, d));
}

// Stored types: what they are in memory, and the way to a vector of Real and back.
struct StoredF32 {
    using Element = float;
    static Vec get(const float* p) { return load(p); }
    static Vec get_n(const float* p, int64_t n) { return load_n(p, n); }
    static void put_n(float* p, Vec v, int64_t n) { store_n(p, v, n); }
};
/// Tails of 16-bit halves go through four elements on the stack.
struct Halves {
    static uint16x4_t get_n(const uint16_t* p, int64_t n) {
        uint16_t all[W] = {};
        for (int64_t i = 0; i < n; i++) all[i] = p[i];
        return vld1_u16(all);
    }
    static void put_n(uint16_t* p, uint16x4_t v, int64_t n) {
        if (n >= W) return vst1_u16(p, v);
        uint16_t all[W];
        vst1_u16(all, v);
        for (int64_t i = 0; i < n; i++) p[i] = all[i];
    }
};
struct StoredF16 {
    using Element = uint16_t;
    static Vec widen(uint16x4_t h) { return vcvt_f32_f16(vreinterpret_f16_u16(h)); }
    static Vec get(const uint16_t* p) { return widen(vld1_u16(p)); }
    static Vec get_n(const uint16_t* p, int64_t n) { return widen(Halves::get_n(p, n)); }
    static void put_n(uint16_t* p, Vec v, int64_t n) {
        Halves::put_n(p, vreinterpret_u16_f16(vcvt_f16_f32(v)), n);
    }
};
struct StoredBF16 {
    using Element = uint16_t;
    static Vec widen(uint16x4_t h) { return vreinterpretq_f32_u32(vshll_n_u16(h, 16)); }
    static Vec get(const uint16_t* p) { return widen(vld1_u16(p)); }
    static Vec get_n(const uint16_t* p, int64_t n) { return widen(Halves::get_n(p, n)); }
    static void put_n(uint16_t* p, Vec v, int64_t n) {
        uint32x4_t x = vreinterpretq_u32_f32(v), high = vshrq_n_u32(x, 16);
        uint32x4_t odd = vandq_u32(high, vdupq_n_u32(1));
        uint32x4_t rounded = vshrq_n_u32(vaddq_u32(x, vaddq_u32(odd, vdupq_n_u32(0x7FFF))), 16);
        uint32x4_t whole = vceqq_f32(v, v);
        Halves::put_n(p, vmovn_u32(vbslq_u32(whole, rounded, vorrq_u32(high, vdupq_n_u32(0x40)))), n);
    }
};
using StoredReal = StoredF32;

/// One half as a float, and back.
inline float one_half(uint16_t h) {
    return static_cast<float>(__builtin_bit_cast(__fp16, h));
}
inline uint16_t to_half(float x) {  // to nearest even
    return __builtin_bit_cast(uint16_t, static_cast<__fp16>(x));
}
/// The two halves of 32 bytes, and together again.
struct Halves32 {
    uint8x16_t half[2];
};
/// 32 signed bytes as floats.
inline void widen_bytes(Bytes32 q, Vec (&to)[32 / W]) {
    const auto both = __builtin_bit_cast(Halves32, q);
    for (int i = 0; i < 2; i++) {
        const int8x16_t bytes = vreinterpretq_s8_u8(both.half[i]);
        const int16x8_t wide[2] = {vmovl_s8(vget_low_s8(bytes)), vmovl_high_s8(bytes)};
        for (int j = 0; j < 2; j++) {
            to[4 * i + 2 * j] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(wide[j])));
            to[4 * i + 2 * j + 1] = vcvtq_f32_s32(vmovl_high_s16(wide[j]));
        }
    }
}
/// 16 bytes of memory, twice.
template <class V>
inline V load_twice(const void* p) {
    uint8x16_t v = vld1q_u8(static_cast<const uint8_t*>(p));
    return __builtin_bit_cast(V, Halves32{v, v});
}
/// Eight halves as floats.
inline Floats8 widen_halves(Halves8 v) {
    auto all = reinterpret_cast<float16x8_t>(v);
    float32x4_t both[2] = {vcvt_f32_f16(vget_low_f16(all)), vcvt_high_f32_f16(all)};
    return __builtin_bit_cast(Floats8, both);
}
/// table[places[i]], places below 16.
inline Bytes32 look_up(Bytes16 table, Bytes32 places) {
    auto p = __builtin_bit_cast(Halves32, places);
    auto t = reinterpret_cast<uint8x16_t>(table);
    return __builtin_bit_cast(Bytes32, Halves32{vqtbl1q_u8(t, p.half[0]), vqtbl1q_u8(t, p.half[1])});
}
/// Sums of four neighbouring products: lane l is that of bytes 4l … 4l + 3; all are signed.
inline Ints8 dot_signed(Bytes32 codes, Bytes32 a) {
    auto both_x = __builtin_bit_cast(Halves32, codes), both_y = __builtin_bit_cast(Halves32, a);
    int32x4_t sums[2];
    for (int i = 0; i < 2; i++) {
        auto x = vreinterpretq_s8_u8(both_x.half[i]), y = vreinterpretq_s8_u8(both_y.half[i]);
#if defined(__ARM_FEATURE_DOTPROD)
        sums[i] = vdotq_s32(vdupq_n_s32(0), x, y);
#else
        int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(x), vget_low_s8(y)));
        sums[i] = vpaddq_s32(low, vpaddlq_s16(vmull_high_s8(x, y)));
#endif
    }
    return __builtin_bit_cast(Ints8, sums);
}

}  // namespace
}  // namespace linnet

#include "kernels/simd/dot_plain.inl"
#include "kernels/simd/math_float.inl"
