// A config for someone who gave none: chosen by the text's size, the time there is and the machine's speed.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "train/task/config.h"

namespace linnet {

inline constexpr double default_seconds = 600;  // of training, where neither time nor steps were given

/// Of the machine's measured f32 peak: what steps reach, before any has been measured.
inline constexpr double usual_share = 0.6;

/// What a choice depends on.
struct Budget {
    std::uint64_t bytes = 0;                 // of text
    double seconds = 0;                      // for training
    double flops = 0;                        // per second: what steps reach
    std::int64_t vocabulary = 0;             // of the tokenizer that the data brings; 0: to be chosen
    std::vector<std::string> settings = {};  // "key=value", laid over every candidate
};

/// A model that could be trained in the time.
struct ModelCandidate {
    nlohmann::json config;  // model, vocabulary, batch and optimizer, without the budget's settings; the
                            // schedule: see fit_schedule
    std::int64_t vocabulary = 0;  // at most
    double parameters = 0;        // matrices alone
    double step_flops = 0, step_tokens = 0;
    bool measured = false;
    std::string precision;     // that it was measured in; empty: it was not
    double step_seconds = 0;   // measured, or by what others reach
    double tokens = 0;         // that fit the time and the text
    double bits_per_byte = 0;  // of the law's own text, so many read (law.h)
};

struct Choice {
    std::vector<ModelCandidate> candidates;  // the smallest first; none larger than the text allows
    std::size_t best = 0;
};

/// Seconds of an optimizer step of a candidate on this machine; 0: it cannot be told. Says in which
/// precision.
using MeasureStep = std::function<double(ModelCandidate&)>;

/// All candidates for the text and the time, and the one that the law expects to end lowest. Where there is
/// `measure`, the best one has been measured, and the others by it are held to the speed of the measured one
/// that is nearest.
Choice choose(const Budget& budget, const MeasureStep& measure = {});

/// The best one's config, by the budget's speed alone.
nlohmann::json choose_config(const Budget& budget);

/// Bytes of text that a token of a vocabulary made from it stands for, about.
double usual_token_bytes(std::int64_t vocabulary);

/// Batch and optimizer of a run that begins from a model and trains all of it, or an adapter.
nlohmann::json choose_tuning(const ModelConfig& model, bool adapter);

/// The share of a text of so many bytes that is held out.
double usual_held_out(std::uint64_t bytes);

struct TextSize {
    std::uint64_t bytes = 0, train_tokens = 0;
    double epochs = 0;  // the most that the text is read; 0: by its size
};

/// Sets what depends on the speed of a step and on the text's tokens: steps (so that they end within
/// `seconds`, and before a small text is seen too often), warm-up, how often to evaluate and save. Keys in
/// `given` ("key=value") stay.
void fit_schedule(RunConfig& config, const std::vector<std::string>& given, double step_seconds,
                  double seconds, const TextSize& text);

/// Seconds that a run of `steps` takes with its evaluations and what it writes, as fit_schedule allows for
/// them.
double seconds_of_steps(std::int64_t steps, double step_seconds);

/// Seconds for one step and the smallest evaluation.
double seconds_to_first_loss(double step_seconds);

/// The cadence alone, where the steps are given and time is not: depends on them alone.
void fit_cadence(RunConfig& config, const std::vector<std::string>& given);

/// Sets what a candidate reads in `seconds`, and what the law expects of it then; its tokens stand for
/// `token_bytes` of text each.
void expect(ModelCandidate& candidate, double seconds, const TextSize& text, double token_bytes);

/// How many steps fit, where `done` of them took `elapsed` of `seconds`; as many as `config` has where that
/// hardly differs or where the learning rate decays already.
std::int64_t fitting_steps(const TrainConfig& config, std::int64_t done, double elapsed, double seconds,
                           const TextSize& text);

}  // namespace linnet
