// AVX512-BF16's dot products of pairs in plain C++, with its bits, for tests on machines that have none.
#pragma once
#include <cstdint>
#include <cstring>

#include "emulated_tiles.h"

namespace linnet::test {

/// VDPBF16PS: the product of the odd k, then that of the even, each added with one rounding.
struct EmulatedDots {
    static float add(float sum, float a, float b) {
        auto half = [](float words, unsigned shift) {
            std::uint32_t bits;
            std::memcpy(&bits, &words, sizeof bits);
            return bf16(static_cast<std::uint16_t>(bits >> shift));
        };
        sum = flushed(flushed(sum) + half(a, 16) * half(b, 16));
        return flushed(sum + half(a, 0) * half(b, 0));
    }
};

}  // namespace linnet::test
