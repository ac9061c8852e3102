#include "train/config.h"

#include <cmath>

#include "base/error.h"
#include "text/encode/merges.h"

namespace linnet {

namespace {

/// Silent where a run from nothing has them so.
std::vector<Field> finetune_fields(FinetuneConfig& f) {
    return {
        {"finetune.model",
         &f.model,
         "what the run begins from: a GGUF or a folder; empty: nothing",
         0,
         0,
         {},
         ""},
        {"finetune.template",
         &f.form,
         "how conversations are marked; empty: as the model file says",
         0,
         0,
         {},
         ""},
        {"finetune.layers", &f.layers, "train only so many of the last; 0: all", 0, 1 << 20, {}, 0},
        {"finetune.layer_decay",
         &f.layer_decay,
         "of the learning rate, from a layer to the one below",
         1e-3,
         1,
         {},
         1.0},
        {"finetune.reset_layers", &f.reset_layers, "draw so many of the last anew", 0, 1 << 20, {}, 0},
        {"finetune.lora.rank",
         &f.lora.rank,
         "of an adapter, which alone is trained; 0: none",
         0,
         4096,
         {},
         0},
        {"finetune.lora.alpha",
         &f.lora.alpha,
         "scale × rank of the adapter's change; 0: 2 × rank",
         0,
         1e6,
         {},
         0.0},
        {"finetune.lora.targets",
         &f.lora.targets,
         "tensors to adapt, separated by commas; empty: the blocks' linear layers",
         0,
         0,
         {},
         ""},
        {"finetune.lora.dropout", &f.lora.dropout, "of an adapter's input", 0, 0.95, {}, 0.0},
    };
}

}  // namespace

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
    std::vector<Field> tuning = finetune_fields(c.finetune);
    fields.insert(fields.end(), tuning.begin(), tuning.end());
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
    const FinetuneConfig& f = config.finetune;
    if (f.model.empty() && (f.layers > 0 || f.reset_layers > 0 || f.lora.rank > 0 || f.layer_decay != 1))
        fail_input(name, "finetune.model", "a model to begin from, as other settings of finetune are given",
                   "none");
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
