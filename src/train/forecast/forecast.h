// What fits a text and a time: the models that a default run chooses between (train/candidates.h), and what
// each would need and reach: by the law (train/law.h), moved to what a short run on the text, the pilot,
// reached.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "train/options.h"

namespace linnet {

struct ForecastRow {
    nlohmann::json config;  // whole, as `linnet train` takes it
    std::int64_t width = 0, layers = 0;
    std::int64_t parameters = 0, steps = 0, tokens = 0;
    std::int64_t batch = 0;               // sequences of a step
    double epochs = 0;                    // how often the text is read
    double seconds = 0;                   // of the whole run
    double memory = 0, disk = 0;          // bytes
    std::optional<double> bits_per_byte;  // held out, at the end; nothing where no text is held out
    bool best = false;                    // what `linnet train` with this time trains
};

struct Forecast {
    std::vector<ForecastRow> rows;  // the smallest model first
    struct {
        double seconds = 0;  // that it took
        std::int64_t parameters = 0, tokens = 0;
        std::optional<double> bits_per_byte;
    } pilot;
};

/// `options`: data, settings, threads and a time limit, as a run would have them; nothing is written.
/// Error(Exit::usage) where the time is too short for a step and an evaluation.
Forecast forecast(const TrainingOptions& options);

}  // namespace linnet
