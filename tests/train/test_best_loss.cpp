#include "train/best_loss.h"

#include <doctest/doctest.h>

using namespace linnet;

TEST_CASE("the best evaluation is kept, and a model is overfitting once validation has clearly risen") {
    BestLoss best_loss;
    CHECK_FALSE(best_loss.any());
    CHECK(best_loss.beats_best(100));
    CHECK(best_loss.observe(10, 3.0));
    CHECK(best_loss.observe(20, 2.0));
    for (int i = 0; i < 3; i++) {
        CHECK_FALSE(best_loss.observe(30 + i, 2.5));
        CHECK_FALSE(best_loss.overfitting());  // a few bad evaluations are no sign yet
    }
    BestLoss hardly = best_loss;
    CHECK_FALSE(hardly.observe(40, 2.001));
    CHECK_FALSE(hardly.overfitting());  // as good as the best
    CHECK_FALSE(best_loss.observe(40, 2.5));
    CHECK(best_loss.overfitting());
    CHECK(best_loss.best_step() == 20);
    CHECK(best_loss.observe(50, 1.9));
    CHECK_FALSE(best_loss.overfitting());
}

TEST_CASE("evaluations read back from a checkpoint decide as those that were saved") {
    BestLoss best_loss;
    for (double loss : {3.0, 2.0, 2.1, 2.2, 2.3}) best_loss.observe(1, loss);
    BestLoss back = BestLoss::from_json(nlohmann::json::parse(best_loss.to_json().dump()));
    CHECK(back.to_json() == best_loss.to_json());
    for (BestLoss* either : {&best_loss, &back}) either->observe(6, 2.4);
    CHECK(best_loss.overfitting());
    CHECK(back.overfitting());
    CHECK_FALSE(BestLoss::from_json(BestLoss().to_json()).any());
    nlohmann::json many = best_loss.to_json();
    many["since"] = std::int64_t{1} << 40;
    CHECK(BestLoss::from_json(many).to_json() == many);
}
