#include "train/forecast/pilot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/clock.h"
#include "base/error.h"
#include "base/terminal.h"
#include "train/step/learner.h"
#include "train/step/precision.h"
#include "train/step/timing.h"

namespace linnet {
namespace {

/// The config of a default run for so short a time, but with the planned run's vocabulary and windows.
RunConfig pilot_config(const RunSetup& setup, double seconds, double flops_per_s) {
    const RunConfig& planned = setup.config;
    nlohmann::json chosen =
        choose_config({setup.text_size.bytes, seconds, flops_per_s, planned.model.vocabulary});
    const std::int64_t own = chosen["model"]["context"], context = planned.model.context;
    chosen["model"]["context"] = context;
    chosen["train"]["sequence"] = planned.train.sequence;
    chosen["train"]["batch"] = std::max<std::int64_t>(
        1, chosen["train"]["batch"].get<std::int64_t>() * own / planned.train.sequence);
    RunConfig config = read_run_config(chosen, "", {});
    config.model.vocabulary = planned.model.vocabulary;
    config.train.seed = planned.train.seed;
    config.train.precision = fastest_precision(config, setup.threads);
    return config;
}

/// Steps and warm-up for so many seconds. Before there is a learner, whose groups of parameters keep the
/// schedule.
void set_steps(RunSetup& setup, double seconds) {
    RunConfig& config = setup.config;
    const double step =
        seconds_of_step(config, config.model.vocabulary, setup.threads, std::min(0.5, 0.05 * seconds));
    fit_schedule(config, {}, step, seconds, setup.text_size);
}

class Pilot {
  public:
    Pilot(RunSetup& setup, double seconds)
        : setup_(setup),
          seconds_(seconds),
          learner_(setup.config.model, setup.rows(), setup.threads,
                   static_cast<std::uint64_t>(setup.config.train.seed), groups_of(setup.config.train), {},
                   numbers_of(setup.config)),
          batches_(batches_of(setup)) {}

    PilotResult run() {
        TrainConfig& t = setup_.config.train;
        const std::int64_t speed_steps = 3;
        const Clock::time_point begun = Clock::now();
        StatusLine line(0);
        for (std::int64_t step = 0; step < t.steps; step++) {
            train_step(step);
            const double elapsed = seconds_since(begun);
            line.show("pilot: " + human_seconds(elapsed) + " of " + human_seconds(seconds_));
            // As in a run that follows the clock; but this one is so short that it may look at every step.
            if (step >= speed_steps && static_cast<double>(step) <= decay_begin(t))
                t.steps = fitting_steps(t, step + 1, elapsed, seconds_, setup_.text_size);
        }
        PilotResult result;
        evaluate(seconds_since(begun) / static_cast<double>(t.steps), result);
        line.clear();
        result.seconds = seconds_since(begun);
        result.parameters = learner_.parameter_count();
        result.tokens = t.steps * t.step_tokens();
        say(result);
        return result;
    }

  private:
    void say(const PilotResult& result) const {
        char bits[64] = "";
        if (result.bits_per_byte)
            std::snprintf(bits, sizeof bits, ": %.3f bits per byte", *result.bits_per_byte);
        note("pilot, " + human_seconds(result.seconds) + ": " +
             human_count(static_cast<double>(result.parameters)) + " parameters, " +
             human_count(static_cast<double>(result.tokens)) + " tokens" + bits);
    }

    void train_step(std::int64_t step) {
        const double loss = learn_step(setup_, step, learner_, batches_).loss;
        const StepResult done = learner_.update(setup_.config.train, step + 1);
        if (!std::isfinite(loss) || !std::isfinite(done.norm))
            fail(Exit::diverged, "", "the pilot's step " + std::to_string(step + 1), "finite numbers",
                 "a loss of " + std::to_string(std::fabs(loss)));
    }

    /// Of each text, by their weights.
    void evaluate(double step_seconds, PilotResult& result) {
        const double most = 0.15 * seconds_;  // about
        const auto batches = std::max<std::int64_t>(
            8, static_cast<std::int64_t>(3 * most / step_seconds / static_cast<double>(setup_.texts())));
        double bits = 0, weights = 0;
        for (std::size_t part = 0; part < setup_.texts(); part++) {
            double nats = 0;
            std::int64_t tokens = 0;
            for (std::int64_t i = 0; fill_validation(setup_, part, i, batches, work_); i++)
                nats += learner_.evaluate(work_), tokens += work_.rows.count;
            if (tokens == 0) continue;
            const double weight = setup_.windows->weight(part);
            bits += weight * bits_per_byte(setup_, part, nats / static_cast<double>(tokens));
            weights += weight;
        }
        if (weights > 0) result.bits_per_byte = bits / weights;
    }

    RunSetup& setup_;
    double seconds_;
    Learner learner_;
    BatchesAhead batches_;
    Batch work_;  // to evaluate
};

}  // namespace

PilotResult run_pilot(RunSetup& setup, double seconds, double flops_per_s) {
    const RunConfig planned = setup.config;
    setup.config = pilot_config(setup, seconds, flops_per_s);
    set_steps(setup, seconds);
    const PilotResult result = Pilot(setup, seconds).run();
    setup.config = planned;
    return result;
}

}  // namespace linnet
