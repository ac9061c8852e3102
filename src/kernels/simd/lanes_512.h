// Vectors of 64 bytes beside those of lanes.h, where AVX-512 multiplies bytes (VNNI): the codes of four
// halves of groups at a time (blocks/row_lanes.inl), or a column in each lane (blocks/run_columns.inl).
#pragma once
#include "kernels/simd/lanes_x86.h"

#define LINNET_WIDE_BYTES

namespace linnet {
namespace {

using Bytes64 = unsigned char __attribute__((vector_size(64)));
using Ints16 = int32_t __attribute__((vector_size(64)));
using Floats16 = float __attribute__((vector_size(64)));

using Longs8 = uint64_t __attribute__((vector_size(64)));
inline Longs8 longs_of(Bytes64 v) {
    return reinterpret_cast<Longs8>(v);
}
inline Bytes64 join(Bytes32 low, Bytes32 high) {
    return reinterpret_cast<Bytes64>(_mm512_inserti64x4(
        _mm512_castsi256_si512(reinterpret_cast<__m256i>(low)), reinterpret_cast<__m256i>(high), 1));
}
inline Ints8 lower_half(Ints16 v) {
    return reinterpret_cast<Ints8>(_mm512_castsi512_si256(reinterpret_cast<__m512i>(v)));
}
inline Ints8 upper_half(Ints16 v) {
    return reinterpret_cast<Ints8>(_mm512_extracti64x4_epi64(reinterpret_cast<__m512i>(v), 1));
}
inline Floats8 lower_half(Floats16 v) {
    return reinterpret_cast<Floats8>(lower_half(reinterpret_cast<Ints16>(v)));
}
inline Floats8 upper_half(Floats16 v) {
    return reinterpret_cast<Floats8>(upper_half(reinterpret_cast<Ints16>(v)));
}
/// v, then zeros.
inline Ints16 widened(Ints8 v) {
    return reinterpret_cast<Ints16>(_mm512_zextsi256_si512(reinterpret_cast<__m256i>(v)));
}
/// v[0], v[4], v[1], v[5], …, each twice.
inline Floats16 spread_groups(Floats8 v) {
    const __m512i places = _mm512_setr_epi32(0, 0, 4, 4, 1, 1, 5, 5, 2, 2, 6, 6, 3, 3, 7, 7);
    return reinterpret_cast<Floats16>(
        _mm512_permutexvar_ps(places, _mm512_castps256_ps512(reinterpret_cast<__m256>(v))));
}

/// 16 bytes at each of four places.
inline Bytes64 join(const char* a, const char* b, const char* c, const char* d) {
    auto at = [](const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); };
    return join(reinterpret_cast<Bytes32>(_mm256_inserti128_si256(_mm256_castsi128_si256(at(a)), at(b), 1)),
                reinterpret_cast<Bytes32>(_mm256_inserti128_si256(_mm256_castsi128_si256(at(c)), at(d), 1)));
}
/// 16 bytes, four times, `stride` bytes apart; the second argument chooses the width.
template <int64_t stride>
inline Bytes64 gather_16(const void* p, Bytes64*) {
    auto at = [p](int64_t i) {
        return reinterpret_cast<const __m128i*>(static_cast<const char*>(p) + i * stride);
    };
    if constexpr (stride == 16) return reinterpret_cast<Bytes64>(_mm512_loadu_si512(p));
    auto two = [&](int64_t i) {
        return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(at(i))),
                                       _mm_loadu_si128(at(i + 1)), 1);
    };
    return join(reinterpret_cast<Bytes32>(two(0)), reinterpret_cast<Bytes32>(two(2)));
}
inline Pairs<Bytes64> by_eights(Bytes64 a, Bytes64 b) {
    const auto x = reinterpret_cast<__m512i>(a), y = reinterpret_cast<__m512i>(b);
    return {reinterpret_cast<Bytes64>(_mm512_unpacklo_epi64(x, y)),
            reinterpret_cast<Bytes64>(_mm512_unpackhi_epi64(x, y))};
}
/// The same 32 bytes, twice.
inline Bytes64 twice(const void* p) {
    return reinterpret_cast<Bytes64>(
        _mm512_broadcast_i64x4(_mm256_loadu_si256(static_cast<const __m256i*>(p))));
}
/// Words of 64 bits rotated by `first` in the lower half and by `second` in the upper one; negative numbers:
/// to the right.
template <int first, int second>
inline Bytes64 rotated_left(Bytes64 v) {
    constexpr int a = first & 63, b = second & 63;
    return reinterpret_cast<Bytes64>(
        _mm512_rolv_epi64(reinterpret_cast<__m512i>(v), _mm512_setr_epi64(a, a, a, a, b, b, b, b)));
}
/// `more` added to the bytes whose bit is set.
inline Bytes64 add_where(Bytes64 v, uint64_t bits, int more) {
    const auto x = reinterpret_cast<__m512i>(v);
    return reinterpret_cast<Bytes64>(
        _mm512_mask_add_epi8(x, bits, x, _mm512_set1_epi8(static_cast<char>(more))));
}
/// table[places[i]], places below 16.
inline Bytes64 look_up(Bytes16 table, Bytes64 places) {
    return reinterpret_cast<Bytes64>(_mm512_shuffle_epi8(
        _mm512_broadcast_i32x4(reinterpret_cast<__m128i>(table)), reinterpret_cast<__m512i>(places)));
}

/// Eight numbers of 16 bits, `stride` bytes apart, by shuffles of two vectors: inserted one by one they were
/// a quarter of q4_0's time. Reads nothing behind the last of them, nor before the first.
template <int64_t stride>
inline Halves8 pick_shorts(const char* p) {
    constexpr int64_t bytes = 7 * stride + 2;
    static_assert(stride % 2 == 0 && bytes >= 128 && bytes <= 256);
    auto from = [p](int64_t begin) {
        constexpr auto place = [](int64_t at) { return static_cast<short>(at / 2 % 64); };
        const __m512i places = _mm512_castsi128_si512(_mm_setr_epi16(
            place(0 - begin + 128), place(stride - begin + 128), place(2 * stride - begin + 128),
            place(3 * stride - begin + 128), place(4 * stride - begin + 128), place(5 * stride - begin + 128),
            place(6 * stride - begin + 128), place(7 * stride - begin + 128)));
        return _mm512_castsi512_si128(_mm512_permutex2var_epi16(_mm512_loadu_si512(p + begin), places,
                                                                _mm512_loadu_si512(p + begin + 64)));
    };
    const __m128i low = from(0);
    if constexpr (bytes == 128) return reinterpret_cast<Halves8>(low);
    constexpr int behind_128 = 256 - (1 << (126 / stride + 1));  // which of them are not in the first 128
    return reinterpret_cast<Halves8>(_mm_mask_mov_epi16(low, behind_128, from(bytes - 128)));
}

/// sums + four neighbouring products of a code without sign and a signed byte.
inline Ints16 add_dots(Ints16 sums, Bytes64 codes, Bytes64 a) {
    return reinterpret_cast<Ints16>(_mm512_dpbusd_epi32(
        reinterpret_cast<__m512i>(sums), reinterpret_cast<__m512i>(codes), reinterpret_cast<__m512i>(a)));
}
/// The same with one word of signed bytes for all lanes, broadcast by the instruction itself: of the
/// intrinsic GCC makes two. (Sanitizers do not see it read.)
inline Ints16 add_dots_of_word(Ints16 sums, Bytes64 codes, const signed char* a) {
    using Word = int32_t __attribute__((may_alias, aligned(1)));
    auto s = reinterpret_cast<__m512i>(sums);
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(s) : "v"(codes), "m"(*reinterpret_cast<const Word*>(a)));
    return reinterpret_cast<Ints16>(s);
}
using Shorts32 = int16_t __attribute__((vector_size(64)));
/// sums + two neighbouring products of numbers of 16 bits, the same two of `a` for all lanes.
inline Ints16 add_dot_pairs(Ints16 sums, Shorts32 numbers, int32_t a) {
    return reinterpret_cast<Ints16>(_mm512_dpwssd_epi32(
        reinterpret_cast<__m512i>(sums), reinterpret_cast<__m512i>(numbers), _mm512_set1_epi32(a)));
}
/// Bytes 0 and 2 of every word, which have a sign, as numbers of 16 bits.
inline Shorts32 even_bytes(Bytes64 v) {
    return reinterpret_cast<Shorts32>(v) << 8 >> 8;
}
/// Bytes 1 and 3 of every word, likewise.
inline Shorts32 odd_bytes(Bytes64 v) {
    return reinterpret_cast<Shorts32>(v) >> 8;
}
/// Byte i of every word, likewise, as the word.
template <int i>
inline Ints16 byte_of_words(Bytes64 v) {
    return reinterpret_cast<Ints16>(v) << (24 - 8 * i) >> 24;
}
/// The numbers in half precision in the lower halves of words.
inline Floats16 lower_halves(Ints16 v) {
    return reinterpret_cast<Floats16>(_mm512_cvtph_ps(_mm512_cvtepi32_epi16(reinterpret_cast<__m512i>(v))));
}

/// Quarter j of v[i] has words 0 to 3 of row i + 4j of 16; to[w] gets word w of all of them.
inline void transpose_fours(const __m512i (&v)[4], Bytes64* to) {
    const __m512i a = _mm512_unpacklo_epi32(v[0], v[1]), b = _mm512_unpackhi_epi32(v[0], v[1]),
                  c = _mm512_unpacklo_epi32(v[2], v[3]), d = _mm512_unpackhi_epi32(v[2], v[3]);
    to[0] = reinterpret_cast<Bytes64>(_mm512_unpacklo_epi64(a, c));
    to[1] = reinterpret_cast<Bytes64>(_mm512_unpackhi_epi64(a, c));
    to[2] = reinterpret_cast<Bytes64>(_mm512_unpacklo_epi64(b, d));
    to[3] = reinterpret_cast<Bytes64>(_mm512_unpackhi_epi64(b, d));
}
/// Four words `at` each of 16 places of memory: word w of all of them is vector w.
template <int64_t at>
inline void transpose_16(const char* const (&p)[16], Bytes64 (&words)[4]) {
    __m512i v[4];
    for (int i = 0; i < 4; i++)
        v[i] = reinterpret_cast<__m512i>(join(p[i] + at, p[i + 4] + at, p[i + 8] + at, p[i + 12] + at));
    transpose_fours(v, words);
}
/// Word w of each of 16 vectors is vector w.
inline void transpose(const Bytes32 (&of)[16], Bytes64 (&words)[8]) {
    Bytes64 half[2][4];  // half[h]: of vectors 8h to 8h + 7, words w and w + 4
    for (int h = 0; h < 2; h++) {
        __m512i v[4];
        for (int i = 0; i < 4; i++) v[i] = reinterpret_cast<__m512i>(join(of[8 * h + i], of[8 * h + i + 4]));
        transpose_fours(v, half[h]);
    }
    for (int w = 0; w < 4; w++) {
        const auto a = reinterpret_cast<__m512i>(half[0][w]), b = reinterpret_cast<__m512i>(half[1][w]);
        words[w] = reinterpret_cast<Bytes64>(_mm512_shuffle_i32x4(a, b, 0x88));
        words[4 + w] = reinterpret_cast<Bytes64>(_mm512_shuffle_i32x4(a, b, 0xDD));
    }
}
// Of four columns, two of them in each of two vectors of sums: pairs of words, of column 0 at pair 0, 1 at 4,
// 2 at 1, 3 at 5.
/// Words 0 and 2, and words 1 and 3, of a column's eight.
inline Ints16 sums_by_pairs(Ints16 a, Ints16 b) {
    const auto x = reinterpret_cast<__m512i>(a), y = reinterpret_cast<__m512i>(b);
    const __m512i sums = _mm512_add_epi32(_mm512_unpacklo_epi64(x, y), _mm512_unpackhi_epi64(x, y));
    return reinterpret_cast<Ints16>(_mm512_add_epi32(sums, _mm512_shuffle_i64x2(sums, sums, 0xB1)));
}
/// Of columns 0, 2, 1 and 3 a number each.
inline Floats16 by_pairs(Floats8 v) {
    const __m512i places = _mm512_setr_epi32(0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3);
    return reinterpret_cast<Floats16>(
        _mm512_permutexvar_ps(places, _mm512_castps256_ps512(reinterpret_cast<__m256>(v))));
}
/// Two words, eight times.
inline Ints16 eight_times(const int32_t* two) {
    return reinterpret_cast<Ints16>(_mm512_set1_epi64(get_vector<int64_t>(two)));
}
/// Pair `from` at pair `to`, and zeros.
inline Floats16 moved_pair(Floats16 v, int from, int64_t to) {
    return reinterpret_cast<Floats16>(_mm512_maskz_permutexvar_pd(
        static_cast<__mmask8>(1 << to), _mm512_set1_epi64(from), reinterpret_cast<__m512d>(v)));
}
/// sums + such products, which fit into 16 bits, of two vectors, times numbers of 16 bits: in every four
/// words those of `first`, then those of `second`, two neighbours together.
inline Ints16 add_scaled_dots(Ints16 sums, Ints16 first, Ints16 second, Ints16 by) {
    const __m512i both =
        _mm512_packs_epi32(reinterpret_cast<__m512i>(first), reinterpret_cast<__m512i>(second));
    return reinterpret_cast<Ints16>(
        _mm512_dpwssd_epi32(reinterpret_cast<__m512i>(sums), both, reinterpret_cast<__m512i>(by)));
}
/// For it: v[g] is the number of group g, and of its second half v[8 + g] where `halves`; `first` has groups
/// a and a + apart, `second` b and b + apart.
template <int a, int b, int apart, bool halves>
inline Ints16 spread_scales(Shorts16 v) {
    constexpr auto two = [](int i) { return i * 0x10001; };
    constexpr int c = a + apart, d = b + apart, second = halves ? 8 : 0;
    const __m512i places = _mm512_setr_epi32(
        two(a), two(a), two(b), two(b), two(second + a), two(second + a), two(second + b), two(second + b),
        two(c), two(c), two(d), two(d), two(second + c), two(second + c), two(second + d), two(second + d));
    return reinterpret_cast<Ints16>(
        _mm512_permutexvar_epi16(places, _mm512_castsi256_si512(reinterpret_cast<__m256i>(v))));
}

/// Of words 1, 2 and 3 of every four, which hold scales and minima of 6 bits (types/parts.inl): eight scales,
/// then eight minima.
inline Bytes64 six_bits(Bytes64 v) {
    const auto all = reinterpret_cast<__m512i>(v);
    auto bits = [](__m512i x, int mask) {
        return _mm512_and_si512(x, _mm512_set1_epi8(static_cast<char>(mask)));
    };
    const __m512i two = _mm512_shuffle_epi32(all, _MM_PERM_DDCB);  // words 1 and 2
    const __m512i four =
        _mm512_srlv_epi32(_mm512_shuffle_epi32(all, _MM_PERM_DDDD), _mm512_set1_epi64(int64_t{4} << 32));
    const __m512i last = _mm512_or_si512(bits(four, 15), bits(_mm512_srli_epi32(two, 2), 48));
    return reinterpret_cast<Bytes64>(_mm512_unpacklo_epi32(bits(two, 63), last));
}
/// 16 bytes of v, from 16i on, as numbers of 16 bits.
template <int i>
inline Shorts16 widen_quarter(Bytes64 v) {
    return reinterpret_cast<Shorts16>(
        _mm256_cvtepu8_epi16(_mm512_extracti32x4_epi32(reinterpret_cast<__m512i>(v), i)));
}

}  // namespace
}  // namespace linnet
