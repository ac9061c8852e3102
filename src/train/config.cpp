#include "train/config.h"

#include <cmath>

#include "base/error.h"
#include "text/encode/merges.h"

namespace linnet {

namespace {

/// A setting of later versions: not printed where it has its default.
template <class T>
Field silent(const char* key, T* target, const char* help, double low = 0, double high = 1e15,
             std::vector<std::string> choices = {}) {
    return {key, target, help, low, high, std::move(choices), true};
}

}  // namespace

namespace {

std::vector<Field> rows(RunConfig& c) {
    std::vector<Field> fields;
    TokenizerConfig& t = c.tokenizer;
    TrainConfig& r = c.train;
    constexpr double many = 1e15;
    std::vector<Field> more = {
        {"tokenizer.kind",
         &t.kind,
         "made from the text, or read from tokenizer.file; a corpus folder brings its own",
         0,
         0,
         {"bpe", "wordpiece", "char", "byte", "file"}},
        {"tokenizer.vocab_size", &t.vocab_size, "tokens, for kind bpe", 257, MergeTable::most_symbols},
        {"tokenizer.file", &t.file, "a GGUF or tokenizer.json, for kind file"},
        silent("tokenizer.lowercase", &t.lowercase, "for kind wordpiece: letters are made small"),
        silent("train.objective", &r.objective, "what is learned", 0, 0,
               {"auto", "next", "masked", "spans", "pairs", "classes", "tags"}),
        silent("train.masked.share", &r.masked.share, "of the tokens, for masked and spans", 0.001, 0.9),
        silent("train.masked.words", &r.masked.words, "whole words are masked"),
        silent("train.masked.length", &r.masked.length, "mean length of spans", 1, 100),
        {"train.batch", &r.batch, "sequences per micro-batch", 1, 1 << 20},
        {"train.sequence", &r.sequence, "tokens per sequence; 0: model.context", 0, 1 << 24},
        {"train.accumulate", &r.accumulate, "micro-batches per optimizer step", 1, 1 << 20},
        {"train.steps", &r.steps, "optimizer steps", 1, 1e12},
        {"train.seed", &r.seed, "of weights, batches and dropout", 0, many},
        {"train.precision", &r.precision, "", 0, 0, {"auto", "f32"}},
        {"train.weights", &r.weights, "type of the matrices in model.gguf", 0, 0, {"f32", "f16", "bf16"}},
        {"train.optimizer.kind", &r.optimizer.kind, "", 0, 0, {"adamw"}},
        {"train.optimizer.lr", &r.optimizer.lr, "peak learning rate", 0, 100},
        {"train.optimizer.beta1", &r.optimizer.beta1, "", 0, 0.9999999},
        {"train.optimizer.beta2", &r.optimizer.beta2, "", 0, 0.9999999},
        {"train.optimizer.epsilon", &r.optimizer.epsilon, "", 1e-30, 1},
        {"train.optimizer.weight_decay", &r.optimizer.weight_decay, "on matrices only", 0, 10},
        {"train.schedule.kind",
         &r.schedule.kind,
         "",
         0,
         0,
         {"cosine", "linear", "constant", "inverse-sqrt", "wsd"}},
        {"train.schedule.warmup", &r.schedule.warmup, "steps", 0, 1e12},
        {"train.schedule.min_lr", &r.schedule.min_lr, "at the end", 0, 100},
        {"train.schedule.decay", &r.schedule.decay, "the last share of the steps, for kind wsd", 0, 1},
        silent("train.augment", &r.augment, "pictures are moved a little, or mirrored", 0, 0,
               {"none", "shift", "flip", "shift-flip"}),
        {"train.clip", &r.clip, "global gradient norm; 0: none", 0, 1e12},
        {"train.eval_every", &r.eval_every, "steps; 0: at the end only", 0, 1e12},
        {"train.eval_batches", &r.eval_batches, "micro-batches per evaluation; 0: all of the validation part",
         0, 1e12},
        {"train.checkpoint_every", &r.checkpoint_every, "steps; 0: at the end only", 0, 1e12},
        {"train.sample_tokens", &r.sample_tokens, "length of the sample at each evaluation; 0: none", 0,
         1 << 20},
        {"train.validation_fraction", &r.validation_fraction, "the tail of the text", 0, 0.9},
    };
    fields.insert(fields.end(), more.begin(), more.end());
    return fields;
}

/// What a config that does not say its objective means; and whether one that does fits the model.
void check_objective(RunConfig& c, const std::string& name) {
    std::string& objective = c.train.objective;
    const ModelConfig& m = c.model;
    const std::string of_encoder = m.head.kind == "tokens" ? "masked" : m.head.kind;
    const std::string expected = m.is_encoder() ? of_encoder : m.has_encoder() ? "pairs" : "next";
    if (objective == "auto") objective = expected;
    const bool fits = objective == expected || (objective == "spans" && expected == "pairs");
    if (!fits)
        fail_input(name, "train.objective",
                   expected + (expected == "pairs" ? " or spans" : "") + ", as model.kind is " + m.kind +
                       (m.is_encoder() ? " and model.head.kind " + m.head.kind : ""),
                   objective);
}

}  // namespace

std::vector<Field> run_fields(RunConfig& c) {
    static const std::vector<nlohmann::json> defaults = [] {
        RunConfig config;
        config.train.objective = "next";  // what files from before mean
        std::vector<nlohmann::json> values;
        for (const Field& field : rows(config)) values.push_back(value_of(field));
        return values;
    }();
    std::vector<Field> fields = model_fields(c.model), more = rows(c);
    for (std::size_t i = 0; i < more.size(); i++)
        if (!more[i].silent.is_null()) more[i].silent = defaults[i];
    fields.insert(fields.end(), more.begin(), more.end());
    return fields;
}

std::vector<std::string> special_tokens(const RunConfig& c) {
    if (c.tokenizer.kind == "wordpiece") return {};  // it has them
    if (c.train.objective == "masked") return {"<|endoftext|>", "[CLS]", "[SEP]", "[MASK]"};
    if (c.train.objective == "classes" || c.train.objective == "tags")
        return {"<|endoftext|>", "[CLS]", "[SEP]"};
    if (c.train.objective == "pairs") return {"<|endoftext|>"};
    std::vector<std::string> names;
    if (c.train.objective != "spans") return names;
    names.emplace_back("<|endoftext|>");
    const double spans = static_cast<double>(c.train.sequence) * c.train.masked.share / c.train.masked.length;
    for (int i = 0; i <= static_cast<int>(spans) + 1; i++)
        names.push_back("<extra_id_" + std::to_string(i) + ">");
    return names;
}

RunConfig read_run_config(const nlohmann::json& json, const std::string& name,
                          const std::vector<std::string>& settings) {
    RunConfig config;
    std::vector<Field> fields = run_fields(config);
    apply_json(fields, json, name);
    for (const std::string& setting : settings) apply_setting(fields, setting);
    if (config.train.objective == "classes" || config.train.objective == "tags")
        config.model.head.kind = config.train.objective;
    resolve(config.model, name);
    check_objective(config, name);
    TrainConfig& t = config.train;
    if (t.sequence == 0) t.sequence = config.model.context;
    if (t.sequence > config.model.context)
        fail_input(name, "train.sequence",
                   "at most model.context (" + std::to_string(config.model.context) + ")",
                   std::to_string(t.sequence));
    if (config.tokenizer.kind == "file" && config.tokenizer.file.empty())
        fail_input(name, "tokenizer.file", "a path, as tokenizer.kind is file", "none");
    if (config.tokenizer.kind != "file" && !config.tokenizer.file.empty())
        fail_input(name, "tokenizer.kind", "file, as tokenizer.file is given", config.tokenizer.kind);
    return config;
}

double decay_begin(const TrainConfig& c) {
    return static_cast<double>(c.steps) * (1 - c.schedule.decay);
}

double learning_rate(const TrainConfig& c, std::int64_t step) {
    double peak = c.optimizer.lr, floor = std::min(c.schedule.min_lr, peak);
    auto warmup = static_cast<double>(c.schedule.warmup), now = static_cast<double>(step);
    if (now < warmup) return peak * (now + 1) / (warmup + 1);
    double span = std::max(1.0, static_cast<double>(c.steps) - warmup);
    double done = std::min(1.0, (now - warmup) / span);
    if (c.schedule.kind == "cosine") return floor + (peak - floor) * 0.5 * (1 + std::cos(M_PI * done));
    if (c.schedule.kind == "linear") return floor + (peak - floor) * (1 - done);
    // Vaswani et al. 2017, section 5.3, scaled so that the peak is the rate asked for.
    if (c.schedule.kind == "inverse-sqrt") return std::max(floor, peak * std::sqrt((warmup + 1) / (now + 1)));
    // Hu et al. 2024 (MiniCPM), section 4: constant, then straight down. Until the decay begins a step does
    // not depend on how many there will be, so the end may still be moved.
    if (c.schedule.kind == "wsd" && now >= decay_begin(c))
        return floor + (peak - floor) *
                           std::max(0.0, (static_cast<double>(c.steps) - now) /
                                             std::max(1.0, static_cast<double>(c.steps) - decay_begin(c)));
    return peak;
}

}  // namespace linnet
