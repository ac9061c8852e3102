#include <doctest/doctest.h>

#include <cmath>

#include "ops/op.h"

using namespace linnet;

TEST_CASE("positions as bits: column k has the k-th bit, columns beyond nothing") {
    const std::int64_t width[] = {5};
    const Attributes none;
    const auto table = position_bits_op.position_table({width, {}, none}, 0, {5, 8});
    CHECK(table == std::vector<double>{1, 0, 1, 0, 0,  //
                                       0, 1, 1, 0, 0,  //
                                       1, 1, 1, 0, 0});
    const std::int64_t wide[] = {80};  // more columns than a number has bits
    const auto row = position_bits_op.position_table({wide, {}, none}, 0, {1, 2});
    CHECK(row[0] == 1);
    for (std::size_t c = 1; c < row.size(); c++) CHECK(row[c] == 0);
}

TEST_CASE("sinusoids: a sine and its cosine for each pair of columns, the first of them in radians") {
    const std::int64_t width[] = {4};
    const Attributes none;
    const auto row = sinusoidal_op.position_table({width, {}, none}, 0, {3, 4});
    REQUIRE(row.size() == 4);
    CHECK(row[0] == doctest::Approx(std::sin(3.0)));
    CHECK(row[1] == doctest::Approx(std::cos(3.0)));
    CHECK(row[2] == doctest::Approx(std::sin(0.03)));
    CHECK(row[3] == doctest::Approx(std::cos(0.03)));
}
