// What a run is given for which there is no config: see ladder.h.
#pragma once
#include <string>
#include <vector>

#include "train/setup.h"

namespace linnet {

/// The most that a model that has learned already reads a text.
inline constexpr double tuning_epochs = 6;

/// The settings that options stand for: --set, then --steps.
std::vector<std::string> settings_of(const TrainingOptions& options);

/// A model and a vocabulary. Where the steps are given and no time is, speed has no part in it.
RunConfig default_config(const TrainingOptions& options, const RunTexts& data, RunSetup& setup);

/// Of a run from a model, which is opened.
RunConfig tuning_config(const std::string& model, const TrainingOptions& options, RunSetup& setup);

/// What part of so many bytes is held out, in a run from a model.
void choose_held_out(const TrainingOptions& options, std::uint64_t bytes, RunSetup& setup);

/// Once the data is read, the schedule: by the clock, or where the steps are given its cadence. Nothing where
/// there is a config.
void choose_rest(const TrainingOptions& options, RunSetup& setup);

}  // namespace linnet
