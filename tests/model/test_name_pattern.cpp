#include "model/name_pattern.h"

#include <doctest/doctest.h>

using namespace linnet;

TEST_CASE("a pattern's star is any text") {
    CHECK(matches("*", ""));
    CHECK(matches("*.attn_*.weight", "blk.0.attn_q.weight"));
    CHECK(matches("blk.0.*", "blk.0.ffn_up.weight"));
    CHECK(!matches("blk.0", "blk.0.ffn_up.weight"));
    CHECK(!matches("*a*b", "ab0"));
}
