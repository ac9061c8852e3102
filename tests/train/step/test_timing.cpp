// What is counted of a step that is timed.
#include "train/step/timing.h"

#include <doctest/doctest.h>

#include "model/small_models.h"
#include "model/trace/trace.h"

using namespace linnet;

TEST_CASE("a timed step's arithmetic is three times that of forward, whatever is computed again") {
    TimedRun timed;
    timed.vocabulary = 64;
    timed.config.model = test::config_with(64, {test::small_model});
    TrainConfig& train = timed.config.train;
    train.batch = 2, train.sequence = 6, train.precision = "f32";
    const double forward = forward_flops(training_graph(timed.config.model, {}), 6);
    for (const char* recompute : {"none", "blocks"}) {
        CAPTURE(recompute);
        train.recompute = recompute;
        const StepTiming timing = time_steps(timed, 2);
        CHECK(timing.flops_per_s / timing.tokens_per_s == doctest::Approx(3 * forward).epsilon(0.01));
    }
}
