#include "train/forecast/forecast.h"

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/terminal.h"
#include "model/trace/trace.h"
#include "train/forecast/pilot.h"
#include "train/law.h"
#include "train/needs.h"
#include "train/setup.h"

namespace linnet {
namespace {

constexpr double longest_pilot = 24, pilot_share = 0.12;  // seconds; of the time that is planned
constexpr std::size_t smaller = 3, larger = 2;            // rows beside the best one

double bytes_of_training(const RunSetup& setup) {
    double bytes = 0;
    for (std::size_t part = 0; part < setup.texts(); part++)
        bytes += static_cast<double>(setup.windows->part(part).source().bytes(DataSplit::train));
    return bytes;
}

/// Fills rows for a text that has been read.
class Forecaster {
  public:
    Forecaster(const RunSetup& setup, const TrainingOptions& options)
        : setup_(setup), settings_(options.set), prepared_(seconds_since(setup.started)) {}

    double left() const { return setup_.time_limit_s - prepared_; }

    ForecastRow row(std::size_t index) const {
        const ModelCandidate& candidate = setup_.choice.candidates[index];
        ForecastRow row;
        row.best = index == setup_.choice.best;
        const double step_seconds = candidate.step_seconds;
        const TextSize text = text_of(candidate);
        const RunConfig config = row.best ? setup_.config : config_of(candidate, text);
        const TrainConfig& t = config.train;
        row.config = whole_config(config);
        row.width = config.model.width, row.layers = config.model.layers;
        row.parameters = trace(config.model, false).graph.parameter_count();
        row.steps = t.steps;
        row.batch = t.batch * t.accumulate;
        row.tokens = t.steps * t.step_tokens();
        row.epochs = static_cast<double>(row.tokens) /
                     static_cast<double>(std::max<std::uint64_t>(1, text.train_tokens));
        row.seconds = std::min(setup_.time_limit_s, prepared_ + seconds_of_steps(t.steps, step_seconds));
        row.memory = static_cast<double>(peak_memory_of_run(setup_, config));
        row.disk = static_cast<double>(disk_of_run(config));
        return row;
    }

    /// What the law expects of a model that has read the text so often.
    double expected(std::int64_t parameters, double epochs) const {
        return expected_bits(point(parameters, epochs));
    }

  private:
    /// The text in the candidate's tokens, which are others than the best one's where its vocabulary is.
    TextSize text_of(const ModelCandidate& candidate) const {
        const ModelCandidate& best = setup_.choice.candidates[setup_.choice.best];
        const double times = usual_token_bytes(best.vocabulary) / usual_token_bytes(candidate.vocabulary);
        TextSize text = setup_.text_size;
        text.train_tokens =
            static_cast<std::uint64_t>(std::llround(static_cast<double>(text.train_tokens) * times));
        return text;
    }

    RunConfig config_of(const ModelCandidate& candidate, const TextSize& text) const {
        const ModelCandidate& best = setup_.choice.candidates[setup_.choice.best];
        RunConfig config = read_run_config(candidate.config, "", settings_);
        config.model.vocabulary =
            candidate.vocabulary == best.vocabulary ? setup_.config.model.vocabulary : candidate.vocabulary;
        if (config.train.precision == "auto")
            config.train.precision = candidate.measured ? candidate.precision : setup_.config.train.precision;
        fit_schedule(config, settings_, candidate.step_seconds, left(), text);
        return config;
    }

    LawPoint point(std::int64_t parameters, double epochs) const {
        const double bytes = bytes_of_training(setup_);
        return {static_cast<double>(parameters), epochs * bytes, bytes};
    }

    const RunSetup& setup_;
    std::vector<std::string> settings_;
    double prepared_;
};

}  // namespace

Forecast forecast(const TrainingOptions& options) {
    TrainingOptions dry = options;
    dry.dry_run = dry.plan = true;
    RunSetup setup = set_up(dry);
    const Choice& choice = setup.choice;
    const Forecaster forecaster(setup, options);
    Forecast all;
    const std::size_t first = choice.best - std::min(choice.best, smaller),
                      last = std::min(choice.best + larger, choice.candidates.size() - 1);
    for (std::size_t i = first; i <= last; i++) all.rows.push_back(forecaster.row(i));
    const ModelCandidate& best = choice.candidates[choice.best];
    const PilotResult pilot = run_pilot(setup, std::min(longest_pilot, pilot_share * setup.time_limit_s),
                                        best.step_flops / best.step_seconds);
    all.pilot = {pilot.seconds, pilot.parameters, pilot.tokens, pilot.bits_per_byte};
    if (!pilot.bits_per_byte) return all;
    const double epochs =
        static_cast<double>(pilot.tokens) / static_cast<double>(setup.text_size.train_tokens);
    const double pilot_law = forecaster.expected(pilot.parameters, epochs);
    for (ForecastRow& row : all.rows)
        row.bits_per_byte =
            bits_of_text(forecaster.expected(row.parameters, row.epochs), {pilot_law, *pilot.bits_per_byte});
    return all;
}

}  // namespace linnet
