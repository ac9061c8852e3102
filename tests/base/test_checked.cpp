#include <doctest/doctest.h>

#include "base/checked.h"

using namespace linnet;

TEST_CASE("checked arithmetic gives nothing rather than a wrapped number") {
    CHECK(checked_add<std::uint64_t>(UINT64_MAX - 1, 1) == UINT64_MAX);
    CHECK(!checked_add<std::uint64_t>(UINT64_MAX, 1));
    CHECK(checked_mul<std::int64_t>(1ll << 31, 1ll << 31) == 1ll << 62);
    CHECK(!checked_mul<std::int64_t>(1ll << 32, 1ll << 31));
    CHECK(checked_round_up<std::uint64_t>(33, 32) == 64u);
    CHECK(checked_round_up<std::uint64_t>(64, 32) == 64u);
    CHECK(checked_round_up<std::uint64_t>(0, 32) == 0u);
    CHECK(!checked_round_up<std::uint64_t>(UINT64_MAX - 30, 32));
}
