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
    CHECK(counted.has_table());
    Confusion many(Confusion::most_shown + 1);  // no table of so many
    std::vector<float> row(Confusion::most_shown + 1);
    row[3] = 1;
    many.add(row, std::vector<std::int32_t>{3});
    CHECK_FALSE(many.has_table());
    CHECK(many.accuracy() == 1);
    Confusion none(0);
    none.add({}, targets);
    CHECK_FALSE(none.any());
}
