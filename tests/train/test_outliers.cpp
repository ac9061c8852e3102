#include "train/outliers.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace linnet;

TEST_CASE("a gradient norm is an outlier by the mean and deviation of the last ones, also after a resume") {
    OutlierGate gate;
    for (std::size_t i = 0; i < OutlierGate::least; i++) {
        CHECK(std::isinf(gate.limit(6)));
        gate.observe(i % 2 ? 1 : 3);
    }
    const double n = OutlierGate::least, deviation = std::sqrt(n / (n - 1));
    CHECK(gate.limit(6) == doctest::Approx(2 + 6 * deviation));
    CHECK(std::isinf(gate.limit(0)));
    gate.count_skipped();
    OutlierGate resumed = OutlierGate::from_json(nlohmann::json::parse(gate.to_json().dump()));
    CHECK(resumed.limit(6) == gate.limit(6));
    CHECK(resumed.skipped() == 1);
    for (std::size_t i = 0; i < OutlierGate::window; i++) gate.observe(9);  // they have come to stay
    CHECK(gate.limit(6) == doctest::Approx(9));
    CHECK(gate.norms().size() == OutlierGate::window);
}
