#include "train/step/timing.h"

#include <algorithm>
#include <functional>

#include "base/clock.h"
#include "base/rng.h"
#include "kernels/peaks.h"

namespace linnet {

namespace {

RunConfig with_vocabulary(RunConfig run, std::int64_t vocabulary) {
    run.model.vocabulary = vocabulary;
    return run;
}

/// Sequences of random tokens, each of which is to tell the next.
Batch random_tokens(const RunConfig& run) {
    const auto vocabulary = static_cast<std::uint64_t>(run.model.vocabulary);
    Rng rng(static_cast<std::uint64_t>(run.train.seed), 1);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(run.train.sequence) + 1);
    std::uint64_t draw = 0;
    Batch batch;
    for (std::int64_t b = 0; b < run.train.batch; b++) {
        for (auto& id : tokens) id = static_cast<std::int32_t>(rng.below(vocabulary, draw++));
        batch.add(tokens.data(), run.train.sequence, 0, b);
        batch.targets.insert(batch.targets.end(), tokens.begin() + 1, tokens.end());
    }
    batch.training = true;
    batch.step_share = 1.0 / static_cast<double>(run.train.accumulate);
    batch.loss_scale = batch.step_share / static_cast<double>(batch.rows.count);
    return batch;
}

/// A learner and a micro-batch.
struct Bench {
    RunConfig run;
    Batch batch;
    double length;  // rows of the sequence that a row stands in, on average
    Learner learner;

    explicit Bench(const TimedRun& timed)
        : run(with_vocabulary(timed.config, timed.vocabulary)),
          batch(timed.batch ? *timed.batch : random_tokens(run)),
          length(mean_length(batch.rows)),
          learner(run.model, run.train.batch * run.train.sequence, timed.threads,
                  static_cast<std::uint64_t>(run.train.seed), groups_of(run.train), timed.start,
                  numbers_of(run)) {}

    static double mean_length(const Rows& rows) {
        double squares = 0;
        for (const Segment& s : rows.segments)
            squares += static_cast<double>(s.length) * static_cast<double>(s.length);
        return squares / static_cast<double>(std::max<std::int64_t>(1, rows.count));
    }
};

/// The entry of an op's direction, made where it is new.
StepShare& entry(std::vector<StepShare>& all, std::string_view op, std::string_view direction) {
    for (StepShare& share : all)
        if (share.op == op && share.direction == direction) return share;
    return all.emplace_back(StepShare{std::string(op), std::string(direction)});
}

/// Arithmetic of a step of the plan, for the batch that was learned last; backward takes twice what forward
/// does.
double flops_of(const Bench& bench, const PlanStep& step) {
    if (step.kind == StepKind::convert) return 0;
    const Graph& graph = bench.learner.traced().graph;
    const Node& node = graph.node(step.node);
    const double tokens = graph.tokens(step.space, bench.learner.rows(step.space), bench.length),
                 forward = tokens * graph.flops(node, bench.length);
    if (step.kind == StepKind::backward) return (node.op->loss ? 3 : 2) * forward;
    return forward;
}

/// That of the whole plan; what is computed again does not count.
double flops_of_batch(const Bench& bench) {
    double flops = 0;
    for (const PlanStep& step : bench.learner.plan().steps)
        if (step.kind != StepKind::recompute) flops += flops_of(bench, step);
    return flops;
}

/// Adds a step of the plan to the shares.
void add_watched(const Bench& bench, const Executor<float>::Watched& watched, std::vector<StepShare>& all) {
    const Op& op = *bench.learner.traced().graph.node(watched.step.node).op;
    const StepKind kind = watched.step.kind;
    StepShare& share = kind == StepKind::convert     ? entry(all, "convert", "")
                       : kind == StepKind::backward  ? entry(all, op.name, op.loss ? "both" : "backward")
                       : kind == StepKind::recompute ? entry(all, op.name, "again")
                                                     : entry(all, op.name, "forward");
    share.seconds += watched.seconds, share.flops += flops_of(bench, watched.step);
}

}  // namespace

StepTiming time_steps(const TimedRun& timed, int steps, double seconds) {
    Bench bench(timed);
    const TrainConfig& train = bench.run.train;
    std::vector<double> times, updates;
    StepTiming timing;
    Clock::time_point first = Clock::now();
    for (int step = -1; step < steps && (times.empty() || seconds_since(first) < seconds);
         step++) {  // the first warms up
        Clock::time_point begin = Clock::now();
        timing.loss = 0;
        for (std::int64_t micro = 0; micro < train.accumulate; micro++)
            timing.loss += bench.learner.learn(bench.batch) * bench.batch.loss_scale;
        const Clock::time_point learned = Clock::now();
        bench.learner.update(train, step + 2);
        if (step >= 0) times.push_back(seconds_since(begin)), updates.push_back(seconds_since(learned));
    }
    std::sort(times.begin(), times.end()), std::sort(updates.begin(), updates.end());
    const double median = times[times.size() / 2], micros = static_cast<double>(train.accumulate);
    timing.step_ms = median * 1e3, timing.update_ms = updates[updates.size() / 2] * 1e3;
    timing.tokens_per_s = static_cast<double>(bench.batch.rows.count) * micros / median;
    timing.flops_per_s = flops_of_batch(bench) * micros / median;
    return timing;
}

double seconds_of_step(const RunConfig& config, std::int64_t vocabulary, int threads, double seconds) {
    constexpr std::int64_t enough_rows = 4096;  // for products to reach their speed
    RunConfig part = config;
    TrainConfig& t = part.train;
    t.batch = std::clamp<std::int64_t>(enough_rows / t.sequence, 1, t.batch), t.accumulate = 1;
    const double times =
        static_cast<double>(config.train.batch * config.train.accumulate) / static_cast<double>(t.batch);
    const StepTiming timing = time_steps({part, vocabulary, threads}, 30, seconds);
    return ((timing.step_ms - timing.update_ms) * times + timing.update_ms) / 1e3;
}

std::vector<StepShare> profile_steps(const TimedRun& timed, int steps) {
    Bench bench(timed);
    const TrainConfig& train = bench.run.train;
    std::vector<StepShare> all;
    for (int step = -1; step < steps; step++) {
        if (step == 0) all.clear();  // the first warms up
        for (std::int64_t micro = 0; micro < train.accumulate; micro++)
            bench.learner.watch(bench.batch, [&](const Executor<float>::Watched& watched) {
                add_watched(bench, watched, all);
            });
        Clock::time_point begin = Clock::now();
        bench.learner.update(train, step + 2);
        entry(all, train.optimizer.kind, "update").seconds += seconds_since(begin);
    }
    for (StepShare& share : all) share.seconds /= steps, share.flops /= steps;
    std::ranges::stable_sort(all, std::greater(), &StepShare::seconds);
    return all;
}

ProductsPeak products_peak(const std::string& precision, int threads, double f32) {
    if (f32 <= 0) f32 = measured_peak_flops(threads);
    if (precision != "bf16" || !kernels().narrow.rounded) return {"f32", f32};
    const double bf16 = std::max(measured_tile_flops(threads), measured_bf16_flops(threads));
    return bf16 > f32 ? ProductsPeak{"bf16", bf16} : ProductsPeak{"f32", f32};
}

}  // namespace linnet
