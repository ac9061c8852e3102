// The whole config of a training run: model, tokenizer, data, optimizer, schedule. models/README.md explains
// the keys.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/fields.h"
#include "model/config.h"

namespace linnet {

struct TokenizerConfig {
    std::string kind = "bpe";
    std::int64_t vocab_size = 4096;
    std::string file;       // for kind "file"
    bool lowercase = true;  // for kind "wordpiece"
};

struct TrainConfig {
    std::string objective = "auto";  // resolved: never "auto"
    struct {                         // of the objectives masked and spans
        double share = 0.15;         // of the tokens
        bool words = false;          // masked: whole words
        double length = 3;           // spans: the mean of theirs
    } masked;
    std::int64_t batch = 12;      // B: sequences per micro-batch
    std::int64_t sequence = 0;    // T: tokens per sequence; 0: model.context
    std::int64_t accumulate = 1;  // micro-batches per optimizer step
    std::int64_t steps = 2000;    // optimizer steps
    std::int64_t seed = 1337;
    std::string precision = "auto";
    std::string weights = "f32";  // type of the matrices in model.gguf (checkpoints keep f32)
    struct {
        std::string kind = "adamw";
        double lr = 1e-3, beta1 = 0.9, beta2 = 0.99, epsilon = 1e-8, weight_decay = 0.1;
    } optimizer;
    struct {
        std::string kind = "cosine";
        std::int64_t warmup = 100;  // steps
        double min_lr = 1e-4;
        double decay = 0.4;  // share of the steps, for kind wsd
    } schedule;
    std::string augment = "none";  // of pictures to train on
    double clip = 1.0;             // global gradient norm; 0: none
    std::int64_t eval_every = 250, eval_batches = 20, checkpoint_every = 500, sample_tokens = 200;
    double validation_fraction = 0.1;
};

struct RunConfig {
    ModelConfig model;
    TokenizerConfig tokenizer;
    TrainConfig train;
};

/// Every setting there is.
std::vector<Field> run_fields(RunConfig& config);

/// Reads a config file, then `settings` ("key=value"), then fills in and checks what can be checked without
/// data. Error(Exit::input) names file and key.
RunConfig read_run_config(const nlohmann::json& json, const std::string& name,
                          const std::vector<std::string>& settings);

/// What an objective asks of a vocabulary that is made for it: control tokens in the place of its kind's own.
/// None: those.
std::vector<std::string> special_tokens(const RunConfig& config);

/// The step from which a schedule of kind wsd decays; until then a step does not depend on train.steps.
double decay_begin(const TrainConfig& config);

/// The learning rate of optimizer step `step` (0-based).
double learning_rate(const TrainConfig& config, std::int64_t step);

}  // namespace linnet
