// A fast 64-bit hash of bytes, for tables and for choices that must be the same on every machine (it is not a
// checksum against malice: sha256.h is). Eight bytes at a time are multiplied to 128 bits and folded, the
// step of Wang Yi's wyhash; the bytes are read little-endian.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace linnet {

inline std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t seed = 0) {
    constexpr std::uint64_t k0 = 0x9E3779B97F4A7C15u, k1 = 0xD6E8FEB86659FD93u;
    auto load = [](const char* p, auto value) {
        std::memcpy(&value, p, sizeof value);
        if constexpr (std::endian::native == std::endian::big)
            value = sizeof value == 8 ? __builtin_bswap64(value)
                                      : __builtin_bswap32(static_cast<std::uint32_t>(value));
        return std::uint64_t{value};
    };
    const char* p = bytes.data();
    std::size_t n = bytes.size();
    std::uint64_t h = seed ^ n * k1;
    auto folded = [&](std::uint64_t v) {
        unsigned __int128 m = static_cast<unsigned __int128>(v ^ k0) * k1;
        return static_cast<std::uint64_t>(m) ^ static_cast<std::uint64_t>(m >> 64);
    };
    auto mix = [&](std::uint64_t v) { h = folded(v ^ h); };
    if (n >= 64) {  // one multiplication need not wait for another
        std::uint64_t a = h, b = h + k0, c = h + 2 * k0, d = h + 3 * k0;
        for (; n >= 32; p += 32, n -= 32) {
            a = folded(a ^ load(p, std::uint64_t{}));
            b = folded(b ^ load(p + 8, std::uint64_t{}));
            c = folded(c ^ load(p + 16, std::uint64_t{}));
            d = folded(d ^ load(p + 24, std::uint64_t{}));
        }
        h = a;
        mix(b), mix(c), mix(d);
    }
    for (; n >= 8; p += 8, n -= 8) mix(load(p, std::uint64_t{}));
    std::uint64_t rest = 0;
    if (n >= 4)
        rest = load(p + n - 4, std::uint32_t{}) << 32 | load(p, std::uint32_t{});
    else if (n > 0)
        rest = load(p, std::uint8_t{}) | load(p + n / 2, std::uint8_t{}) << 8 |
               load(p + n - 1, std::uint8_t{}) << 16;
    mix(rest);
    return h;
}

}  // namespace linnet
