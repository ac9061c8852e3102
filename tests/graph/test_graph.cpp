#include "graph/graph.h"

#include <doctest/doctest.h>

using namespace linnet;

TEST_CASE("a parameter starts as noise around a mean, or in equal steps, in each stored row anew") {
    Graph graph;
    const ParameterId noisy =
        graph.parameter({.name = "noisy", .shape = {2, 3}, .init_mean = 1, .init_std = 0.5});
    const ParameterId steps =
        graph.parameter({.name = "steps", .shape = Shape(6), .init_mean = -1, .ramp_end = -3, .parts = 3});
    const ParameterId whole = graph.parameter(
        {.name = "whole", .shape = Shape(3), .init_mean = 1, .ramp_end = 0, .parts = stacked});
    const auto& all = graph.parameters();
    CHECK(all[noisy].start(4, 2) == 2);
    for (std::int64_t i = 0; i < 6; i++) CHECK(all[steps].start(i, 2) == -1 - static_cast<double>(i % 3));
    for (std::int64_t i = 0; i < 3; i++) CHECK(all[whole].start(i, 2) == 1 - static_cast<double>(i) / 2);
    CHECK(graph.parameter_count() == 15);
}
