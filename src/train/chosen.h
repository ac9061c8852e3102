// The config of a run for which none was given: its model (see candidates.h), then its schedule.
#pragma once
#include <string>
#include <vector>

#include "train/setup.h"

namespace linnet {

/// The most that a model that has learned already reads a text.
inline constexpr double tuning_epochs = 6;

/// The settings that options stand for: --set, then --steps.
std::vector<std::string> settings_of(const TrainingOptions& options);

/// Of a run that begins from nothing: model and vocabulary. Where the steps are given and no time, speed is
/// not measured. Error(Exit::usage) for too short a time, Error(Exit::input) for examples with answers.
RunConfig default_config(const TrainingOptions& options, const RunTexts& data, RunSetup& setup);

/// Opens the model, and returns the config of a run from it. Errors as begin_from.
RunConfig tuning_config(const std::string& model, const TrainingOptions& options, RunSetup& setup);

/// In a run from a model without a config: sets the share of a text of so many bytes that is held out.
void choose_held_out(const TrainingOptions& options, std::uint64_t bytes, RunSetup& setup);

/// In a run from a model without a config, once its tokens are known: makes the batch smaller for a small
/// text.
void choose_batch(const TrainingOptions& options, RunSetup& setup);

/// Of a run whose config is given, once its data, batch and steps are known: Error(Exit::usage) where the
/// time is too short for one step and one evaluation. Not of a dry run, which is to take no memory.
void require_time_of_given(const TrainingOptions& options, const RunSetup& setup);

/// Of a run whose config default_config() has chosen by time, once the data is read: Error(Exit::usage) where
/// what is left is too short for one step and one evaluation.
void require_time_left(const RunSetup& setup);

/// Once the data is read: steps, warm-up and evaluations, by the clock or for the steps that are given. Of a
/// given config only whether its end follows the clock. Says where the learning rate only rises, and of
/// several texts how often each is read.
/// Error(Exit::usage) for too short a time.
void choose_rest(const TrainingOptions& options, RunSetup& setup);

}  // namespace linnet
