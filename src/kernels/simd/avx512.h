// AVX-512 (F, BW, DQ, VL): 16 floats per vector, 32 registers, every tail masked.
#pragma once
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/simd/lanes_x86.h"

// GCC 12's own <immintrin.h> passes undefined vectors to masked built-ins and warns about it (GCC bug
// 105593).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace linnet {
namespace {

using Real = float;
using Vec = __m512;
constexpr int W = 16;

// The register tile of the matrix product: 14 × 2 vectors of sums, 2 of B, 1 of A: 31 of 32 registers.
constexpr int tile_rows = 14, tile_vectors = 2;
// Cache blocks: B's panel (block_k × 32 floats) shares L1 with A's, A's block lies in L2, B's in L2 and L3.
constexpr int64_t block_m = 14 * 10, block_n = 32 * 32, block_k = 768;
// The register tile of attention's small products.
constexpr int small_rows = 6, small_vectors = 4;
constexpr int gemv_rows = 4;  // rows of A at a time, in decoding

/// 0 <= n <= 16
inline __mmask16 first(int64_t n) {
    return static_cast<__mmask16>((1u << n) - 1);
}

inline Vec zero() {
    return _mm512_setzero_ps();
}
inline Vec set1(float x) {
    return _mm512_set1_ps(x);
}
inline Vec load(const float* p) {
    return _mm512_loadu_ps(p);
}
inline Vec load_n(const float* p, int64_t n) {
    return _mm512_maskz_loadu_ps(first(n), p);
}
inline void store(float* p, Vec v) {
    _mm512_storeu_ps(p, v);
}
inline void store_n(float* p, Vec v, int64_t n) {
    _mm512_mask_storeu_ps(p, first(n), v);
}

/// a·b + c
inline Vec fma(Vec a, Vec b, Vec c) {
    return _mm512_fmadd_ps(a, b, c);
}
/// acc[j] += *a · b[j], in this order: compilers put the multiplications of several rows together, or let
/// them broadcast by themselves, which is slower (MEASUREMENTS.md).
inline void fma_row(const float* a, const Vec (&b)[2], Vec (&acc)[2]) {
    Vec all;
    __asm__("vbroadcastss %5, %2\n\tvfmadd231ps %2, %3, %0\n\tvfmadd231ps %2, %4, %1"
            : "+&v"(acc[0]), "+v"(acc[1]), "=&v"(all)
            : "v"(b[0]), "v"(b[1]), "m"(*a));
}
/// c - a·b
inline Vec fnma(Vec a, Vec b, Vec c) {
    return _mm512_fnmadd_ps(a, b, c);
}
// Where an operand is NaN the second one is the result: put the data second to keep its NaN.
inline Vec max(Vec a, Vec b) {
    return _mm512_max_ps(a, b);
}
inline Vec min(Vec a, Vec b) {
    return _mm512_min_ps(a, b);
}
inline Vec sqrt(Vec a) {
    return _mm512_sqrt_ps(a);
}
inline Vec abs(Vec a) {
    return _mm512_abs_ps(a);
}
inline Vec round(Vec a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
/// a · 2^n, n whole
inline Vec scale2(Vec a, Vec n) {
    return _mm512_scalef_ps(a, n);
}
/// x > 0 ? a : b
inline Vec if_positive(Vec x, Vec a, Vec b) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, zero(), _CMP_GT_OQ), b, a);
}
/// Lanes [begin, end) of v, `other` elsewhere.
inline Vec keep(Vec v, int64_t begin, int64_t end, Vec other) {
    __mmask16 m = static_cast<__mmask16>(first(end < 0   ? 0
                                               : end > W ? W
                                                         : end) &
                                         ~first(begin < 0   ? 0
                                                : begin > W ? W
                                                            : begin));
    return _mm512_mask_blend_ps(m, other, v);
}
inline float sum(Vec v) {
    return _mm512_reduce_add_ps(v);
}
inline float largest(Vec v) {
    return _mm512_reduce_max_ps(v);
}

/// 16 sums in double.
struct Wide {
    __m512d low, high;
};
inline Wide wide_zero() {
    return {_mm512_setzero_pd(), _mm512_setzero_pd()};
}
inline __m512d low_half(Vec v) {
    return _mm512_cvtps_pd(_mm512_castps512_ps256(v));
}
inline __m512d high_half(Vec v) {
    return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
}
inline void add_to(Wide& w, Vec v) {
    w.low = _mm512_add_pd(w.low, low_half(v));
    w.high = _mm512_add_pd(w.high, high_half(v));
}
inline void add_squares_to(Wide& w, Vec v) {
    __m512d a = low_half(v), b = high_half(v);
    w.low = _mm512_fmadd_pd(a, a, w.low);
    w.high = _mm512_fmadd_pd(b, b, w.high);
}
inline double sum(const Wide& w) {
    return _mm512_reduce_add_pd(_mm512_add_pd(w.low, w.high));
}

// Random numbers: W words, their products with one of 64 bits each, and what is kept by them.
using Words = uint32_t __attribute__((vector_size(64)));
inline Words multiply_words(Words a, uint32_t by, Words& high) {
    const __m512i x = reinterpret_cast<__m512i>(a), y = _mm512_set1_epi64(by);
    const __m512i even = _mm512_mul_epu32(x, y), odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), y);
    high = reinterpret_cast<Words>(_mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd));
    return reinterpret_cast<Words>(_mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32)));
}
/// v where the draw of its lane is at least `limit`, else 0.
inline Vec keep_drawn(const uint16_t* draws, uint32_t limit, Vec v) {
    const __m512i drawn = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(draws)));
    return _mm512_maskz_mov_ps(_mm512_cmpge_epu32_mask(drawn, _mm512_set1_epi32(static_cast<int32_t>(limit))),
                               v);
}

/// Pairs (a0, b0, a1, b1, …) apart, and together again.
inline void load_pairs(const float* p, Vec& a, Vec& b) {
    Vec x = load(p), y = load(p + W);
    __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    a = _mm512_permutex2var_ps(x, even, y);
    b = _mm512_permutex2var_ps(x, _mm512_add_epi32(even, _mm512_set1_epi32(1)), y);
}
inline void store_pairs(float* p, Vec a, Vec b) {
    __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    store(p, _mm512_permutex2var_ps(a, low, b));
    store(p + W, _mm512_permutex2var_ps(a, _mm512_add_epi32(low, _mm512_set1_epi32(8)), b));
}

/// Rows become columns: 64 shuffles for 256 floats.
inline void transpose(Vec (&r)[W]) {
    Vec t[W];
    for (int i = 0; i < W; i += 2) {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    for (int i = 0; i < W; i += 4) {
        for (int j = 0; j < 2; j++) {
            __m512d x = _mm512_castps_pd(t[i + j]), y = _mm512_castps_pd(t[i + j + 2]);
            r[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(x, y));
            r[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(x, y));
        }
    }
    for (int i = 0; i < 4; i++) {  // r[4g + i] holds column 4l + i of rows 4g … 4g+3 in its 128-bit lane l
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xDD);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xDD);
    }
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xDD);
        r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xDD);
    }
}

// Stored types: what they are in memory, and the way to a vector of Real and back.
struct StoredF32 {
    using Element = float;
    static Vec get(const float* p) { return load(p); }
    static Vec get_n(const float* p, int64_t n) { return load_n(p, n); }
    static void put_n(float* p, Vec v, int64_t n) { store_n(p, v, n); }
};
struct StoredF16 {
    using Element = uint16_t;
    static Vec get(const uint16_t* p) {
        return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static Vec get_n(const uint16_t* p, int64_t n) {
        return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first(n), p));
    }
    static void put_n(uint16_t* p, Vec v, int64_t n) {
        _mm256_mask_storeu_epi16(p, first(n),
                                 _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
};
struct StoredBF16 {
    using Element = uint16_t;
    static Vec widen(__m256i h) {
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
    }
    static Vec get(const uint16_t* p) {
        return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    }
    static Vec get_n(const uint16_t* p, int64_t n) { return widen(_mm256_maskz_loadu_epi16(first(n), p)); }
    static __m256i narrow(Vec v) {
        __m512i x = _mm512_castps_si512(v), high = _mm512_srli_epi32(x, 16);
        __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
        __m512i rounded =
            _mm512_srli_epi32(_mm512_add_epi32(x, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
        __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
        rounded = _mm512_mask_or_epi32(rounded, nan, high, _mm512_set1_epi32(0x40));
        return _mm512_cvtepi32_epi16(rounded);
    }
    static void put_n(uint16_t* p, Vec v, int64_t n) { _mm256_mask_storeu_epi16(p, first(n), narrow(v)); }
    /// 2W numbers.
    static void put_two(uint16_t* p, Vec a, Vec b) {
        _mm512_storeu_si512(p, _mm512_inserti64x4(_mm512_castsi256_si512(narrow(a)), narrow(b), 1));
    }
};
using StoredReal = StoredF32;

#if defined(__AVX512BF16__)
/// 2W numbers, those of a before those of b, as W words of two bf16 (those below the normal ones as 0), and
/// in `low` what that leaves of them.
template <bool split>
inline Vec bf16_words(Vec a, Vec b, Vec& low) {
    auto words = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a));
    if constexpr (split) {
        Vec first = StoredBF16::widen(_mm512_castsi512_si256(words)),
            second = StoredBF16::widen(_mm512_extracti64x4_epi64(words, 1));
        low = reinterpret_cast<Vec>(_mm512_cvtne2ps_pbh(b - second, a - first));
    }
    return _mm512_castsi512_ps(words);
}
/// The same of 2W that are bf16 already.
inline Vec stored_words(const uint16_t* x) {
    return _mm512_castsi512_ps(_mm512_loadu_si512(x));
}
/// W bf16 and W others behind them as W words of one of each.
inline __m512i interleaved(__m512i halves) {
    const __m512i word =
        _mm512_setr_epi32(0x100000, 0x110001, 0x120002, 0x130003, 0x140004, 0x150005, 0x160006, 0x170007,
                          0x180008, 0x190009, 0x1A000A, 0x1B000B, 0x1C000C, 0x1D000D, 0x1E000E, 0x1F000F);
    return _mm512_permutexvar_epi16(word, halves);
}
/// W words of one bf16 of `first` and one of `second` each.
template <bool split>
inline Vec bf16_pairs(Vec first, Vec second, Vec& low) {
    auto pairs = [](Vec a, Vec b) {
        return interleaved(reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(b, a)));
    };
    __m512i words = pairs(first, second);
    if constexpr (split) {
        Vec a = _mm512_castsi512_ps(_mm512_slli_epi32(words, 16)),
            b = _mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(~0xFFFF)));
        low = _mm512_castsi512_ps(pairs(first - a, second - b));
    }
    return _mm512_castsi512_ps(words);
}
/// The same of n that are bf16 already; second null: zeros.
inline Vec stored_pairs(const uint16_t* first, const uint16_t* second, int64_t n) {
    auto get = [n](const uint16_t* p) {
        return n == W ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
                      : _mm256_maskz_loadu_epi16(linnet::first(n), p);
    };
    const __m512i halves = _mm512_castsi256_si512(get(first));
    return _mm512_castsi512_ps(
        interleaved(_mm512_inserti64x4(halves, second ? get(second) : _mm256_setzero_si256(), 1)));
}
#endif

/// 32 signed bytes as floats.
inline void widen_bytes(Bytes32 q, Vec (&to)[32 / W]) {
    const auto v = reinterpret_cast<__m256i>(q);
    to[0] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(v)));
    to[1] = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(v, 1)));
}
// The register tile of products of 16-bit integers: a product and its sum are two instructions, and need a
// register between them.
constexpr int pair_rows = 12;
/// W sums of products of two 16-bit integers.
using Integers = __m512i;
inline Integers no_integers() {
    return _mm512_setzero_si512();
}
inline Integers load_integers(const float* p) {
    return _mm512_loadu_si512(p);
}
inline Integers set1_integer(int32_t x) {
    return _mm512_set1_epi32(x);
}
inline Integers add_pairs(Integers sum, Integers a, Integers b) {
    return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b));
}
/// 2 · W numbers, rounded, as W pairs of 16-bit integers.
inline Vec short_words(Vec a, Vec b) {
    const __m512i both = _mm512_packs_epi32(_mm512_cvtps_epi32(a), _mm512_cvtps_epi32(b));
    return _mm512_castsi512_ps(_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), both));
}
inline Vec to_real(Integers x) {
    return _mm512_cvtepi32_ps(x);
}

}  // namespace
}  // namespace linnet

#include "kernels/simd/math_float.inl"
