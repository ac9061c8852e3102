// The whole config of a training run: model, tokenizer, data, optimizer, schedule. models/README.md explains
// the keys.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"
#include "model/config/config.h"
#include "train/optimize/groups.h"
#include "train/optimize/schedule.h"

namespace linnet {

struct TokenizerConfig {
    std::string kind = "bpe";
    std::int64_t vocab_size = 4096;
    std::string file;       // for kind "file"
    bool lowercase = true;  // for kind "wordpiece"

    /// Whether it must know all of the text, and not learn merges from the training part alone.
    bool knows_all() const { return kind == "char" || kind == "byte"; }
};

struct TrainConfig {
    std::string objective = "auto";  // resolved: never "auto"
    struct {                         // of the objectives masked, replaced and spans
        double share = 0.15;         // of the tokens
        bool words = false;          // masked and replaced: whole words
        double length = 3;           // spans: the mean of theirs
    } masked;
    struct {                      // of the objective replaced (model/trace/generator.h)
        double generator = 0.25;  // its width, heads and feed-forward width, as a share of the model's
        double weight = 50;       // of the model's loss beside the generator's
    } replaced;
    std::int64_t batch = 12;      // B: sequences per micro-batch
    std::int64_t sequence = 0;    // T: tokens per sequence; 0: model.context
    std::int64_t accumulate = 1;  // micro-batches per optimizer step
    std::int64_t steps = 2000;    // optimizer steps
    std::int64_t seed = 1337;
    std::string precision = "auto";  // of products and stored activations: see precision.h
    std::string recompute = "none";  // what is computed again for backward instead of kept
    std::string weights = "f32";     // type of the matrices in model.gguf (checkpoints keep f32)
    std::string save = "gguf";       // hf: the best model also as a Hugging Face folder, hf
    OptimizerConfig optimizer;
    ScheduleConfig schedule;
    nlohmann::json groups = nlohmann::json::array();  // entries of optimize/groups.h
    std::string augment = "none";                     // of pictures to train on
    double clip = 1.0;                                // global gradient norm; 0: none
    double skip_outliers = 0;  // standard deviations of the gradient norm from which on a step is skipped
    std::int64_t eval_every = 250, eval_batches = 20, checkpoint_every = 500, sample_tokens = 200;
    double validation_fraction = 0.1;
    std::int64_t model_width = 1;  // for schedule noam; read_run_config sets it

    /// Rows that an optimizer step reads.
    std::int64_t step_tokens() const { return batch * sequence * accumulate; }
};

/// Where a run begins from a model: which, and what of it is trained.
struct FinetuneConfig {
    std::string model;              // empty: the run begins from nothing
    std::string form;               // chat template of conversations; empty: the model file's own
    std::int64_t layers = 0;        // only so many of the last; 0: all
    bool head = false;              // only what comes behind the layers
    double layer_decay = 1;         // of the learning rate, from a layer to the one below
    std::int64_t reset_layers = 0;  // so many of the last are reinitialised
    struct {
        std::int64_t rank = 0;  // of an adapter, which alone is trained; 0: the weights themselves are
        double alpha = 0;       // its change is alpha / rank · B A; 0: 2 · rank
        std::string targets;    // patterns of tensors, separated by commas; empty: every linear layer
        double dropout = 0;     // of what goes into A
    } lora;
};

struct RunConfig {
    ModelConfig model;
    TokenizerConfig tokenizer;
    TrainConfig train;
    FinetuneConfig finetune;
};

/// Tokens of the shortest two texts, one each with their three marks.
inline constexpr std::int64_t shortest_pair = 5;

/// Error(Exit::input) where a run would read more tokens than can be counted.
void require_countable(const TrainConfig& train, const std::string& name);

/// Every setting there is.
std::vector<Field> run_fields(RunConfig& config);

/// Reads a config file, then `settings` ("key=value"), then fills in and checks what can be checked without
/// data. Error(Exit::input) names file and key.
RunConfig read_run_config(const nlohmann::json& json, const std::string& name,
                          const std::vector<std::string>& settings);

/// What `settings` ("key=value") say of `key`: the last one counts, as when a config is read.
std::optional<std::string> last_setting(const std::vector<std::string>& settings, std::string_view key);

/// What an objective asks of a vocabulary that is made for it: control tokens in the place of its kind's own.
/// None: those. `answers`: what is learned are answers, which end.
std::vector<std::string> special_tokens(const RunConfig& config, bool answers = false);

/// The step from which a schedule of kind wsd decays; until then a step does not depend on train.steps.
double decay_begin(const TrainConfig& config);

/// The learning rate of optimizer step `step` (0-based), of parameters that are in no group.
double learning_rate(const TrainConfig& config, std::int64_t step);

/// The run's own settings, then its groups' (optimize/groups.h).
std::vector<ParameterGroup> groups_of(const TrainConfig& config, std::string_view file = "config");
/// What rates depend on.
RateSpan rate_span(const TrainConfig& config);

}  // namespace linnet
