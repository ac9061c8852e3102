// What an entry of train.groups takes over from the run's own settings.
#include "train/optimize/groups.h"

#include <doctest/doctest.h>

#include "support.h"

using namespace linnet;
using linnet::test::refusal;
using nlohmann::json;

namespace {

std::vector<ParameterGroup> groups_under(const OptimizerConfig& own, const json& entry) {
    return parameter_groups(own, {}, json::array({entry}), "c");
}

}  // namespace

TEST_CASE("a group takes over no setting that its own kind of optimizer lacks") {
    OptimizerConfig own;
    own.kind = "muon", own.momentum_warmup = 10, own.cautious_decay = true;
    const json lion = {{"match", "x"}, {"kind", "lion"}}, sgd = {{"match", "x"}, {"kind", "sgd"}};
    CHECK(groups_under(own, {{"match", "x"}}).at(1).optimizer.momentum_warmup == 10);
    CHECK(groups_under(own, lion).at(1).optimizer.momentum_warmup == 0);
    CHECK(groups_under(own, lion).at(1).optimizer.cautious_decay);
    CHECK(groups_under(own, sgd).at(1).optimizer.momentum_warmup == 10);
    CHECK_FALSE(groups_under(own, sgd).at(1).optimizer.cautious_decay);
    CHECK(groups_under(own, lion).at(0).optimizer.momentum_warmup == 10);
    // What its own entry asks for is refused.
    json asked = lion;
    asked["momentum_warmup"] = 5;
    CHECK(refusal([&] { groups_under(own, asked); }) ==
          "c: train.groups[0].momentum_warmup: expected 0, as lion has no momentum, got 5");
    asked = sgd;
    asked["cautious_decay"] = true;
    CHECK(refusal([&] {
              groups_under(own, asked);
          }).starts_with("c: train.groups[0].cautious_decay: expected false, as sgd adds"));
}
