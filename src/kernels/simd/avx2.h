// AVX2 with FMA and F16C: 8 floats per vector, 16 registers, tails by masked loads and stores.
#pragma once
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/lanes_x86.h"

namespace linnet {
namespace {

using Real = float;
using Vec = __m256;
constexpr int W = 8;

// The register tile of the matrix product: 6 × 2 vectors of sums, 2 of B, 1 of A: 15 of 16 registers.
constexpr int tile_rows = 6, tile_vectors = 2;
constexpr int64_t block_m = 6 * 32, block_n = 16 * 64, block_k = 384;
constexpr int small_rows = 6, small_vectors = 2;
constexpr int gemv_rows = 2;  // rows of A at a time, in decoding

inline __m256i first(int64_t n) {  // the lanes below n
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline Vec zero() {
    return _mm256_setzero_ps();
}
inline Vec set1(float x) {
    return _mm256_set1_ps(x);
}
inline Vec load(const float* p) {
    return _mm256_loadu_ps(p);
}
inline void store(float* p, Vec v) {
    _mm256_storeu_ps(p, v);
}
inline Vec load_n(const float* p, int64_t n) {
    return n >= W ? load(p) : _mm256_maskload_ps(p, first(n));
}
inline void store_n(float* p, Vec v, int64_t n) {
    if (n >= W) return store(p, v);
    _mm256_maskstore_ps(p, first(n), v);
}

/// a·b + c
inline Vec fma(Vec a, Vec b, Vec c) {
    return _mm256_fmadd_ps(a, b, c);
}
/// c - a·b
inline Vec fnma(Vec a, Vec b, Vec c) {
    return _mm256_fnmadd_ps(a, b, c);
}
// Where an operand is NaN the second one is the result: put the data second to keep its NaN.
inline Vec max(Vec a, Vec b) {
    return _mm256_max_ps(a, b);
}
inline Vec min(Vec a, Vec b) {
    return _mm256_min_ps(a, b);
}
inline Vec sqrt(Vec a) {
    return _mm256_sqrt_ps(a);
}
inline Vec abs(Vec a) {
    return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a);
}
inline Vec round(Vec a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
inline Vec power2(__m256i n) {  // -127 < n < 128
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}
inline Vec scale2(Vec a, Vec n) {  // a · 2^n, n whole, in two steps: 2^n alone may not be a normal number
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    return a * power2(half) * power2(_mm256_sub_epi32(whole, half));
}
/// x > 0 ? a : b
inline Vec if_positive(Vec x, Vec a, Vec b) {
    return _mm256_blendv_ps(b, a, _mm256_cmp_ps(x, zero(), _CMP_GT_OQ));
}
/// Lanes [begin, end) of v, `other` elsewhere.
inline Vec keep(Vec v, int64_t begin, int64_t end, Vec other) {
    __m256i below_end = first(end < 0 ? 0 : end > W ? W : end);
    __m256i below_begin = first(begin < 0 ? 0 : begin > W ? W : begin);
    return _mm256_blendv_ps(other, v, _mm256_castsi256_ps(_mm256_andnot_si256(below_begin, below_end)));
}
inline float sum(Vec v) {
    __m128 x = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_add_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
inline float largest(Vec v) {
    __m128 x = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    x = _mm_max_ps(x, _mm_movehl_ps(x, x));
    return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}

/// 8 sums in double.
struct Wide {
    __m256d low, high;
};
inline Wide wide_zero() {
    return {_mm256_setzero_pd(), _mm256_setzero_pd()};
}
inline __m256d low_half(Vec v) {
    return _mm256_cvtps_pd(_mm256_castps256_ps128(v));
}
inline __m256d high_half(Vec v) {
    return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
}
inline void add_to(Wide& w, Vec v) {
    w.low = _mm256_add_pd(w.low, low_half(v));
    w.high = _mm256_add_pd(w.high, high_half(v));
}
inline void add_squares_to(Wide& w, Vec v) {
    __m256d a = low_half(v), b = high_half(v);
    w.low = _mm256_fmadd_pd(a, a, w.low);
    w.high = _mm256_fmadd_pd(b, b, w.high);
}
inline double sum(const Wide& w) {
    __m256d x = _mm256_add_pd(w.low, w.high);
    __m128d y = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(y, _mm_unpackhi_pd(y, y)));
}

// Random numbers: W words, their products with one of 64 bits each, and what is kept by them.
using Words = uint32_t __attribute__((vector_size(32)));
inline Words multiply_words(Words a, uint32_t by, Words& high) {
    const __m256i x = reinterpret_cast<__m256i>(a), y = _mm256_set1_epi64x(by);
    const __m256i even = _mm256_mul_epu32(x, y), odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), y);
    high = reinterpret_cast<Words>(_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA));
    return reinterpret_cast<Words>(_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA));
}
/// v where the draw of its lane is at least `limit`, else 0.
inline Vec keep_drawn(const uint16_t* draws, uint32_t limit, Vec v) {
    const __m256i drawn = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(draws)));
    const __m256i kept = _mm256_cmpgt_epi32(drawn, _mm256_set1_epi32(static_cast<int32_t>(limit) - 1));
    return _mm256_and_ps(_mm256_castsi256_ps(kept), v);
}

/// Pairs (a0, b0, a1, b1, …) apart, and together again.
inline void load_pairs(const float* p, Vec& a, Vec& b) {
    Vec x = load(p), y = load(p + W);
    Vec low = _mm256_permute2f128_ps(x, y, 0x20), high = _mm256_permute2f128_ps(x, y, 0x31);
    a = _mm256_shuffle_ps(low, high, 0x88);
    b = _mm256_shuffle_ps(low, high, 0xDD);
}
inline void store_pairs(float* p, Vec a, Vec b) {
    Vec low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
    store(p, _mm256_permute2f128_ps(low, high, 0x20));
    store(p + W, _mm256_permute2f128_ps(low, high, 0x31));
}

/// Rows become columns: 24 shuffles for 64 floats.
inline void transpose(Vec (&r)[W]) {
    Vec t[W], u[W];
    for (int i = 0; i < W; i += 2) {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < W; i += 4) {
        u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
        u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
        r[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
}

// Stored types: what they are in memory, and the way to a vector of Real and back.
struct StoredF32 {
    using Element = float;
    static Vec get(const float* p) { return load(p); }
    static Vec get_n(const float* p, int64_t n) { return load_n(p, n); }
    static void put_n(float* p, Vec v, int64_t n) { store_n(p, v, n); }
};
/// 16-bit halves have no masked moves in AVX2: tails go through eight elements on the stack.
struct Halves {
    static __m128i get_n(const uint16_t* p, int64_t n) {
        uint16_t all[W] = {};
        for (int64_t i = 0; i < n; i++) all[i] = p[i];
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(all));
    }
    static void put_n(uint16_t* p, __m128i v, int64_t n) {
        if (n >= W) return _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v);
        uint16_t all[W];
        _mm_storeu_si128(reinterpret_cast<__m128i*>(all), v);
        for (int64_t i = 0; i < n; i++) p[i] = all[i];
    }
};
struct StoredF16 {
    using Element = uint16_t;
    static Vec get(const uint16_t* p) {
        return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    }
    static Vec get_n(const uint16_t* p, int64_t n) { return _mm256_cvtph_ps(Halves::get_n(p, n)); }
    static void put_n(uint16_t* p, Vec v, int64_t n) {
        Halves::put_n(p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), n);
    }
};
struct StoredBF16 {
    using Element = uint16_t;
    static Vec widen(__m128i h) {
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
    }
    static Vec get(const uint16_t* p) { return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
    static Vec get_n(const uint16_t* p, int64_t n) { return widen(Halves::get_n(p, n)); }
    static void put_n(uint16_t* p, Vec v, int64_t n) {
        __m256i x = _mm256_castps_si256(v), high = _mm256_srli_epi32(x, 16);
        __m256i odd = _mm256_and_si256(high, _mm256_set1_epi32(1));
        __m256i rounded =
            _mm256_srli_epi32(_mm256_add_epi32(x, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))), 16);
        __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
        __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
        rounded = _mm256_blendv_epi8(rounded, quiet, nan);
        __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded, rounded), 0x08);
        Halves::put_n(p, _mm256_castsi256_si128(packed), n);
    }
};
using StoredReal = StoredF32;

/// 32 signed bytes as floats.
inline void widen_bytes(Bytes32 q, Vec (&to)[32 / W]) {
    const auto v = reinterpret_cast<__m256i>(q);
    const __m128i half[2] = {_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)};
    for (int i = 0; i < 4; i++) {
        const __m128i eight = i % 2 ? _mm_unpackhi_epi64(half[i / 2], half[i / 2]) : half[i / 2];
        to[i] = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight));
    }
}
// The register tile of products of 16-bit integers: a product and its sum are two instructions, and need a
// register between them, the sixteenth.
constexpr int pair_rows = 6;
/// W sums of products of two 16-bit integers.
using Integers = __m256i;
inline Integers no_integers() {
    return _mm256_setzero_si256();
}
inline Integers load_integers(const float* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline Integers set1_integer(int32_t x) {
    return _mm256_set1_epi32(x);
}
inline Integers add_pairs(Integers sum, Integers a, Integers b) {
    Integers products;  // not the intrinsics: gcc 12 copies each sum around them
    __asm__("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(products) : "x"(a), "x"(b));
    return sum;
}
inline Vec to_real(Integers x) {
    return _mm256_cvtepi32_ps(x);
}

}  // namespace
}  // namespace linnet

#include "kernels/simd/math_float.inl"
