#include "train/chosen.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/terminal.h"
#include "kernels/peaks.h"
#include "model/encode/encoder_text.h"
#include "model/trace/trace.h"
#include "train/candidates.h"
#include "train/run_notes.h"
#include "train/step/precision.h"
#include "train/step/timing.h"
#include "train/task/objectives.h"

namespace linnet {
namespace {

using nlohmann::json;

// A model that has learned already reads a text tuning_epochs times at most. Of a small one that would be a
// few large steps, which learn less than a hundred small ones (500 short prompts with answers: 5.0 and 1.4
// nats).
constexpr std::int64_t least_steps_of_a_reading = 16;

/// Whether the end of a run whose config is ours follows the clock: then there is a time.
void choose_end(const TrainingOptions& options, RunSetup& setup) {
    setup.by_time = options.time_limit_s > 0 ||
                    (!last_setting(settings_of(options), "train.steps") && options.epochs == 0);
    if (setup.by_time && setup.time_limit_s == 0) setup.time_limit_s = default_seconds;
}

/// Whether steps that were made stay as they are where the run's end moves: no learning rate depends on it
/// before all decay together.
bool end_may_move(const TrainConfig& t) {
    bool may = t.schedule.kind == "wsd" && t.schedule.decay < 1;
    for (const ParameterGroup& group : groups_of(t))
        may &= !schedule_kind(group.schedule.kind).to_the_end && group.schedule.decay == t.schedule.decay;
    return may;
}

[[noreturn]] void refuse_time(double least, const std::string& given, const std::string& why) {
    fail(Exit::usage, "", "--time", "at least " + two_digits(1.1 * least) + "s", given, why);
}

/// A time that is too short for one step and one evaluation is refused.
void require_time(const TrainingOptions& options, double step_seconds, double seconds) {
    const double least = seconds_to_first_loss(step_seconds);
    if (seconds >= least) return;
    const bool given = options.time_limit_s > 0;
    refuse_time(
        least, given ? two_digits(seconds) + "s" : "none, which means " + human_seconds(seconds),
        given
            ? "a step and an evaluation take as long"
            : "a step and an evaluation take as long; a smaller train.batch or train.accumulate takes less");
}

/// As measured when the model was chosen, or now.
double step_seconds_of(const RunSetup& setup) {
    if (!setup.choice.candidates.empty() && setup.choice.candidates[setup.choice.best].measured)
        return setup.choice.candidates[setup.choice.best].step_seconds;
    TimedRun timed{setup.config, setup.config.model.vocabulary, setup.threads, setup.start.learner};
    if (setup.task) fill_batch(setup, 0, 0, timed.batch.emplace());  // what an encoder reads only it can make
    return time_steps(timed, 30, std::min(2.0, 0.03 * setup.time_limit_s)).step_ms / 1e3;
}

/// A given config's steps are the most that its end may be moved to: those that the time allows, if fewer.
void follow_clock_within(const TrainingOptions& options, RunSetup& setup) {
    const TrainConfig& t = setup.config.train;
    setup.by_time = options.time_limit_s > 0 && options.epochs == 0 && !setup.resumed &&
                    !last_setting(settings_of(options), "train.steps") && end_may_move(t);
    if (!setup.by_time) return;
    const auto tokens = static_cast<double>(std::max<std::uint64_t>(setup.text_size.train_tokens, 1));
    setup.text_size.epochs = static_cast<double>(t.steps) * static_cast<double>(t.step_tokens()) / tokens;
    note("the schedule ends with the time, after " + grouped(t.steps) + " steps at most (--steps keeps it)");
}

/// Steps, warm-up and cadence, from the speed of some steps.
void choose_schedule(const TrainingOptions& options, RunSetup& setup) {
    std::vector<std::string> settings = settings_of(options);
    RunConfig& config = setup.config;
    if (options.epochs > 0) settings.push_back("train.steps=" + std::to_string(config.train.steps));
    if (!setup.by_time) return fit_cadence(config, settings);
    setup.step_seconds = step_seconds_of(setup);
    double left = std::max(0.1, setup.time_limit_s - seconds_since(setup.started));
    if (setup.start.base) require_time(options, setup.step_seconds, setup.time_limit_s);
    fit_schedule(config, settings, setup.step_seconds, left, setup.text_size);
    // The end follows the clock only where its steps were ours to choose.
    setup.by_time = end_may_move(config.train) && !last_setting(settings, "train.steps");
}

/// How often a text is read, for people.
std::string times(double read) {
    return read < 100 ? two_digits(read) : grouped(static_cast<std::uint64_t>(read));
}

/// Of several texts how often each is read: by their weights one may be read often, another in part.
void say_times_read(const RunSetup& setup) {
    const std::size_t texts = setup.texts();
    if (texts == 1) return;
    const TrainConfig& t = setup.config.train;
    const auto sequences = static_cast<std::uint64_t>(t.steps * t.accumulate * t.batch);
    std::string said;
    for (std::size_t i = 0; i < texts; i++) {
        const WindowSampler& text = setup.windows->part(i);
        const double read = static_cast<double>(setup.windows->drawn(i, sequences)) *
                            static_cast<double>(t.sequence) / static_cast<double>(text.epoch_rows());
        said += (i == 0 ? "" : ", ") + printable(setup.text_name(i)) + " " + times(read) + " times";
    }
    note("read in " + grouped(static_cast<std::uint64_t>(t.steps)) + (t.steps == 1 ? " step: " : " steps: ") +
         said);
}

void say_choice(const RunSetup& setup) {
    const ModelConfig& m = setup.config.model;
    const TrainConfig& t = setup.config.train;
    const auto step_tokens = static_cast<double>(t.step_tokens());
    const double tokens = step_tokens * static_cast<double>(t.steps);
    const double read =
        tokens / static_cast<double>(std::max<std::uint64_t>(setup.text_size.train_tokens, 1));
    const std::string form = std::to_string(m.layers) +
                             (m.layers == 1 ? " layer of width " : " layers of width ") +
                             std::to_string(m.width) + ", ";
    note("chosen" + (setup.time_limit_s > 0 ? " for " + human_seconds(setup.time_limit_s) : "") + ": " +
         (setup.start.base ? "" : form) + grouped(static_cast<std::uint64_t>(t.steps)) +
         (t.steps == 1 ? " step of " : " steps of ") + grouped(static_cast<std::uint64_t>(step_tokens)) +
         " tokens, " + times(read) + " times the text" +
         (setup.folder ? " (config.json has all of it)" : ""));
}

}  // namespace

std::vector<std::string> settings_of(const TrainingOptions& options) {
    std::vector<std::string> settings = options.set;
    if (options.steps) settings.push_back("train.steps=" + std::to_string(*options.steps));
    return settings;
}

RunConfig default_config(const TrainingOptions& options, const RunTexts& data, RunSetup& setup) {
    if (const RunData* examples = data.examples())
        fail_input(examples->name(), "", "texts, where no config is given", "examples with answers",
                   "CONFIG says what model learns from those, or linnet finetune goes on from one");
    const std::vector<std::string> settings = settings_of(options);
    const auto read = [&](const json& config) { return read_run_config(config, "", settings); };
    Budget budget;
    budget.bytes = data.bytes();
    budget.vocabulary = data.vocabulary();
    budget.settings = settings;
    choose_end(options, setup);
    if (!setup.by_time) {
        budget.seconds = default_seconds;
        budget.flops = usual_share * 5e11;  // a laptop's two cores
        return read(choose_config(budget));
    }
    setup.peak_flops = measured_peak_flops(setup.threads);
    budget.seconds = setup.time_limit_s;
    budget.flops = usual_share * setup.peak_flops;
    setup.choice = choose(budget, [&](ModelCandidate& candidate) {
        RunConfig run = read(candidate.config);
        if (!objective_of(run.train.objective).next_token) return 0.0;  // their data is not read yet
        std::string& precision = run.train.precision;
        if (precision == "auto") precision = fastest_precision(run, setup.threads);
        candidate.precision = precision;
        return seconds_of_step(run, candidate.vocabulary, setup.threads,
                               std::min(1.0, 0.02 * budget.seconds));
    });
    const ModelCandidate& best = setup.choice.candidates[setup.choice.best];
    require_time(options, best.step_seconds, budget.seconds);
    RunConfig config = read(best.config);
    if (best.measured) config.train.precision = best.precision;
    return config;
}

RunConfig tuning_config(const std::string& model, const TrainingOptions& options, RunSetup& setup) {
    const std::vector<std::string> settings = settings_of(options);
    choose_end(options, setup);
    open_base(model, setup.start);
    const Model& base = *setup.start.base;
    const bool adapter = last_setting(settings, "finetune.lora.rank").value_or("0") != "0";
    json chosen = choose_tuning(base.config(), adapter);
    if (labels_of(base) == replaced_labels()) chosen["train"]["objective"] = "replaced";
    return begin_from(model, chosen, "", settings, setup.start);
}

void choose_held_out(const TrainingOptions& options, std::uint64_t bytes, RunSetup& setup) {
    if (!setup.chosen || last_setting(settings_of(options), "train.validation_fraction")) return;
    setup.config.train.validation_fraction = usual_held_out(bytes);
}

void choose_batch(const TrainingOptions& options, RunSetup& setup) {
    if (!setup.chosen || !setup.start.base || last_setting(settings_of(options), "train.batch")) return;
    TrainConfig& t = setup.config.train;
    const auto most = static_cast<std::int64_t>(setup.text_size.train_tokens) / least_steps_of_a_reading;
    while (t.batch > 1 && t.step_tokens() > most) t.batch /= 2;
}

void require_time_of_given(const TrainingOptions& options, const RunSetup& setup) {
    // Steps are timed only where the time might be too short: where a machine far slower than any would fail.
    constexpr double slow = 1e9;  // operations per second
    const TrainConfig& t = setup.config.train;
    if (setup.chosen || options.dry_run || options.time_limit_s == 0 || setup.checkpoint.step >= t.steps)
        return;
    const TracedModel traced = training_graph(setup.config.model, setup.start.learner);
    const double flops =
        3 * forward_flops(traced, static_cast<double>(t.sequence)) * static_cast<double>(t.step_tokens());
    if (options.time_limit_s < seconds_to_first_loss(flops / slow))
        require_time(options, step_seconds_of(setup), options.time_limit_s);
}

void require_time_left(const RunSetup& setup) {
    const double least = seconds_to_first_loss(setup.choice.candidates[setup.choice.best].step_seconds),
                 read = seconds_since(setup.started);
    if (setup.time_limit_s - read >= least) return;
    refuse_time(read + least, two_digits(setup.time_limit_s) + "s",
                "reading the text alone takes " + human_seconds(read));
}

void choose_rest(const TrainingOptions& options, RunSetup& setup) {
    if (setup.chosen) {
        if (setup.by_time && options.time_limit_s == 0)
            note("no --time given: training takes " + human_seconds(default_seconds) + " at most");
        choose_schedule(options, setup);
        setup.config_json = whole_config(setup.config);
        say_choice(setup);
    } else {
        follow_clock_within(options, setup);
    }
    note_rate_never_peaks(setup);
    say_times_read(setup);
}

}  // namespace linnet
