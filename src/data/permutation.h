// An order of [0, n) from a counter: element i without the others.
#pragma once
#include <cstdint>

#include "base/rng.h"

namespace linnet {

/// Element i of a permutation of [0, n): four Feistel rounds on the least even number of bits that holds n,
/// walked on until the value lies in range (Black & Rogaway 2002, "Ciphers with arbitrary finite domains",
/// section 4).
inline std::uint64_t permuted(const Rng& rng, std::uint64_t i, std::uint64_t n) {
    unsigned half = 1;
    while (half < 32 && std::uint64_t{1} << 2 * half < n) half++;
    std::uint64_t mask = (std::uint64_t{1} << half) - 1;
    do {
        std::uint64_t left = i >> half, right = i & mask;
        for (std::uint64_t round = 0; round < 4; round++) {
            std::uint64_t mixed = left ^ (rng.bits(round << 40 | right) & mask);
            left = right, right = mixed;
        }
        i = left << half | right;
    } while (i >= n);
    return i;
}

}  // namespace linnet
