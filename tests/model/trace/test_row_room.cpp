// Room for the rows of a model's spaces, whichever number a space has.
#include "model/trace/row_room.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "model/small_models.h"
#include "model/trace/generator.h"

using namespace linnet;

namespace {

/// Checks the spaces that a batch fills, of which the one beside tokens and outputs is called `beside`.
void check(const TracedModel& model, const std::string& beside) {
    INFO(beside);
    const ById<std::int64_t> rows =
        capacities(model.graph, {.tokens = 30, .outputs = 20, .beside = beside.empty() ? 0 : 10});
    REQUIRE(rows.size() == model.graph.spaces().size());
    bool found = beside.empty();
    for (std::size_t i = 0; i < rows.size(); i++) {
        const RowSpace& space = model.graph.spaces()[i];
        if (space.fixed > 0 || space.parent != none) {
            CHECK(rows[i] == 0);
            continue;
        }
        INFO(space.name);
        const bool known = space.name == "tokens" || space.name == "outputs" || space.name == beside;
        CHECK(known);
        CHECK(rows[i] == (space.name == "tokens" ? 30 : space.name == "outputs" ? 20 : 10));
        found |= space.name == beside;
    }
    CHECK(found);
}

ModelConfig config_of(const nlohmann::json& settings) {
    return test::config_with(11, {test::small_model, settings});
}

}  // namespace

TEST_CASE("each space that a batch fills has the room that is said for it") {
    check(trace(config_of({}), true), "");
    check(trace(config_of({}), false), "");
    check(trace(config_of({{"model.experts.count", 2}, {"model.experts.used", 1}, {"model.ffn.bias", false}}),
                true),
          "");
    check(trace(config_of({{"model.kind", "encoder-decoder"}}), true), "source");
    check(trace(config_of({{"model.kind", "encoder-decoder"}}), false), "source");
    check(trace(config_of({{"model.kind", "encoder"}, {"model.attention.projected", 2}}), true), "");
    check(
        trace(config_of({{"model.kind", "encoder"}, {"model.head.next", true}, {"model.segments", 2}}), true),
        "next");
    const ModelConfig tags =
        config_of({{"model.kind", "encoder"}, {"model.head.kind", "tags"}, {"model.head.classes", 2}});
    check(trace_with_generator(tags, {}, {0.5, 0.25, 3}), "masks");
}
