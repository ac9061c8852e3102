// Dropout, and the random numbers that it draws: Philox4x32-10 (Salmon et al. 2011, section 3.3), W counters
// at a time. base/rng.h has it one counter at a time; it stands here again because no function of the program
// may be inlined into an instruction set's file.
#pragma once
#include "kernels/kernels.h"
#include "kernels/simd/common.inl"

namespace linnet {
namespace {

constexpr int64_t dropout_block = dropout_draws * W;  // elements that W counters serve

/// The words c[0 … 3] of W counters, one counter after another.
template <class Vector>
inline void put_words(const Words (&c)[4], uint32_t* to) {
    if constexpr (W == 1) {
        for (int i = 0; i < 4; i++) put_vector(to + i, c[i]);
    } else {
        Real even[2 * W], odd[2 * W], all[4 * W];
        store_pairs(even, reinterpret_cast<Vector>(c[0]), reinterpret_cast<Vector>(c[2]));
        store_pairs(odd, reinterpret_cast<Vector>(c[1]), reinterpret_cast<Vector>(c[3]));
        store_pairs(all, load(even), load(odd));
        store_pairs(all + 2 * W, load(even + W), load(odd + W));
        __builtin_memcpy(to, all, sizeof all);
    }
}

/// The four words of each of the counters first + more[0 … W), one counter after another.
inline void philox_words(uint64_t key, uint64_t stream, uint64_t first, const uint64_t* more, uint32_t* to) {
    uint32_t numbers[2 * W];
    for (int l = 0; l < W; l++) {
        numbers[l] = static_cast<uint32_t>(first + more[l]);
        numbers[W + l] = static_cast<uint32_t>((first + more[l]) >> 32);
    }
    Words c0 = get_vector<Words>(numbers), c1 = get_vector<Words>(numbers + W);
    Words c2 = Words{} + static_cast<uint32_t>(stream), c3 = Words{} + static_cast<uint32_t>(stream >> 32);
    auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
    LINNET_UNROLL
    for (int round = 0; round < 10; round++) {
        Words high0, high1;
        const Words low0 = multiply_words(c0, 0xD2511F53u, high0),
                    low1 = multiply_words(c2, 0xCD9E8D57u, high1);
        c0 = high1 ^ c1 ^ k0, c2 = high0 ^ c3 ^ k1;
        c1 = low1, c3 = low0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    put_words<Vec>({c0, c1, c2, c3}, to);
}

constexpr uint64_t next_counters[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static_assert(W <= sizeof(next_counters) / sizeof(uint64_t));

inline void dropout(int64_t n, const Dropout<Real>& d, const Real* x, Real* y, bool accumulate) {
    const Vec factor = set1(d.factor);
    uint64_t counter = d.counter;
    for (int64_t begin = 0; begin < n; begin += dropout_block, counter += W) {
        uint32_t words[4 * W];
        uint16_t draws[dropout_block];
        if (d.limit > 0) {
            philox_words(d.key, d.stream, counter, next_counters, words);
            // Draw 2i is the low half of word i, draw 2i + 1 its high half: as memory has them.
            static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
            __builtin_memcpy(draws, words, sizeof draws);
        }
        each_vector(least(dropout_block, n - begin), [&](int64_t i, int64_t some) {
            Vec v = load_n(x + begin + i, some) * factor;
            if (d.limit > 0) v = keep_drawn(draws + i, d.limit, v);
            if (accumulate) v = load_n(y + begin + i, some) + v;
            store_n(y + begin + i, v, some);
        });
    }
}

}  // namespace
}  // namespace linnet
