// Where buffers live: as the definition says, and found in few looks.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "graph/plan.h"
#include "model/small_models.h"
#include "model/trace/trace.h"

using namespace linnet;

namespace {

std::size_t rounded(std::size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

/// The definition, word for word: the largest buffer first, each at the lowest offset that no buffer alive at
/// the same time covers.
std::vector<std::size_t> slow(const Plan& plan) {
    std::vector<std::size_t> order(plan.values.size()), offsets(order.size()), placed;
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return plan.values[a].bytes > plan.values[b].bytes;
    });
    for (std::size_t i : order) {
        const Value& v = plan.values[i];
        std::size_t at = 0;
        for (bool moved = true; moved;) {
            moved = false;
            for (std::size_t p : placed) {
                const Value& o = plan.values[p];
                const bool meet = o.first <= v.last && v.first <= o.last;
                if (!meet || at + rounded(v.bytes) <= offsets[p] || offsets[p] + rounded(o.bytes) <= at)
                    continue;
                at = offsets[p] + rounded(o.bytes), moved = true;
            }
        }
        offsets[i] = at;
        placed.push_back(i);
    }
    return offsets;
}

/// The plan of a model with so many layers, packed once more: how often free space was looked for.
std::size_t looks(std::int64_t layers, Phase phase) {
    ModelConfig c;
    c.context = 8, c.width = 8, c.layers = layers, c.heads = 2, c.vocabulary = 11;
    test::make_llama(c, 16);
    resolve(c, "test");
    const bool training = phase == Phase::train;
    const TracedModel model = trace(c, training);
    Lowering lowering;
    lowering.phase = phase, lowering.capacity = {4}, lowering.positions = 8;
    Plan plan = make_plan(model.graph, model.graph.program(training ? "loss" : "logits"), lowering);
    CHECK(plan.values.size() > 5 * static_cast<std::size_t>(layers));
    return pack(plan);
}

}  // namespace

TEST_CASE("buffers lie where trying every place puts them, whatever their lives and sizes are") {
    Rng rng(8, 1);
    std::uint64_t drawn = 0;
    auto below = [&](std::uint64_t n) { return static_cast<int>(rng.below(n, drawn++)); };
    for (int round = 0; round < 300; round++) {
        Plan plan;
        const int steps = 1 + below(40), sizes = 1 + below(6);
        for (int i = below(80); i >= 0; i--) {
            Value v;
            v.first = below(static_cast<std::uint64_t>(steps));
            v.last = v.first + below(static_cast<std::uint64_t>(steps - v.first));
            v.bytes =
                static_cast<std::size_t>(below(static_cast<std::uint64_t>(sizes)) * (round % 3 ? 64 : 40));
            plan.values.push_back(v);
        }
        const std::vector<std::size_t> expected = slow(plan);
        pack(plan);
        std::size_t most = 0;
        for (std::size_t i = 0; i < expected.size(); i++) {
            CAPTURE(i);
            if (plan.values[i].bytes > 0) {
                REQUIRE(plan.values[i].offset == expected[i]);
                most = std::max(most, expected[i] + rounded(plan.values[i].bytes));
            }
        }
        CHECK(plan.arena_bytes == most);
    }
}

TEST_CASE("memory of twice the layers is laid out in little more than twice the steps") {
    for (Phase phase : {Phase::train, Phase::write}) {
        const std::size_t few = looks(100, phase), many = looks(200, phase);
        CAPTURE(few);
        CHECK(many < few * 5 / 2);
    }
}
