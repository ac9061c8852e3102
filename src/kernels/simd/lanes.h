// Short vectors of a fixed length, in the compilers' own form (GCC's and Clang's vector extension): the same
// type on every instruction set, for algorithms whose order of summation is the same on all of them.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace linnet {
namespace {

using Bytes16 = unsigned char __attribute__((vector_size(16)));
using Bytes32 = unsigned char __attribute__((vector_size(32)));
using Halves8 = uint16_t __attribute__((vector_size(16)));
using Shorts8 = int16_t __attribute__((vector_size(16)));
using Shorts16 = int16_t __attribute__((vector_size(32)));
using Ints8 = int32_t __attribute__((vector_size(32)));
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

inline Floats8 all_of(float x) {
    return Floats8{x, x, x, x, x, x, x, x};
}

}  // namespace
}  // namespace linnet
