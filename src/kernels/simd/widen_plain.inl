// Short vectors of integers widened, in the compilers' own form.
#pragma once
#include "kernels/simd/lanes.h"

namespace linnet {
namespace {

/// Eight bytes, or eight 16-bit integers, in wider ones.
inline Shorts8 widen_bytes8(uint64_t bytes) {
    using Bytes8 = unsigned char __attribute__((vector_size(8)));
    return __builtin_convertvector(__builtin_bit_cast(Bytes8, bytes), Shorts8);
}
inline Ints8 widen_shorts(Shorts8 v) {
    return __builtin_convertvector(v, Ints8);
}

}  // namespace
}  // namespace linnet
