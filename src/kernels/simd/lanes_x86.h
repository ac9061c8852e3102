// What AVX2 and AVX-512 share: single halves, and vectors of the fixed lengths of lanes.h, which both keep in
// 256 bits.
#pragma once
#include <immintrin.h>

#include "kernels/simd/lanes.h"

namespace linnet {
namespace {

/// One half as a float, and back.
inline float one_half(uint16_t h) {
    return _cvtsh_ss(h);
}
inline uint16_t to_half(float x) {  // to nearest even
    return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT);
}
/// 16 bytes of memory, twice.
template <class V>
inline V load_twice(const void* p) {
    return reinterpret_cast<V>(_mm256_broadcastsi128_si256(_mm_loadu_si128(static_cast<const __m128i*>(p))));
}
// The compilers' own conversions of short vectors go by halves.
inline Shorts8 widen_bytes8(uint64_t bytes) {
    return reinterpret_cast<Shorts8>(_mm_cvtepu8_epi16(_mm_cvtsi64_si128(static_cast<long long>(bytes))));
}
inline Ints8 widen_shorts(Shorts8 v) {
    return reinterpret_cast<Ints8>(_mm256_cvtepi16_epi32(reinterpret_cast<__m128i>(v)));
}
/// Eight halves as floats.
inline Floats8 widen_halves(Halves8 v) {
    return _mm256_cvtph_ps(reinterpret_cast<__m128i>(v));
}
/// table[places[i]], places below 16.
inline Bytes32 look_up(Bytes16 table, Bytes32 places) {
    __m256i both = _mm256_broadcastsi128_si256(reinterpret_cast<__m128i>(table));
    return reinterpret_cast<Bytes32>(_mm256_shuffle_epi8(both, reinterpret_cast<__m256i>(places)));
}
/// sums + four neighbouring products: lane l has those of bytes 4l … 4l + 3. a: signed, |a| ≤ 127; codes
/// without a sign, at most 128 (in add_signed: with one), so that two products fit into 16 bits.
inline Ints8 add_codes(Ints8 sums, Bytes32 codes, Bytes32 a) {
    auto s = reinterpret_cast<__m256i>(sums), x = reinterpret_cast<__m256i>(codes),
         y = reinterpret_cast<__m256i>(a);
#if defined(__AVX512VNNI__)
    return reinterpret_cast<Ints8>(_mm256_dpbusd_epi32(s, x, y));
#elif defined(__AVXVNNI__)
    return reinterpret_cast<Ints8>(_mm256_dpbusd_avx_epi32(s, x, y));
#else
    return reinterpret_cast<Ints8>(
        _mm256_add_epi32(s, _mm256_madd_epi16(_mm256_maddubs_epi16(x, y), _mm256_set1_epi16(1))));
#endif
}
/// sums + the products of four vectors; codes below 32: then pairs of all four fit into 16 bits.
inline Ints8 add_small_codes(Ints8 sums, const Bytes32 (&codes)[4], const Bytes32 (&a)[4]) {
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
    for (int i = 0; i < 4; i++) sums = add_codes(sums, codes[i], a[i]);
    return sums;
#else
    auto pairs = [&](int i) {
        return _mm256_maddubs_epi16(reinterpret_cast<__m256i>(codes[i]), reinterpret_cast<__m256i>(a[i]));
    };
    const __m256i all =
        _mm256_add_epi16(_mm256_add_epi16(pairs(0), pairs(1)), _mm256_add_epi16(pairs(2), pairs(3)));
    return reinterpret_cast<Ints8>(
        _mm256_add_epi32(reinterpret_cast<__m256i>(sums), _mm256_madd_epi16(all, _mm256_set1_epi16(1))));
#endif
}
/// sums + products as above, those of lane l times the whole number in the low half of by's lane l, which
/// stands in its high half too.
inline Ints8 add_scaled_codes(Ints8 sums, Bytes32 codes, Bytes32 a, Ints8 by) {
    __m256i pairs = _mm256_maddubs_epi16(reinterpret_cast<__m256i>(codes), reinterpret_cast<__m256i>(a));
    auto s = reinterpret_cast<__m256i>(sums), scale = reinterpret_cast<__m256i>(by);
#if defined(__AVX512VNNI__)
    return reinterpret_cast<Ints8>(_mm256_dpwssd_epi32(s, pairs, scale));
#elif defined(__AVXVNNI__)
    return reinterpret_cast<Ints8>(_mm256_dpwssd_avx_epi32(s, pairs, scale));
#else
    return reinterpret_cast<Ints8>(_mm256_add_epi32(s, _mm256_madd_epi16(pairs, scale)));
#endif
}
/// Sums of two neighbouring products.
inline Ints8 dot_pairs(Shorts16 a, Shorts16 b) {
    return reinterpret_cast<Ints8>(
        _mm256_madd_epi16(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
/// Moves the codes' signs to a, which leaves the products as they are: the instructions want codes without
/// one.
inline void move_signs(Bytes32& codes, Bytes32& a) {
    auto x = reinterpret_cast<__m256i>(codes), y = reinterpret_cast<__m256i>(a);
    codes = reinterpret_cast<Bytes32>(_mm256_abs_epi8(x));
    a = reinterpret_cast<Bytes32>(_mm256_sign_epi8(y, x));
}
inline Ints8 add_signed(Ints8 sums, Bytes32 codes, Bytes32 a) {
    move_signs(codes, a);
    return add_codes(sums, codes, a);
}

}  // namespace
}  // namespace linnet
