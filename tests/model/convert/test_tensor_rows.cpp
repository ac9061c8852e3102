#include "model/convert/tensor_rows.h"

#include <doctest/doctest.h>

using namespace linnet;

TEST_CASE("the rows of every part of a parameter are looked for once, however many parts there are") {
    for (std::int64_t parts : {1, 2, 4, 64})
        for (std::int64_t head : {0, 4, 12, 48}) {
            CAPTURE(parts);
            CAPTURE(head);
            ParameterRows r;
            r.rows = r.all = 64 * 48, r.head = head;
            for (std::int64_t p = 0; p < parts; p++) r.tensors.push_back(std::to_string(p));
            std::int64_t looked = 0;
            for (std::size_t p = 0; p < r.tensors.size(); p++) {
                const auto [begin, end] = r.near(p);
                looked += end - begin;
                std::int64_t found = 0;
                for (std::int64_t row = begin; row < end; row++) found += r.at(row).tensor == p;
                CHECK(found == r.rows / parts);
            }
            CHECK(looked == r.rows);  // parts of whole heads: not one row more
        }
}
