// Parameters that training keeps below a bound.
#include <doctest/doctest.h>

#include <algorithm>

#include "model/small_models.h"
#include "train/step/learner.h"

using namespace linnet;

namespace {

constexpr float slowest = -1e-4F;

ModelConfig config_of(const char* mixer) {
    return test::config_with(11, {test::small_model,
                                  {{"model.mixer", mixer},
                                   {"model.position.kind", "none"},
                                   {"model.norm.kind", "rms"},
                                   {"model.ffn.kind", "none"},
                                   {"model.ssm.state", 3},
                                   {"model.ssm.heads", 4},
                                   {"model.init_std", 1}}});
}

/// Only the decays move, by about 0.5 a step.
TrainConfig run_of_decays() {
    TrainConfig train;
    train.schedule.kind = "constant", train.schedule.warmup = 0, train.clip = 0;
    train.optimizer.lr = 0, train.optimizer.epsilon = 1e-12;
    train.groups = nlohmann::json::parse(R"([{"match": "*ssm_a", "lr": 0.5}])");
    return train;
}

std::vector<Tensor> decays(const Learner& learner) {
    std::vector<Tensor> found;
    const std::vector<Tensor> all = learner.parameters();
    for (std::size_t i = 0; i < all.size(); i++)
        if (learner.traced().graph.parameters()[i].name.ends_with("ssm_a")) found.push_back(all[i]);
    return found;
}

void step(Learner& learner, const TrainConfig& train, std::int64_t number) {
    Batch batch = test::two_sequences();
    batch.loss_scale = 1.0F / 12;
    learner.learn(batch);
    REQUIRE(learner.update(train, number).applied);
}

}  // namespace

TEST_CASE("Mamba's decays stay below 0, wherever gradients push them") {
    std::int64_t reached = 0;
    for (const char* mixer : {"mamba", "mamba2"}) {
        CAPTURE(mixer);
        const TrainConfig train = run_of_decays();
        Learner learner(config_of(mixer), 12, 1, 1, groups_of(train));
        const std::vector<Tensor> all = decays(learner);
        REQUIRE(all.size() == 2);
        for (std::int64_t i = 1; i <= 8; i++) step(learner, train, i);
        for (const Tensor& a : all)
            for (std::int64_t i = 0; i < a.shape.count(); i++) {
                CHECK(a.as<float>()[i] <= slowest);
                reached += a.as<float>()[i] == slowest;
            }
        // What an older run's file may hold.
        for (const Tensor& a : all) std::fill_n(a.as<float>(), a.shape.count(), 0.01F);
        step(learner, train, 9);
        for (const Tensor& a : all)
            CHECK(std::all_of(a.as<float>(), a.as<float>() + a.shape.count(),
                              [](float x) { return x <= slowest; }));
    }
    CHECK(reached > 0);
}
