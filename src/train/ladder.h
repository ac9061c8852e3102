// A config for someone who gave none: chosen by the text's size, the time there is and the machine's speed.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "train/task/config.h"

namespace linnet {

inline constexpr double default_seconds = 600;  // of training, where neither time nor steps were given

/// What a choice depends on.
struct Prospect {
    std::uint64_t bytes = 0;      // of text
    double seconds = 0;           // for training
    double flops = 0;             // per second: the machine's measured f32 peak
    std::int64_t vocabulary = 0;  // of the tokenizer that the data brings; 0: to be chosen
};

/// Model, vocabulary, batch and optimizer. The schedule is not set yet: see fit_schedule.
nlohmann::json choose_config(const Prospect& prospect);

/// Batch and optimizer of a run that begins from a model and trains all of it, or an adapter.
nlohmann::json choose_tuning(const ModelConfig& model, std::uint64_t bytes, bool adapter);

struct TextSize {
    std::uint64_t bytes = 0, train_tokens = 0;
    double epochs = 0;  // the most that the text is read; 0: by its size
};

/// Sets what depends on the speed of a step and on the text's tokens: steps (so that they end within
/// `seconds`, and before a small text is seen too often), warm-up, how often to evaluate and save. Keys in
/// `given` ("key=value") stay.
void fit_schedule(RunConfig& config, const std::vector<std::string>& given, double step_seconds,
                  double seconds, const TextSize& text);

/// The cadence alone, where the steps are given and time is not: depends on them alone.
void fit_cadence(RunConfig& config, const std::vector<std::string>& given);

/// How many steps fit, where `done` of them took `elapsed` of `seconds`; as many as `config` has where that
/// hardly differs or where the learning rate decays already.
std::int64_t fitting_steps(const TrainConfig& config, std::int64_t done, double elapsed, double seconds,
                           const TextSize& text);

}  // namespace linnet
