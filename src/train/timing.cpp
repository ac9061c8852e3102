#include "train/timing.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "train/learner.h"

namespace linnet {

namespace {

/// A learner and a batch of random tokens for it.
struct Trial {
    RunConfig run;
    Learner learner;
    Batch batch;

    Trial(const RunConfig& config, std::int64_t vocabulary, int threads)
        : run(with_vocabulary(config, vocabulary)),
          learner(run.model, rows(), threads, static_cast<std::uint64_t>(run.train.seed),
                  numbers_of(run, threads)) {
        Rng rng(static_cast<std::uint64_t>(run.train.seed), 1);
        std::vector<std::int32_t> tokens(static_cast<std::size_t>(run.train.sequence) + 1);
        std::uint64_t draw = 0;
        for (std::int64_t b = 0; b < run.train.batch; b++) {
            for (auto& id : tokens)
                id = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(vocabulary), draw++));
            batch.add(tokens.data(), run.train.sequence, 0, b);
            batch.targets.insert(batch.targets.end(), tokens.begin() + 1, tokens.end());
        }
        batch.training = true;
        batch.loss_scale = 1.0 / static_cast<double>(rows() * run.train.accumulate);
    }
    std::int64_t rows() const { return run.train.batch * run.train.sequence; }

    static RunConfig with_vocabulary(RunConfig config, std::int64_t vocabulary) {
        config.model.vocabulary = vocabulary;
        return config;
    }
};

}  // namespace

StepTiming time_steps(const RunConfig& config, std::int64_t vocabulary, int threads, int steps,
                      double seconds) {
    Trial trial(config, vocabulary, threads);
    const RunConfig& run = trial.run;
    Learner& learner = trial.learner;
    const std::int64_t rows = trial.rows();
    std::vector<double> times;
    StepTiming timing;
    Clock::time_point start = Clock::now();
    for (int step = -1; step < steps && (times.empty() || seconds_since(start) < seconds);
         step++) {  // the first warms up
        Clock::time_point begin = Clock::now();
        timing.loss = 0;
        for (std::int64_t micro = 0; micro < run.train.accumulate; micro++)
            timing.loss += learner.learn(trial.batch) * trial.batch.loss_scale;
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

std::vector<OpShare> profile_step(const RunConfig& config, std::int64_t vocabulary, int threads) {
    Trial trial(config, vocabulary, threads);
    const Graph& graph = trial.learner.traced().graph;
    std::vector<OpShare> shares;
    auto share = [&](std::string_view op, const char* direction) -> OpShare& {
        for (OpShare& s : shares)
            if (s.op == op && s.direction == direction) return s;
        return shares.emplace_back(OpShare{std::string(op), direction});
    };
    static constexpr const char* directions[] = {"forward", "again", "backward", "convert"};
    trial.learner.learn(trial.batch);  // the first touches the memory
    trial.learner.watch(trial.batch, [&](const Executor<float>::Watched& watched) {
        const Node& node = graph.node(watched.step.node);
        const bool converts = watched.step.kind == StepKind::convert,
                   backward = watched.step.kind == StepKind::backward;
        OpShare& s = share(converts ? "convert" : node.op->name,
                           converts ? "" : directions[static_cast<std::size_t>(watched.step.kind)]);
        s.seconds += watched.seconds;
        if (converts) return;
        const Graph::Shapes shapes = graph.shapes(node);
        const double forward = node.op->flops({shapes.in, shapes.parameters, node.attributes},
                                              static_cast<double>(trial.run.train.sequence));
        const std::int64_t per_token =  // an op counts the rows of one token together
            std::max<std::int64_t>(1, graph.spaces()[static_cast<std::size_t>(node.space)].per_parent);
        s.flops += forward * static_cast<double>(watched.rows / per_token) *
                   (node.op->loss ? 3
                    : backward    ? 2
                                  : 1);
    });
    const Clock::time_point begin = Clock::now();
    trial.learner.update(trial.run.train, learning_rate(trial.run.train, 0), 1);
    share("update", "").seconds = seconds_since(begin);
    std::ranges::stable_sort(shares, std::greater(), &OpShare::seconds);
    return shares;
}

}  // namespace linnet
