#include "train/timing.h"

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"

namespace linnet {

StepTiming time_steps(const RunConfig& config, std::int64_t vocabulary, int threads, int steps,
                      double seconds, const LearnerStart& start) {
    RunConfig run = config;
    run.model.vocabulary = vocabulary;
    std::int64_t rows = run.train.batch * run.train.sequence;
    Learner learner(run.model, rows, threads, static_cast<std::uint64_t>(run.train.seed), start);
    Rng rng(static_cast<std::uint64_t>(run.train.seed), 1);
    Batch batch;
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(run.train.sequence) + 1);
    std::uint64_t draw = 0;
    for (std::int64_t b = 0; b < run.train.batch; b++) {
        for (auto& id : tokens)
            id = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(vocabulary), draw++));
        batch.add(tokens.data(), run.train.sequence, 0, b);
        batch.targets.insert(batch.targets.end(), tokens.begin() + 1, tokens.end());
    }
    batch.training = true;
    batch.loss_scale = 1.0 / static_cast<double>(rows * run.train.accumulate);
    std::vector<double> times;
    StepTiming timing;
    Clock::time_point first = Clock::now();
    for (int step = -1; step < steps && (times.empty() || seconds_since(first) < seconds);
         step++) {  // the first warms up
        Clock::time_point begin = Clock::now();
        timing.loss = 0;
        for (std::int64_t micro = 0; micro < run.train.accumulate; micro++)
            timing.loss += learner.learn(batch) * batch.loss_scale;
        learner.update(run.train, learning_rate(run.train, step + 1), step + 2);
        if (step >= 0) times.push_back(seconds_since(begin));
    }
    std::sort(times.begin(), times.end());
    double median = times[times.size() / 2];
    timing.step_ms = median * 1e3;
    timing.tokens_per_s = static_cast<double>(rows * run.train.accumulate) / median;
    timing.flops_per_s =
        timing.tokens_per_s * 3 * forward_flops(learner.traced(), static_cast<double>(run.train.sequence));
    return timing;
}

}  // namespace linnet
