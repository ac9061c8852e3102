// AMX's tiles in plain C++, with its bits, for tests on machines that have none.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <cstring>

namespace linnet::test {

/// Numbers below the normal ones count as 0, on the way in and out.
inline float flushed(float x) {
    return std::fabs(x) < 0x1p-126f ? 0 : x;
}
inline float bf16(std::uint16_t x) {
    float f;
    std::uint32_t bits = std::uint32_t{x} << 16;
    std::memcpy(&f, &bits, sizeof f);
    return flushed(f);
}

/// TDPBF16PS as measured: each sum gets the chain over even k plus the chain over odd k, both from 0. A
/// product of two bf16 has 16 bits, so that a·b + c has one rounding, like an fma's.
struct EmulatedTiles {
    static inline unsigned char tile[8][16][64];
    static inline bool configured = false;

    static void begin() { configured = true; }
    static void end() { configured = false; }
    template <int t>
    static void clear() {
        std::memset(tile[t], 0, sizeof tile[t]);
    }
    template <int t>
    static void load(const void* from, std::int64_t stride) {
        REQUIRE(configured);
        for (int r = 0; r < 16; r++) std::memcpy(tile[t][r], static_cast<const char*>(from) + r * stride, 64);
    }
    template <int t>
    static void load_once(const void* from, std::int64_t stride) {
        load<t>(from, stride);
    }
    template <int t>
    static void store(void* to, std::int64_t stride) {
        for (int r = 0; r < 16; r++) std::memcpy(static_cast<char*>(to) + r * stride, tile[t][r], 64);
    }
    template <int c, int a, int b>
    static void multiply() {
        for (int r = 0; r < 16; r++) {
            std::uint16_t x[32];
            std::memcpy(x, tile[a][r], sizeof x);
            float sums[16];
            std::memcpy(sums, tile[c][r], sizeof sums);
            for (int j = 0; j < 16; j++) {
                float chain[2] = {0, 0};
                for (int p = 0; p < 16; p++) {
                    std::uint16_t y[2];
                    std::memcpy(y, tile[b][p] + 4 * j, sizeof y);
                    for (int i = 0; i < 2; i++)
                        chain[i] = flushed(chain[i] + bf16(x[2 * p + i]) * bf16(y[i]));
                }
                sums[j] = flushed(sums[j] + flushed(chain[0] + chain[1]));
            }
            std::memcpy(tile[c][r], sums, sizeof sums);
        }
    }
};

}  // namespace linnet::test
