// Counter-based random numbers: the value depends on (seed, stream, counter) alone, never on who drew before,
// so that any thread count and any resume give the same bits. Philox4x32-10 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011, section 3.3).
#pragma once
#include <array>
#include <cmath>
#include <cstdint>

namespace linnet {

/// Ten rounds of Philox on a 128-bit counter with a 64-bit key.
inline std::array<std::uint32_t, 4> philox(std::uint64_t key, std::uint64_t counter_high,
                                           std::uint64_t counter_low) {
    std::uint32_t c0 = static_cast<std::uint32_t>(counter_low),
                  c1 = static_cast<std::uint32_t>(counter_low >> 32);
    std::uint32_t c2 = static_cast<std::uint32_t>(counter_high),
                  c3 = static_cast<std::uint32_t>(counter_high >> 32);
    std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; round++) {
        std::uint64_t p0 = std::uint64_t{0xD2511F53} * c0, p1 = std::uint64_t{0xCD9E8D57} * c2;
        c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
        c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
        c1 = static_cast<std::uint32_t>(p1);
        c3 = static_cast<std::uint32_t>(p0);
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return {c0, c1, c2, c3};
}

/// Independent streams of one seed. Give every purpose its own stream.
class Rng {
  public:
    Rng(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

    std::uint64_t bits(std::uint64_t counter) const {
        auto r = philox(seed_, stream_, counter);
        return (std::uint64_t{r[1]} << 32) | r[0];
    }
    /// Uniform in [0, 1), 53 bits.
    double uniform(std::uint64_t counter) const { return static_cast<double>(bits(counter) >> 11) * 0x1p-53; }
    /// Uniform in [0, n), n > 0; the bias of the multiply-shift is below n / 2^64.
    std::uint64_t below(std::uint64_t n, std::uint64_t counter) const {
        return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits(counter)) * n) >> 64);
    }
    /// Two standard normals (Box & Muller 1958).
    std::array<double, 2> normals(std::uint64_t counter) const {
        auto r = philox(seed_, stream_, counter);
        double u = (static_cast<double>((std::uint64_t{r[1]} << 32 | r[0]) >> 11) + 0.5) * 0x1p-53;
        double angle =
            static_cast<double>((std::uint64_t{r[3]} << 32 | r[2]) >> 11) * 0x1p-53 * 6.283185307179586;
        double radius = std::sqrt(-2.0 * std::log(u));
        return {radius * std::cos(angle), radius * std::sin(angle)};
    }
    double normal(std::uint64_t counter) const { return normals(counter)[0]; }

  private:
    std::uint64_t seed_, stream_;
};

}  // namespace linnet
