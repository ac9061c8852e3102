// Stored types one element at a time, into Real (float or double).
#pragma once
#include "kernels/simd/widen_plain.inl"

namespace linnet {
namespace {

inline float widen_f16(uint16_t h) {
    uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16, rest = h & 0x7FFFu;
    if (rest >= 0x7C00u) return __builtin_bit_cast(float, sign | 0x7F800000u | (rest & 0x3FFu) << 13);
    if (rest >= 0x0400u) return __builtin_bit_cast(float, sign | ((rest << 13) + 0x38000000u));
    float magnitude = static_cast<float>(rest) * 0x1p-24f;  // subnormal: exact
    return __builtin_bit_cast(float, sign | __builtin_bit_cast(uint32_t, magnitude));
}
inline uint16_t narrow_f16(float f) {
    uint32_t x = __builtin_bit_cast(uint32_t, f), sign = x >> 16 & 0x8000u, a = x & 0x7FFFFFFFu;
    if (a > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u | (a >> 13 & 0x3FFu));
    if (a >= 0x47800000u) return static_cast<uint16_t>(sign | 0x7C00u);
    if (a < 0x38800000u) {  // subnormal: let the float adder round at the right bit
        float shifted = __builtin_bit_cast(float, a) + 0.5f;
        return static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, shifted) - 0x3F000000u));
    }
    return static_cast<uint16_t>(sign | (a - 0x38000000u + 0xFFFu + (a >> 13 & 1u)) >> 13);
}
inline float widen_bf16(uint16_t h) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(h) << 16);
}
inline uint16_t narrow_bf16(float f) {
    uint32_t x = __builtin_bit_cast(uint32_t, f);
    if ((x & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(x >> 16 | 0x40u);
    return static_cast<uint16_t>((x + 0x7FFFu + (x >> 16 & 1u)) >> 16);
}

struct StoredF32 {
    using Element = float;
    static Vec get(const float* p) { return static_cast<Real>(*p); }
    static Vec get_n(const float* p, int64_t n) { return n > 0 ? static_cast<Real>(*p) : 0; }
    static void put_n(float* p, Vec v, int64_t n) {
        if (n > 0) *p = static_cast<float>(v);
    }
};
struct StoredF16 {
    using Element = uint16_t;
    static Vec get(const uint16_t* p) { return static_cast<Real>(widen_f16(*p)); }
    static Vec get_n(const uint16_t* p, int64_t n) { return n > 0 ? get(p) : 0; }
    static void put_n(uint16_t* p, Vec v, int64_t n) {
        if (n > 0) *p = narrow_f16(static_cast<float>(v));
    }
};
struct StoredBF16 {
    using Element = uint16_t;
    static Vec get(const uint16_t* p) { return static_cast<Real>(widen_bf16(*p)); }
    static Vec get_n(const uint16_t* p, int64_t n) { return n > 0 ? get(p) : 0; }
    static void put_n(uint16_t* p, Vec v, int64_t n) {
        if (n > 0) *p = narrow_bf16(static_cast<float>(v));
    }
};

inline Vec both_halves(uint16_t first, uint16_t second) {
    return static_cast<Vec>(
        __builtin_bit_cast(float, static_cast<uint32_t>(second) << 16 | static_cast<uint32_t>(first)));
}
template <bool split>
inline Vec bf16_pairs(Vec first, Vec second, Vec& low) {
    auto left = [](Real v) { return v - static_cast<Real>(widen_bf16(narrow_bf16(static_cast<float>(v)))); };
    auto half = [](Real v) { return narrow_bf16(static_cast<float>(v)); };
    if constexpr (split) low = both_halves(half(left(first)), half(left(second)));
    return both_halves(half(first), half(second));
}
template <bool split>
inline Vec bf16_words(Vec a, Vec b, Vec& low) {
    return bf16_pairs<split>(a, b, low);
}
inline Vec stored_words(const uint16_t* x) {
    return both_halves(x[0], x[1]);
}

inline Vec stored_pairs(const uint16_t* first, const uint16_t* second, int64_t n) {
    return both_halves(n > 0 ? *first : uint16_t{0}, n > 0 && second ? *second : uint16_t{0});
}

inline Real one_half(uint16_t h) {
    return static_cast<Real>(widen_f16(h));
}
inline uint16_t to_half(float x) {
    return narrow_f16(x);
}
inline void widen_bytes(Bytes32 q, Vec (&to)[32 / W]) {
    for (int i = 0; i < 32; i++) to[i] = static_cast<Real>(static_cast<signed char>(q[i]));
}
/// 16 bytes of memory, twice.
template <class V>
inline V load_twice(const void* p) {
    auto v = get_vector<Bytes16>(p);
    return reinterpret_cast<V>(__builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                                       15, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                                       15));
}
inline Floats8 widen_halves(Halves8 v) {
    Floats8 wide{};
    for (int i = 0; i < 8; i++) wide[i] = widen_f16(v[i]);
    return wide;
}
inline Bytes32 look_up(Bytes16 table, Bytes32 places) {
    Bytes32 to{};
    for (int i = 0; i < 32; i++) to[i] = table[places[i]];
    return to;
}

}  // namespace
}  // namespace linnet
