#include "train/confusion.h"

#include <doctest/doctest.h>

using namespace linnet;

TEST_CASE("rows are counted by what they are and by the largest of their logits; unknown ones are not") {
    Confusion counted(3);
    CHECK_FALSE(counted.any());
    const float logits[] = {0, 2, 1, 5, -1, 4, -3, -2, -1, 1, 1, 0};
    const std::int32_t targets[] = {1, 2, -1, 0};
    counted.add(logits, targets);
    CHECK(counted.any());
    CHECK(counted.accuracy() == doctest::Approx(2.0 / 3));  // of equal ones the first
    counted.add(std::span(logits).first(3), std::span(targets).first(1));
    CHECK(counted.to_json({"a", "b", "c"}).dump() ==
          R"({"labels":["a","b","c"],"counts":[[1,0,0],[0,2,0],[1,0,0]]})");
    Confusion none(0);
    none.add({}, targets);
    CHECK_FALSE(none.any());
}
