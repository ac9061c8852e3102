// Short vectors of a fixed length, in the compilers' own form (GCC's and Clang's vector extension): the same
// type on every instruction set, for algorithms whose order of summation is the same on all of them.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace linnet {
namespace {

using Bytes16 = unsigned char __attribute__((vector_size(16)));
using Bytes32 = unsigned char __attribute__((vector_size(32)));
using Longs2 = uint64_t __attribute__((vector_size(16)));
using Longs4 = uint64_t __attribute__((vector_size(32)));
using Halves8 = uint16_t __attribute__((vector_size(16)));
using Shorts8 = int16_t __attribute__((vector_size(16)));
using Shorts16 = int16_t __attribute__((vector_size(32)));
using Ints4 = int32_t __attribute__((vector_size(16)));
using Ints8 = int32_t __attribute__((vector_size(32)));
using Floats4 = float __attribute__((vector_size(16)));
using Floats8 = float __attribute__((vector_size(32)));

template <class V>
inline V get_vector(const void* p) {
    V v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
template <class V>
inline void put_vector(void* p, const V& v) {
    __builtin_memcpy(p, &v, sizeof v);
}

inline Ints4 lower_half(Ints8 v) {
    return __builtin_shufflevector(v, v, 0, 1, 2, 3);
}
inline Ints4 upper_half(Ints8 v) {
    return __builtin_shufflevector(v, v, 4, 5, 6, 7);
}
inline Floats4 lower_half(Floats8 v) {
    return __builtin_shufflevector(v, v, 0, 1, 2, 3);
}
inline Floats4 upper_half(Floats8 v) {
    return __builtin_shufflevector(v, v, 4, 5, 6, 7);
}

/// 16 bytes, twice, `stride` bytes apart; the second argument chooses the width.
template <int64_t stride>
inline Bytes32 gather_16(const void* p, Bytes32*) {
    const auto at = static_cast<const char*>(p);
    return reinterpret_cast<Bytes32>(
        __builtin_shufflevector(get_vector<Longs2>(at), get_vector<Longs2>(at + stride), 0, 1, 2, 3));
}
/// Two vectors, eight bytes of each in turn: of the first eight of every sixteen, and of the others.
template <class V>
struct Pairs {
    V low, high;
};
inline Pairs<Bytes32> by_eights(Bytes32 a, Bytes32 b) {
    const auto x = reinterpret_cast<Longs4>(a), y = reinterpret_cast<Longs4>(b);
    return {reinterpret_cast<Bytes32>(__builtin_shufflevector(x, y, 0, 4, 2, 6)),
            reinterpret_cast<Bytes32>(__builtin_shufflevector(x, y, 1, 5, 3, 7))};
}
/// `more` added to the bytes whose bit is set.
inline Bytes32 add_where(Bytes32 v, uint64_t bits, unsigned char more) {
    constexpr uint64_t bit_i = 0x8040201008040201u;  // of byte i
    const auto all = static_cast<int32_t>(bits);
    const auto four_times = reinterpret_cast<Bytes32>(Ints8{all, all, all, all, all, all, all, all});
    const auto spread = reinterpret_cast<Longs4>(
        __builtin_shufflevector(four_times, four_times, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 18,
                                18, 18, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 19));
    const auto set = reinterpret_cast<Bytes32>(reinterpret_cast<Bytes32>(spread & bit_i) != 0);
    return v + (set & more);
}

inline Longs4 longs_of(Bytes32 v) {
    return reinterpret_cast<Longs4>(v);
}
inline Floats8 all_of(float x) {
    return Floats8{x, x, x, x, x, x, x, x};
}

}  // namespace
}  // namespace linnet
