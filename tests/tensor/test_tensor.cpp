#include "tensor/tensor.h"

#include <doctest/doctest.h>

using namespace linnet;

TEST_CASE("a row has the elements of a shape's last dimension, whatever its rank") {
    CHECK(Shape().columns() == 1);
    CHECK(Shape(3).columns() == 3);
    Shape shape(3, 64);
    CHECK(shape.columns() == 64);
    shape.rank = 3, shape.dim = {2, 3, 32, 1};
    CHECK(shape.columns() == 32);
    CHECK(Tensor{nullptr, DType::q8_0, shape}.row_bytes() == 34);
}
