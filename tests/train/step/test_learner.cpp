// What a learner tells of a step besides its loss.
#include "train/step/learner.h"

#include <doctest/doctest.h>

#include <numeric>

#include "model/small_models.h"

using namespace linnet;

TEST_CASE("choices of experts are counted from one question to the next") {
    const ModelConfig config = test::config_with(11, {test::small_model,
                                                      {{"model.experts.count", 4},
                                                       {"model.experts.used", 2},
                                                       {"model.experts.width", 6},
                                                       {"model.ffn.gated", true},
                                                       {"model.ffn.bias", false}}});
    Learner learner(config, 12, 1, 1, groups_of(TrainConfig()));
    Batch batch = test::two_sequences();
    batch.loss_scale = 1.0F / 12;
    for (std::int64_t batches : {1, 1, 3}) {
        for (std::int64_t i = 0; i < batches; i++) learner.learn(batch);
        const std::vector<ExpertUse> use = learner.take_expert_use();
        REQUIRE(use.size() == 2);
        for (const ExpertUse& layer : use)
            CHECK(std::accumulate(layer.choices.begin(), layer.choices.end(), std::int64_t{0}) ==
                  batches * 12 * 2);
    }
}
