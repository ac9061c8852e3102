// Vectors of 64 bytes beside those of lanes.h, where AVX-512 multiplies bytes (VNNI): two groups of weights
// at a time (blocks/row_lanes.inl).
#pragma once
#include "kernels/simd/lanes_x86.h"

#define LINNET_WIDE_BYTES

namespace linnet {
namespace {

using Bytes64 = unsigned char __attribute__((vector_size(64)));
using Ints16 = int32_t __attribute__((vector_size(64)));
using Floats16 = float __attribute__((vector_size(64)));

inline Bytes64 join(Bytes32 low, Bytes32 high) {
    return reinterpret_cast<Bytes64>(_mm512_inserti64x4(
        _mm512_castsi256_si512(reinterpret_cast<__m256i>(low)), reinterpret_cast<__m256i>(high), 1));
}
inline Ints8 lower_group(Ints16 v) {
    return reinterpret_cast<Ints8>(_mm512_castsi512_si256(reinterpret_cast<__m512i>(v)));
}
inline Ints8 upper_group(Ints16 v) {
    return reinterpret_cast<Ints8>(_mm512_extracti64x4_epi64(reinterpret_cast<__m512i>(v), 1));
}
inline Floats16 join(Floats8 low, Floats8 high) {
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
/// Of the fours of two vectors: the first and third of both, then the second and fourth added to them.
template <class V>
inline V sums_of_neighbours(V a, V b) {
    auto x = reinterpret_cast<__m512i>(a), y = reinterpret_cast<__m512i>(b);
    return reinterpret_cast<V>(_mm512_shuffle_i32x4(x, y, 0x88)) +
           reinterpret_cast<V>(_mm512_shuffle_i32x4(x, y, 0xDD));
}
/// In each four: sums of neighbours of a's four, then of b's. They must fit into 16 bits.
inline Ints16 sums_of_small_twos(Ints16 a, Ints16 b) {
    const __m512i both = _mm512_packs_epi32(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b));
    return reinterpret_cast<Ints16>(_mm512_madd_epi16(both, _mm512_set1_epi16(1)));
}
/// v[i] in the halves of four words, v[8 + i] in four, then v[i + 1] and v[8 + i + 1] likewise.
template <int i>
inline Ints16 spread_words_of_two(Shorts16 v) {
    constexpr int32_t twice = 0x10001;
    constexpr int32_t a = i * twice, b = (8 + i) * twice, c = (i + 1) * twice, d = (9 + i) * twice;
    const __m512i places = _mm512_setr_epi32(a, a, a, a, b, b, b, b, c, c, c, c, d, d, d, d);
    return reinterpret_cast<Ints16>(
        _mm512_permutexvar_epi16(places, _mm512_castsi256_si512(reinterpret_cast<__m256i>(v))));
}

/// The same 32 bytes, twice; 16 bytes twice, then 16 others twice.
inline Bytes64 twice(const void* p) {
    return reinterpret_cast<Bytes64>(
        _mm512_broadcast_i64x4(_mm256_loadu_si256(static_cast<const __m256i*>(p))));
}
inline Bytes64 twice(const void* first, const void* second) {
    auto at = [](const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); };
    return reinterpret_cast<Bytes64>(
        _mm512_mask_broadcast_i64x2(_mm512_broadcast_i64x2(at(first)), 0xF0, at(second)));
}
/// In words of 64 bits of a group's lower half, of its upper half, then of the other group's.
template <int a, int b, int c, int d>
inline Bytes64 shifted_right(Bytes64 v) {
    return reinterpret_cast<Bytes64>(
        _mm512_srlv_epi64(reinterpret_cast<__m512i>(v), _mm512_setr_epi64(a, a, b, b, c, c, d, d)));
}
/// Rotated by `first` in the first group and by `second` in the other one; negative numbers: to the right.
template <int first, int second>
inline Bytes64 rotated_left(Bytes64 v) {
    constexpr int a = first & 63, b = second & 63;
    return reinterpret_cast<Bytes64>(
        _mm512_rolv_epi64(reinterpret_cast<__m512i>(v), _mm512_setr_epi64(a, a, a, a, b, b, b, b)));
}
inline Bytes64 and_bytes(Bytes64 v, int mask) {
    return reinterpret_cast<Bytes64>(
        _mm512_and_si512(reinterpret_cast<__m512i>(v), _mm512_set1_epi8(static_cast<char>(mask))));
}

/// Whether eight numbers of 16 bits, `stride` bytes apart, lie in the first 128 or 256 of 8 · stride bytes.
template <int64_t stride>
constexpr bool picks_shorts = (7 * stride + 2 <= 128 && 8 * stride >= 128) ||
                              (stride > 18 && 7 * stride + 2 <= 256 && 8 * stride >= 256);
/// Which of the eight lie behind the first 128 bytes.
template <int64_t stride>
constexpr int behind_128 = 256 - (1 << (127 / stride + 1));
/// Them, by one shuffle of two vectors, or by two: inserted one by one they were a quarter of q4_0's time.
template <int64_t stride>
inline Halves8 pick_shorts(const char* p) {
    static_assert(stride % 2 == 0 && picks_shorts<stride>);
    auto at = [p](int i) { return _mm512_loadu_si512(p + 64 * i); };
    constexpr auto place = [](int64_t i) { return static_cast<short>(i * stride / 2 % 64); };
    const __m512i places = _mm512_castsi128_si512(
        _mm_setr_epi16(place(0), place(1), place(2), place(3), place(4), place(5), place(6), place(7)));
    const __m128i low = _mm512_castsi512_si128(_mm512_permutex2var_epi16(at(0), places, at(1)));
    if constexpr (8 * stride < 256) return reinterpret_cast<Halves8>(low);
    const __m128i high = _mm512_castsi512_si128(_mm512_permutex2var_epi16(at(2), places, at(3)));
    return reinterpret_cast<Halves8>(_mm_mask_blend_epi16(behind_128<stride>, low, high));
}

/// Those at a, then those at b, as floats: as words of 32 bits, of which shuffles take a third of the time.
template <int64_t stride>
inline Floats16 pick_halves(const char* a, const char* b) {
    static_assert(stride % 2 == 0 && picks_shorts<stride>);
    constexpr auto word = [](int64_t i) { return static_cast<int>(i * stride / 4 % 32); };
    constexpr auto shift = [](int64_t i) { return static_cast<int>(i * stride % 4 * 8); };
    const __m512i places = _mm512_broadcast_i32x8(
        _mm256_setr_epi32(word(0), word(1), word(2), word(3), word(4), word(5), word(6), word(7)));
    auto words = [&](const char* p) {
        return _mm512_permutex2var_epi32(_mm512_loadu_si512(p), places, _mm512_loadu_si512(p + 64));
    };
    __m512i all = _mm512_mask_mov_epi32(words(a), 0xFF00, words(b));
    if constexpr (8 * stride >= 256) {
        constexpr int behind = behind_128<stride>;
        all = _mm512_mask_mov_epi32(all, behind, words(a + 128));
        all = _mm512_mask_mov_epi32(all, behind << 8, words(b + 128));
    }
    all = _mm512_srlv_epi32(
        all, _mm512_broadcast_i32x8(_mm256_setr_epi32(shift(0), shift(1), shift(2), shift(3), shift(4),
                                                      shift(5), shift(6), shift(7))));
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(all));
}

// The products of lanes_x86.h, of two groups.
inline Ints16 add_dots(Ints16 sums, Bytes64 codes, Bytes64 a) {
    return reinterpret_cast<Ints16>(_mm512_dpbusd_epi32(
        reinterpret_cast<__m512i>(sums), reinterpret_cast<__m512i>(codes), reinterpret_cast<__m512i>(a)));
}
inline Ints16 add_scaled_codes(Ints16 sums, Bytes64 codes, Bytes64 a, Ints16 by) {
    const __m512i pairs =
        _mm512_maddubs_epi16(reinterpret_cast<__m512i>(codes), reinterpret_cast<__m512i>(a));
    return reinterpret_cast<Ints16>(
        _mm512_dpwssd_epi32(reinterpret_cast<__m512i>(sums), pairs, reinterpret_cast<__m512i>(by)));
}
inline void move_signs(Bytes64& codes, Bytes64& a) {
    auto x = reinterpret_cast<__m512i>(codes), y = reinterpret_cast<__m512i>(a);
    codes = reinterpret_cast<Bytes64>(_mm512_abs_epi8(x));
    a = reinterpret_cast<Bytes64>(_mm512_mask_sub_epi8(y, _mm512_movepi8_mask(x), _mm512_setzero_si512(), y));
}
inline Ints16 add_scaled_signed(Ints16 sums, Bytes64 codes, Bytes64 a, Ints16 by) {
    move_signs(codes, a);
    return add_scaled_codes(sums, codes, a, by);
}

}  // namespace
}  // namespace linnet
