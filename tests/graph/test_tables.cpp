// Tables of positions: made as far as rows reach, each position once.
#include "graph/tables.h"

#include <doctest/doctest.h>

#include "ops/batch.h"

using namespace linnet;

namespace {

std::int64_t made = 0;  // positions, by the op below

std::vector<double> counted_angles(const NodeShape& shape, std::int64_t context, Range positions) {
    made += positions.size();
    return rope_op.position_table(shape, context, positions);
}

}  // namespace

TEST_CASE(
    "a table of positions is made as far as rows reach, each position once, with the whole table's values") {
    Op op = rope_op;
    op.position_table = counted_angles;
    Graph graph;
    const SpaceId tokens = graph.space({"tokens"});
    const StreamId ids = graph.stream({"tokens"});
    const ParameterId words = graph.parameter({.name = "words", .shape = {5, 8}, .init_std = 1});
    const NodeId x = graph.add(embedding_op, "embed", {}, {words}, {}, {tokens, ids});
    const NodeId turned =
        graph.add(op, "turn", {x}, {}, {{"head_width", 4}, {"theta", 10000}, {"halves", 0}});
    const Node& node = graph.node(turned);
    const Graph::Shapes shapes = graph.shapes(node);

    constexpr std::int64_t context = std::int64_t{1} << 24;
    Tables<double> tables;
    const double* table = tables.get(graph, node, context, {});
    made = 0;
    for (std::int64_t end = 1; end <= 5000; end += 7) {
        const std::int64_t ready = tables.reach(graph, node, context, {}, end);
        CHECK(ready >= end);
        CHECK(ready == made);  // what is told to be there is: the executor does not ask again before that
    }
    CHECK(made >= 5000);
    CHECK(made < 7000);
    CHECK(tables.get(graph, node, context, {}) == table);
    const auto whole =
        rope_op.position_table({shapes.in, shapes.parameters, node.attributes, {}}, context, {0, 5000});
    CHECK(std::equal(whole.begin(), whole.end(), table));

    // A context's end is no whole piece.
    const double* small = tables.get(graph, node, 1500, {});
    made = 0;
    CHECK(tables.reach(graph, node, 1500, {}, 1025) == 1500);
    CHECK(tables.reach(graph, node, 1500, {}, 1500) == 1500);
    CHECK(tables.reach(graph, node, 1500, {}, 1501) == 1500);
    CHECK(made == 1500);
    CHECK(std::equal(whole.begin(), whole.begin() + 1500 * 4, small));
}
