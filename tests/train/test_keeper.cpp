#include "train/keeper.h"

#include <doctest/doctest.h>

using namespace linnet;

TEST_CASE("the best evaluation is kept, and a model is overfitting once validation has clearly risen") {
    Keeper keeper;
    CHECK_FALSE(keeper.any());
    CHECK(keeper.beats_best(100));
    CHECK(keeper.observe(10, 3.0));
    CHECK(keeper.observe(20, 2.0));
    for (int i = 0; i < 3; i++) {
        CHECK_FALSE(keeper.observe(30 + i, 2.5));
        CHECK_FALSE(keeper.overfitting());  // a few bad evaluations are no sign yet
    }
    Keeper hardly = keeper;
    CHECK_FALSE(hardly.observe(40, 2.001));
    CHECK_FALSE(hardly.overfitting());  // as good as the best
    CHECK_FALSE(keeper.observe(40, 2.5));
    CHECK(keeper.overfitting());
    CHECK(keeper.best_step() == 20);
    CHECK(keeper.observe(50, 1.9));
    CHECK_FALSE(keeper.overfitting());
}

TEST_CASE("a keeper taken from a checkpoint decides as the one that was saved") {
    Keeper keeper;
    for (double loss : {3.0, 2.0, 2.1, 2.2, 2.3}) keeper.observe(1, loss);
    Keeper back = Keeper::from_json(nlohmann::json::parse(keeper.to_json().dump()));
    CHECK(back.to_json() == keeper.to_json());
    for (Keeper* k : {&keeper, &back}) k->observe(6, 2.4);
    CHECK(keeper.overfitting());
    CHECK(back.overfitting());
    CHECK_FALSE(Keeper::from_json(Keeper().to_json()).any());
}
