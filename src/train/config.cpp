#include "train/config.h"

#include <cmath>

#include "base/error.h"
#include "text/encode/merges.h"

namespace linnet {

std::vector<Field> run_fields(RunConfig& c) {
    std::vector<Field> fields = model_fields(c.model);
    TokenizerConfig& t = c.tokenizer;
    TrainConfig& r = c.train;
    constexpr double many = 1e15;
    std::vector<Field> more = {
        {"tokenizer.kind",
         &t.kind,
         "made from the text, or read from tokenizer.file; a corpus folder brings its own",
         0,
         0,
         {"bpe", "char", "byte", "file"}},
        {"tokenizer.vocab_size", &t.vocab_size, "tokens, for kind bpe", 257, MergeTable::most_symbols},
        {"tokenizer.file", &t.file, "a GGUF or tokenizer.json, for kind file"},
        {"train.batch", &r.batch, "sequences a micro-batch", 1, 1 << 20},
        {"train.sequence", &r.sequence, "tokens a sequence; 0: model.context", 0, 1 << 24},
        {"train.accumulate", &r.accumulate, "micro-batches an optimizer step", 1, 1 << 20},
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
        {"train.schedule.kind", &r.schedule.kind, "", 0, 0, {"cosine", "linear", "constant", "inverse-sqrt"}},
        {"train.schedule.warmup", &r.schedule.warmup, "steps", 0, 1e12},
        {"train.schedule.min_lr", &r.schedule.min_lr, "at the end", 0, 100},
        {"train.clip", &r.clip, "global gradient norm; 0: none", 0, 1e12},
        {"train.eval_every", &r.eval_every, "steps; 0: at the end only", 0, 1e12},
        {"train.eval_batches", &r.eval_batches, "micro-batches an evaluation; 0: all of the validation part",
         0, 1e12},
        {"train.checkpoint_every", &r.checkpoint_every, "steps; 0: at the end only", 0, 1e12},
        {"train.sample_tokens", &r.sample_tokens, "length of the sample at each evaluation; 0: none", 0,
         1 << 20},
        {"train.validation_fraction", &r.validation_fraction, "the tail of the text", 0, 0.9},
    };
    fields.insert(fields.end(), more.begin(), more.end());
    return fields;
}

RunConfig read_run_config(const nlohmann::json& json, const std::string& name,
                          const std::vector<std::string>& settings) {
    RunConfig config;
    std::vector<Field> fields = run_fields(config);
    apply_json(fields, json, name);
    for (const std::string& setting : settings) apply_setting(fields, setting);
    resolve(config.model, name);
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
    return peak;
}

namespace {

struct DefaultRow {
    std::uint64_t bytes;  // texts up to this size
    const char* reason;
    const char* config;
};

// Sized so that a laptop's two cores finish in minutes; a text of N bytes cannot feed many more than N / 4
// parameters.
constexpr DefaultRow default_rows[] = {
    {400'000, "a very small model of bytes (0.4M parameters)",
     R"({"model": {"context": 64, "width": 96, "layers": 4, "heads": 4, "norm": {"kind": "rms"},
         "position": {"kind": "rope"}, "attention": {"bias": false}, "dropout": 0.1, "init_std": 0.05,
         "ffn": {"width": 256, "activation": "silu", "gated": true, "bias": false}},
         "tokenizer": {"kind": "byte"}, "train": {"batch": 16, "steps": 1500,
         "optimizer": {"lr": 2e-3}, "schedule": {"min_lr": 2e-4}}})"},
    {8'000'000, "a small model of bytes (1.8M parameters)",
     R"({"model": {"context": 128, "width": 192, "layers": 4, "heads": 6, "norm": {"kind": "rms"},
         "position": {"kind": "rope"}, "attention": {"bias": false}, "dropout": 0.1, "init_std": 0.05,
         "ffn": {"width": 512, "activation": "silu", "gated": true, "bias": false}},
         "tokenizer": {"kind": "byte"}, "train": {"batch": 16, "steps": 3000,
         "optimizer": {"lr": 2e-3}, "schedule": {"min_lr": 2e-4}}})"},
    {200'000'000, "a LLaMA-shaped model (8M parameters) with 4096 tokens of its own",
     R"({"model": {"context": 256, "width": 288, "layers": 6, "heads": 6, "norm": {"kind": "rms"},
         "position": {"kind": "rope"}, "attention": {"bias": false},
         "ffn": {"width": 768, "activation": "silu", "gated": true, "bias": false}},
         "tokenizer": {"kind": "bpe", "vocab_size": 4096}, "train": {"batch": 16, "steps": 10000,
         "optimizer": {"lr": 1e-3}, "schedule": {"warmup": 200, "min_lr": 1e-4}}})"},
    {UINT64_MAX, "a LLaMA-shaped model (30M parameters) with 16384 tokens of its own",
     R"({"model": {"context": 512, "width": 512, "layers": 8, "heads": 8, "norm": {"kind": "rms"},
         "position": {"kind": "rope"}, "attention": {"bias": false},
         "ffn": {"width": 1376, "activation": "silu", "gated": true, "bias": false}},
         "tokenizer": {"kind": "bpe", "vocab_size": 16384}, "train": {"batch": 16, "steps": 50000,
         "optimizer": {"lr": 6e-4}, "schedule": {"warmup": 500, "min_lr": 6e-5}}})"},
};

}  // namespace

nlohmann::json default_config(std::uint64_t bytes, std::string& reason) {
    const DefaultRow* row = default_rows;
    while (bytes > row->bytes) row++;
    reason = row->reason;
    return nlohmann::json::parse(row->config);
}

}  // namespace linnet
