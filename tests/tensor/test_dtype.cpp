#include <doctest/doctest.h>

#include <set>
#include <string>

#include "tensor/tensor.h"

using namespace linnet;

TEST_CASE("the table of element types is in order, and every row is found by name and by GGUF id") {
    std::set<std::string_view> names;
    std::set<std::int32_t> ids;
    for (std::size_t i = 0; i < dtypes().size(); i++) {
        const DTypeInfo& row = dtypes()[i];
        CHECK(static_cast<std::size_t>(row.type) == i);
        CHECK(&info(row.type) == &row);
        CHECK(row.block >= 1);
        CHECK(row.bytes >= 1);
        CHECK(names.insert(row.name).second);
        CHECK(dtype_from_name(row.name) == row.type);
        if (row.gguf_id < 0) continue;
        CHECK(ids.insert(row.gguf_id).second);
        CHECK(dtype_from_gguf(static_cast<std::uint32_t>(row.gguf_id)) == row.type);
    }
    CHECK(!dtype_from_name("f33"));
    CHECK(!dtype_from_gguf(UINT32_MAX));
    CHECK(!dtype_from_gguf(4));  // q4_2, removed from ggml
}

TEST_CASE("a shape counts its elements; unused dimensions are one") {
    CHECK(Shape().count() == 1);
    CHECK(Shape(7).count() == 7);
    CHECK(Shape(7, 3).count() == 21);
    CHECK(Shape(7, 3) == Shape(7, 3));
    CHECK(!(Shape(7) == Shape(7, 1)));
}
