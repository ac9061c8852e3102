#include <doctest/doctest.h>

#include "base/rng.h"

using namespace linnet;

TEST_CASE("Philox4x32-10 gives the known answers of Random123") {
    // kat_vectors of the authors' distribution: counters and keys of zeros, of ones, and of digits of pi.
    CHECK(philox(0, 0, 0) == std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    CHECK(philox(UINT64_MAX, UINT64_MAX, UINT64_MAX) ==
          std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    CHECK(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88) ==
          std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("draws depend on seed, stream and counter alone, and look as they should") {
    Rng a(1, 2), b(1, 3), c(2, 2);
    CHECK(a.bits(7) == Rng(1, 2).bits(7));
    CHECK(a.bits(7) != b.bits(7));
    CHECK(a.bits(7) != c.bits(7));
    const int n = 100000;
    double sum = 0, normal = 0, square = 0;
    int counts[10] = {};
    for (int i = 0; i < n; i++) {
        auto counter = static_cast<std::uint64_t>(i);
        double u = a.uniform(counter), z = b.normal(counter);
        REQUIRE(u >= 0);
        REQUIRE(u < 1);
        sum += u;
        normal += z;
        square += z * z;
        counts[c.below(10, counter)]++;
    }
    CHECK(sum / n == doctest::Approx(0.5).epsilon(0.01));
    CHECK(std::abs(normal / n) < 0.02);
    CHECK(square / n == doctest::Approx(1).epsilon(0.02));
    for (int count : counts) CHECK(count == doctest::Approx(n / 10).epsilon(0.05));
}
