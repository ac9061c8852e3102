#include "train/candidates.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "model/architectures.h"
#include "model/trace/trace.h"

using namespace linnet;

namespace {

RunConfig chosen(std::uint64_t bytes, double seconds, double flops = 5e11) {
    RunConfig config =
        read_run_config(choose_config({bytes, seconds, usual_share * flops, 0}), "default config", {});
    config.model.vocabulary = config.tokenizer.kind == "byte" ? 256 : config.tokenizer.vocab_size;
    return config;
}

std::int64_t parameters(const RunConfig& config) {
    return trace(config.model, false).graph.parameter_count();
}

}  // namespace

TEST_CASE(
    "more text and more time never choose a smaller model, and every choice is one that other runtimes "
    "load") {
    double sizes[] = {1, 1e3, 1e5, 3e5, 1e6, 4e6, 1e7, 1e8, 1e9, 1e11, 1e15},
           times[] = {0.1, 5, 60, 120, 600, 3600, 86400, 1e7};
    std::int64_t before_size = 0;
    for (double bytes : sizes) {
        std::int64_t before_time = 0;
        for (double seconds : times) {
            CAPTURE(bytes);
            CAPTURE(seconds);
            RunConfig config = chosen(static_cast<std::uint64_t>(bytes), seconds);
            CHECK(architecture_of(config.model).name == "qwen3");
            CHECK(config.train.optimizer.lr > 1e-4);
            CHECK(parameters(config) >= before_time);
            before_time = parameters(config);
        }
        CHECK(before_time >= before_size);
        before_size = before_time;
    }
    CHECK(before_size > 50'000'000);
}

TEST_CASE("a large vocabulary chooses a smaller model") {
    auto width = [](std::int64_t vocabulary, double seconds) {
        return choose_config({10'000'000'000, seconds, usual_share * 5e11, vocabulary})["model"]["width"]
            .get<std::int64_t>();
    };
    bool smaller = false;
    for (double seconds = 1; seconds < 1e7; seconds *= 1.5) {
        CHECK(width(50257, seconds) <= width(0, seconds));
        smaller |= width(50257, seconds) < width(0, seconds);
    }
    CHECK(smaller);
    // A short text's own vocabulary is small.
    CHECK(chosen(1'000'000, 120, 2.05e11).model.width > chosen(10'000'000, 120, 2.05e11).model.width);
}

TEST_CASE("the best of the candidates is the one that ends lowest, and it was measured") {
    const Budget budget{10'000'000, 120, 3e11, 0};
    const Choice unmeasured = choose(budget);
    CHECK(unmeasured.candidates[unmeasured.best].config == choose_config(budget));
    for (double speed : {0.01, 1.0, 100.0}) {  // times what was thought
        std::vector<std::int64_t> asked;
        const Choice choice = choose(budget, [&](ModelCandidate& candidate) {
            asked.push_back(candidate.config["model"]["width"]);
            candidate.precision = "bf16";
            // Narrow models reach less.
            return candidate.step_flops / (speed * 3e9 * static_cast<double>(asked.back()));
        });
        const ModelCandidate& best = choice.candidates[choice.best];
        const auto width = best.config["model"]["width"].get<std::int64_t>();
        CHECK(best.measured);
        CHECK(std::ranges::count(asked, width) > 0);
        CHECK(asked.size() <= choice.candidates.size());
        CHECK(best.step_seconds == doctest::Approx(best.step_flops / (speed * 3e9 * double(width))));
        for (const ModelCandidate& candidate : choice.candidates) {
            CHECK(candidate.precision == (candidate.measured ? "bf16" : ""));
            CHECK(candidate.bits_per_byte >= best.bits_per_byte);
            CHECK(candidate.tokens > 0);
        }
    }
    // What cannot be measured is chosen by the speed that is usual.
    const Choice blind = choose(budget, [](const ModelCandidate&) { return 0.0; });
    CHECK(blind.best == unmeasured.best);
}

TEST_CASE("what is set by hand is part of every candidate, and the schedule is chosen for it") {
    Budget budget{100'000'000, 600, 3e11, 0};
    const Choice usual = choose(budget);
    budget.settings = {"train.batch=1", "train.accumulate=3", "tokenizer.vocab_size=300"};
    const Choice set = choose(budget);
    for (const ModelCandidate& candidate : set.candidates) {
        const auto context = candidate.config["model"]["context"].get<double>();
        CHECK(candidate.step_tokens == 3 * context);
        CHECK(candidate.vocabulary == 300);
    }
    // Small batches take nothing from what fits the time.
    CHECK(set.candidates[set.best].tokens > 0.5 * usual.candidates[usual.best].tokens);
    // Shapes that it contradicts are left out; what would have been chosen anyway changes nothing.
    budget = {1'100'000, 600, 3e11, 0, {"model.kv_heads=2"}};
    CHECK(choose(budget).candidates.back().config["model"]["heads"] == 4);
    budget.settings = {};
    const nlohmann::json free = choose_config(budget);
    for (const char* key : {"width", "layers", "heads"})
        budget.settings.push_back("model." + std::string(key) + "=" + free["model"][key].dump());
    budget.settings.push_back("model.ffn.width=" + free["model"]["ffn"]["width"].dump());
    CHECK(choose_config(budget)["train"]["batch"] == free["train"]["batch"]);
    CHECK_THROWS_AS(choose({1'100'000, 600, 3e11, 0, {"model.kv_heads=7"}}), Error);
    budget.bytes = 100'000'000;
    budget.settings = {"model.width=64", "model.heads=2"};
    for (const ModelCandidate& candidate : choose(budget).candidates)
        CHECK(candidate.parameters < 12 * (4 * 64 * 64 + 3 * 64 * 2048) + 64 * 32768);
}

TEST_CASE("candidates are those that the text allows, the smallest first, none twice") {
    for (double bytes : {1e4, 1e6, 1e7, 1e9, 1e12}) {
        const Choice choice = choose({static_cast<std::uint64_t>(bytes), 600, 3e11, 0});
        for (std::size_t i = 1; i < choice.candidates.size(); i++)
            CHECK(choice.candidates[i].parameters > choice.candidates[i - 1].parameters);
        CHECK(choice.candidates.size() <= (bytes < 1e5 ? 2 : 13));
        // A text is read only so often, however much time there is.
        const Choice long_one = choose({static_cast<std::uint64_t>(bytes), 1e12, 3e11, 0});
        for (const ModelCandidate& candidate : long_one.candidates) CHECK(candidate.tokens < 25 * bytes);
    }
}

TEST_CASE("a default schedule fits the time, reads a small text only so often, and leaves what was set") {
    RunConfig config = chosen(10'000'000, 150);
    fit_schedule(config, {}, 0.05, 150, {10'000'000, 3'500'000});
    const TrainConfig& t = config.train;
    CHECK(static_cast<double>(t.steps) * 0.05 < 150);
    CHECK(static_cast<double>(t.steps) * 0.05 > 0.9 * 150);
    CHECK(learning_rate(t, t.steps) == 0);
    CHECK(learning_rate(t, t.schedule.warmup) == doctest::Approx(t.optimizer.lr));
    CHECK(static_cast<double>(t.eval_every) * 0.05 < 60);
    CHECK(t.schedule.warmup < t.steps / 4);

    RunConfig set = chosen(10'000'000, 150);
    fit_schedule(set, {"train.steps=7", "train.eval_every=3"}, 0.05, 150, {10'000'000, 3'500'000});
    CHECK(set.train.steps == TrainConfig().steps);
    CHECK(set.train.eval_every == TrainConfig().eval_every);

    RunConfig small = chosen(100'000, 1e6);
    fit_schedule(small, {}, 0.01, 1e6, {100'000, 90'000});
    double epochs =
        static_cast<double>(small.train.steps * small.train.batch * small.train.sequence) / 90'000;
    CHECK(epochs < 100);

    RunConfig slow = chosen(10'000'000, 40);  // evaluations of four batches take longer than steps
    fit_schedule(slow, {}, 1.2, 40, {10'000'000, 3'500'000});
    const double steps = static_cast<double>(slow.train.steps);
    CHECK(steps / static_cast<double>(slow.train.eval_every) * 4 / 3 < 0.11 * steps);
    CHECK(1.2 * (steps + std::floor(steps / static_cast<double>(slow.train.eval_every)) * 4 / 3) < 40);

    RunConfig endless = chosen(10'000'000, 1e300);  // more steps than an integer holds
    fit_schedule(endless, {}, 0.05, 1e300, {10'000'000, 3'500'000});
    CHECK(endless.train.steps > 1000);
    CHECK(fitting_steps(endless.train, 10, 0.5, 1e300, {10'000'000, 3'500'000}) > 1000);

    for (double step : {1e-6, 1.0, 1e4}) {  // a step may be longer than the time
        RunConfig odd = chosen(10'000'000, 1);
        fit_schedule(odd, {}, step, 1, {10'000'000, 3'500'000});
        CHECK(odd.train.steps >= 1);
        CHECK(odd.train.eval_every >= 1);
        CHECK(odd.train.schedule.warmup <= odd.train.steps);
    }
}

TEST_CASE(
    "the end follows the clock until the learning rate decays, and never changes a step that was made") {
    RunConfig config = chosen(10'000'000, 100);
    TextSize text{10'000'000, 3'500'000};
    fit_schedule(config, {}, 0.1, 100, text);
    TrainConfig t = config.train;
    std::int64_t planned = t.steps;
    CHECK(fitting_steps(t, 100, 10.0, 100, text) ==
          doctest::Approx(static_cast<double>(planned)).epsilon(0.06));
    TrainConfig slow = t;
    slow.steps = fitting_steps(t, 100, 20.0, 100, text);  // half as fast as measured
    CHECK(slow.steps < 0.6 * static_cast<double>(planned));
    CHECK(slow.steps > 0.4 * static_cast<double>(planned));
    for (std::int64_t step = 0; step <= 100; step++)
        CHECK(learning_rate(slow, step) == learning_rate(t, step));
    CHECK(learning_rate(slow, slow.steps) == 0);
    TrainConfig late = t;
    std::int64_t done = planned / 2;
    late.steps = fitting_steps(t, done, 99.0, 100, text);  // hardly any time is left
    for (std::int64_t step = 0; step < done; step++)
        CHECK(learning_rate(late, step) == learning_rate(t, step));
    CHECK(fitting_steps(t, planned * 7 / 10, 99.0, 100, text) == planned);  // it decays: left as it is
}

TEST_CASE("the rate of a run from a model falls with its width, and is bounded for narrow ones") {
    const auto rate = [](std::int64_t width, bool adapter) {
        ModelConfig model;
        model.width = width;
        return choose_tuning(model, adapter)["train"]["optimizer"]["lr"].get<double>();
    };
    CHECK(rate(2048, false) == doctest::Approx(0.1 / 2048).epsilon(0.05));
    CHECK(rate(2048, true) == doctest::Approx(1.0 / 2048).epsilon(0.05));
    CHECK(rate(16, false) == doctest::Approx(5e-4));
    CHECK(rate(16, true) == doctest::Approx(5e-3));
}
