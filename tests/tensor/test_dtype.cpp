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
        CHECK(row.bytes >= (row.type == DType::unknown ? 0 : 1));
        if (row.is_weight) CHECK(row.gguf_id >= 0);  // else a model of it could not be saved
        CHECK(names.insert(row.name).second);
        if (row.type == DType::unknown)
            CHECK(!dtype_from_name(row.name));
        else
            CHECK(dtype_from_name(row.name) == row.type);
        if (row.gguf_id < 0) continue;
        CHECK(ids.insert(row.gguf_id).second);
        CHECK(dtype_from_gguf(static_cast<std::uint32_t>(row.gguf_id)) == row.type);
    }
    CHECK(!dtype_from_name("f33"));
    CHECK(!dtype_from_gguf(UINT32_MAX));
    CHECK(!dtype_from_gguf(4));  // q4_2, removed from ggml
}

TEST_CASE("bits per weight are those that ggml's names promise") {
    auto bits = [](const char* name) {
        const DTypeInfo& row = info(*dtype_from_name(name));
        return 8.0 * static_cast<double>(row.bytes) / static_cast<double>(row.block);
    };
    CHECK(bits("bf16") == 16);
    CHECK(bits("q8_0") == 8.5);
    CHECK(bits("q5_1") == 6);
    CHECK(bits("q4_0") == 4.5);
    CHECK(bits("q6_k") == 6.5625);
    CHECK(bits("q4_k") == 4.5);
    CHECK(bits("q2_k") == 2.625);
    CHECK(bits("iq2_xxs") == 2.0625);
    CHECK(bits("iq1_m") == 1.75);
    CHECK(bits("mxfp4") == 4.25);
}

TEST_CASE("a shape counts its elements; unused dimensions are one") {
    CHECK(Shape().count() == 1);
    CHECK(Shape(7).count() == 7);
    CHECK(Shape(7, 3).count() == 21);
    CHECK(Shape(7, 3) == Shape(7, 3));
    CHECK(!(Shape(7) == Shape(7, 1)));
}
