#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "kernels/half.h"

using namespace linnet;

namespace {

/// The nearest binary16, found by looking: `below` and the next one up bracket f; ties go to the even
/// pattern.
std::uint16_t nearest_half(float f, std::uint16_t below) {
    double low = f16_to_f32(below);
    double high =
        below == 0x7BFF ? 65536.0 : static_cast<double>(f16_to_f32(static_cast<std::uint16_t>(below + 1)));
    double middle = (low + high) / 2;
    bool up = f > middle || (f == middle && (below & 1));
    return static_cast<std::uint16_t>(below + up);
}

}  // namespace

TEST_CASE("every binary16 survives the way to f32 and back") {
    for (std::uint32_t h = 0; h < 65536; h++) {
        auto half = static_cast<std::uint16_t>(h);
        float f = f16_to_f32(half);
        if (std::isnan(f)) {
            CHECK(std::isnan(f16_to_f32(f32_to_f16(f))));
        } else if (f32_to_f16(f) != half) {
            FAIL("binary16 pattern " << h);
        }
    }
    CHECK(f16_to_f32(0x3C00) == 1.0f);
    CHECK(f16_to_f32(0x0001) == std::ldexp(1.0f, -24));
    CHECK(f16_to_f32(0xFBFF) == -65504.0f);
    CHECK(std::isinf(f16_to_f32(0x7C00)));
}

TEST_CASE("f32 rounds to the nearest binary16, ties to even, also around subnormals and overflow") {
    for (std::uint32_t h = 0; h <= 0x7BFF; h++) {
        auto below = static_cast<std::uint16_t>(h);
        float low = f16_to_f32(below);
        float high = h == 0x7BFF ? 65536.0f : f16_to_f32(static_cast<std::uint16_t>(h + 1));
        float middle = low + (high - low) / 2;
        for (float f : {low, std::nextafterf(middle, 0.0f), middle, std::nextafterf(middle, high)}) {
            if (f < low) continue;
            std::uint16_t want = nearest_half(f, below);
            if (f32_to_f16(f) != want || f32_to_f16(-f) != (want | 0x8000)) FAIL("f32 " << f);
        }
    }
    CHECK(f32_to_f16(1e30f) == 0x7C00);
    CHECK(f32_to_f16(-std::numeric_limits<float>::infinity()) == 0xFC00);
    CHECK((f32_to_f16(std::numeric_limits<float>::quiet_NaN()) & 0x7FFF) > 0x7C00);
}

TEST_CASE("f32 rounds to the nearest bfloat16, ties to even") {
    for (std::uint32_t h = 0; h < 65536; h++) {
        auto half = static_cast<std::uint16_t>(h);
        if (std::isnan(bf16_to_f32(half))) {
            CHECK(std::isnan(bf16_to_f32(f32_to_bf16(bf16_to_f32(half)))));
            continue;
        }
        if (f32_to_bf16(bf16_to_f32(half)) != half) FAIL("bfloat16 pattern " << h);
    }
    CHECK(f32_to_bf16(std::bit_cast<float>(0x3F808000u)) == 0x3F80);  // tie: even below
    CHECK(f32_to_bf16(std::bit_cast<float>(0x3F818000u)) == 0x3F82);  // tie: even above
    CHECK(f32_to_bf16(std::bit_cast<float>(0x3F808001u)) == 0x3F81);
    CHECK(f32_to_bf16(std::numeric_limits<float>::max()) == 0x7F80);  // overflow: infinity
}
