#include "train/task/config.h"

#include <algorithm>

#include "base/error.h"
#include "base/split.h"
#include "base/terminal.h"
#include "model/trace/generator.h"
#include "text/encode/merges.h"
#include "train/task/objectives.h"

namespace linnet {

namespace {

/// Silent where a run from nothing has them so.
std::vector<Field> finetune_fields(FinetuneConfig& f) {
    return {
        later("finetune.model", &f.model,
              "what the run begins from: a GGUF, a folder, or built-in; empty: nothing"),
        later("finetune.template", &f.form, "how conversations are marked; empty: as the model file says"),
        later("finetune.layers", &f.layers, "train only the last N layers and what follows; 0: all", 0,
              1 << 20),
        later("finetune.head", &f.head, "train only what follows the layers"),
        later("finetune.layer_decay", &f.layer_decay, "learning rate of a layer as a share of the next one's",
              1e-3, 1),
        later("finetune.reset_layers", &f.reset_layers, "reinitialise the last N layers", 0, 1 << 20),
        later("finetune.lora.rank", &f.lora.rank, "rank of an adapter, which alone is trained; 0: none", 0,
              4096),
        later("finetune.lora.alpha", &f.lora.alpha, "scale × rank of the adapter's change; 0: 2 × rank", 0,
              1e6),
        later("finetune.lora.targets", &f.lora.targets,
              "tensors to adapt, separated by commas; empty: the blocks' linear layers"),
        later("finetune.lora.dropout", &f.lora.dropout, "dropout on an adapter's input", 0, 0.95),
    };
}

/// Of train.objective.
std::vector<std::string> objective_choices() {
    std::vector<std::string> names = names_of(objectives());
    names.insert(names.begin(), "auto");
    return names;
}

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
        {"tokenizer.vocab_size", &t.vocab_size, "tokens, for kinds bpe and wordpiece", 257,
         MergeTable::most_symbols},
        {"tokenizer.file", &t.file,
         "a GGUF, tokenizer.json, .tiktoken or SentencePiece model, for kind file"},
        later("tokenizer.lowercase", &t.lowercase,
              "for kind wordpiece: lower-case the text and strip accents"),
        later("train.objective", &r.objective, "what is learned", 0, 0, objective_choices()),
        later("train.masked.share", &r.masked.share, "share of the tokens, for masked, replaced and spans",
              0.001, 0.9),
        later("train.masked.words", &r.masked.words, "whole words are masked"),
        later("train.masked.length", &r.masked.length, "mean length of spans", 1, 100),
        later("train.replaced.generator", &r.replaced.generator,
              "width of the model that replaces tokens, as a share of the model's own", 0.01, 1),
        later("train.replaced.weight", &r.replaced.weight,
              "weight of detecting replaced tokens beside guessing them", 0, 1e6),
        {"train.batch", &r.batch, "sequences per micro-batch", 1, 1 << 20},
        {"train.sequence", &r.sequence, "tokens per sequence; 0: model.context", 0, 1 << 24},
        {"train.accumulate", &r.accumulate, "micro-batches per optimizer step (gradient accumulation)", 1,
         1 << 20},
        {"train.steps", &r.steps, "optimizer steps", 1, 1e12},
        {"train.seed", &r.seed, "seed of weights, batches and dropout", 0, many},
        {"train.precision",
         &r.precision,
         "type of products' operands, sums being f32; auto: the faster of f32 and bf16 here",
         0,
         0,
         {"auto", "f32", "bf16", "f32-split"}},
        {"train.recompute",
         &r.recompute,
         "gradient checkpointing, blocks: keep each layer's input alone; less memory, a third more time",
         0,
         0,
         {"none", "blocks"}},
        {"train.weights", &r.weights, "type of the matrices in model.gguf", 0, 0, {"f32", "f16", "bf16"}},
        later("train.save", &r.save, "hf: the best model also as a Hugging Face folder", 0, 0,
              {"gguf", "hf"}),
        later("train.augment", &r.augment, "pictures are moved a little, or mirrored", 0, 0,
              {"none", "shift", "flip", "shift-flip"}),
        {"train.clip", &r.clip, "gradient clipping: the largest global norm; 0: none", 0, 1e12},
        later("train.skip_outliers", &r.skip_outliers,
              "steps are skipped whose gradient norm is so many standard deviations above the mean; 0: none",
              0, 1e6),
        {"train.eval_every", &r.eval_every, "steps; 0: at the end only", 0, 1e12},
        {"train.eval_batches", &r.eval_batches, "micro-batches per evaluation; 0: all of the validation part",
         0, 1e12},
        {"train.checkpoint_every", &r.checkpoint_every, "steps, or ten minutes if sooner; 0: at the end only",
         0, 1e12},
        {"train.sample_tokens", &r.sample_tokens, "length of the sample at each evaluation; 0: none", 0,
         1 << 20},
        {"train.validation_fraction", &r.validation_fraction,
         "share that is held out: the tail of a text; of many documents or examples, those chosen by hash", 0,
         0.9},
    };
    auto clip = std::find_if(more.begin(), more.end(), [](const Field& f) { return f.key == "train.clip"; });
    std::vector<Field> rates = optimizer_fields(r.optimizer, "train.optimizer.");
    for (Field& field : schedule_fields(r.schedule, "train.schedule.")) rates.push_back(std::move(field));
    more.insert(clip, rates.begin(), rates.end());
    fields.insert(fields.end(), more.begin(), more.end());
    std::vector<Field> tuning = finetune_fields(c.finetune);
    fields.insert(fields.end(), tuning.begin(), tuning.end());
    return fields;
}

/// Each is a token of the vocabulary: names of millions would take gigabytes.
constexpr std::int64_t most_sentinels = 1 << 16;

/// Tokens for a sequence's spans, <extra_id_0> and on.
std::int64_t sentinels(const TrainConfig& t) {
    return static_cast<std::int64_t>(static_cast<double>(t.sequence) * t.masked.share / t.masked.length) + 2;
}

constexpr std::string_view groups_setting = "train.groups=";

/// train.groups is a list of objects, which no field holds: it is taken out of the config.
nlohmann::json take_groups(nlohmann::json& config) {
    nlohmann::json groups = nlohmann::json::array();
    if (config.is_object() && config.contains("train") && config["train"].is_object()) {
        groups = config["train"].value("groups", groups);
        config["train"].erase("groups");
    }
    return groups;
}

nlohmann::json groups_of_text(const std::string& text, const std::string& name) {
    if (parse_or_discard(text).is_discarded())
        fail_input(name, "train.groups", "a list of objects, as JSON",
                   nests_too_deep(text) ? "JSON nested more than 100 deep" : quoted(text));
    // Also refuses a key that an object has twice.
    return parse_json(text, (name.empty() ? "" : name + ": ") + "train.groups");
}

/// What objectives that say it ask the head of an encoder to tell.
void settle_head(RunConfig& c) {
    const Objective* objective = find_objective(c.train.objective);
    if (!objective || objective->head == "tokens") return;
    if (objective->generator && !c.model.is_encoder()) return;  // check_objective tells of it
    auto& head = c.model.head;
    head.kind = objective->head;
    if (head.classes == 0) head.classes = objective->classes;
}

/// What a config that does not say its objective means; and whether one that does fits the model.
void check_objective(RunConfig& c, const std::string& name) {
    const ModelConfig& m = c.model;
    const std::vector<std::string> expected = objectives_for(m.kind, m.head.kind);
    if (c.train.objective == "auto") c.train.objective = expected.at(0);
    const Objective& objective = objective_of(c.train.objective);
    if (objective.kind != m.kind || objective.head != m.head.kind)
        fail_input(name, "train.objective",
                   joined(expected, " or ") + ", as model.kind is " + m.kind +
                       (m.is_encoder() ? " and model.head.kind " + m.head.kind : ""),
                   objective.name);
    if (objective.classes > 0 && m.head.classes != objective.classes)
        fail_input(name, "model.head.classes",
                   std::to_string(objective.classes) + ", as train.objective is " + objective.name,
                   std::to_string(m.head.classes));
    if (!objective.generator) return;
    ModelConfig generator = generator_config(m, c.train.replaced.generator);
    try {
        resolve(generator, "");
    } catch (const Error& error) {
        fail_input(name, "train.replaced.generator", "a share of which a generator can be made",
                   nlohmann::json(c.train.replaced.generator).dump(), error.what());
    }
}

}  // namespace

std::vector<Field> run_fields(RunConfig& c) {
    static const std::vector<Field> default_rows = [] {
        static RunConfig defaults;
        defaults.train.objective = "next";  // what files from before mean
        return rows(defaults);
    }();
    std::vector<Field> fields = model_fields(c.model), more = rows(c);
    take_defaults(more, default_rows);
    fields.insert(fields.end(), more.begin(), more.end());
    return fields;
}

std::vector<std::string> special_tokens(const RunConfig& c, bool answers) {
    if (c.tokenizer.kind == "wordpiece") return {};  // it has them
    const Objective& objective = objective_of(c.train.objective);
    std::vector<std::string> names = objective.tokens;
    if (names.empty() && answers) names.emplace_back("<|endoftext|>");
    if (!objective.sentinels) return names;
    for (std::int64_t i = 0; i < sentinels(c.train); i++)
        names.push_back("<extra_id_" + std::to_string(i) + ">");
    return names;
}

void require_countable(const TrainConfig& t, const std::string& name) {
    constexpr double most_tokens = 0x1p62;  // counts are of 63 bits: there is room
    const double step =
        static_cast<double>(t.batch) * static_cast<double>(t.accumulate) * static_cast<double>(t.sequence);
    if (static_cast<double>(t.steps) * step > most_tokens)
        fail_input(name, "train.steps", "at most " + two_digits(most_tokens) + " tokens in all",
                   std::to_string(t.steps) + " steps of " + two_digits(step));
}

RunConfig read_run_config(const nlohmann::json& json, const std::string& name,
                          const std::vector<std::string>& settings) {
    RunConfig config;
    std::vector<Field> fields = run_fields(config);
    nlohmann::json plain = json;
    config.train.groups = take_groups(plain);
    apply_json(fields, plain, name);
    for (const std::string& setting : settings)
        if (setting.starts_with(groups_setting))
            config.train.groups = groups_of_text(setting.substr(groups_setting.size()), name);
        else
            apply_setting(fields, setting);
    settle_head(config);
    resolve(config.model, name);
    check_objective(config, name);
    TrainConfig& t = config.train;
    if (t.sequence == 0) t.sequence = config.model.context;
    if (t.sequence > config.model.context)
        fail_input(name, "train.sequence",
                   "at most model.context (" + std::to_string(config.model.context) + ")",
                   std::to_string(t.sequence));
    if (config.model.reads_patches() && t.sequence != config.model.context)
        fail_input(name, "train.sequence", "0, as a picture is read whole", std::to_string(t.sequence));
    const Objective& objective = objective_of(t.objective);
    if (t.sequence < objective.shortest)
        fail_input(
            name, "train.sequence",
            "at least " + std::to_string(objective.shortest) + ", as train.objective is " + t.objective,
            std::to_string(t.sequence));
    if (objective.sentinels && sentinels(t) > most_sentinels)
        fail_input(name, "train.sequence",
                   "at most " + std::to_string(most_sentinels) + " spans, by train.masked",
                   std::to_string(sentinels(t)));
    if (config.model.head.next && t.sequence < shortest_pair)
        fail_input(name, "train.sequence",
                   "at least " + std::to_string(shortest_pair) + ", as model.head.next is true",
                   std::to_string(t.sequence));
    require_countable(t, name);
    const FinetuneConfig& f = config.finetune;
    if (f.model.empty() && (f.layers > 0 || f.head || f.reset_layers > 0 || f.lora.rank > 0 ||
                            f.layer_decay != 1 || !f.form.empty()))
        fail_input(name, "finetune.model", "a model to begin from, as other settings of finetune are given",
                   "none");
    if (config.tokenizer.kind == "file" && config.tokenizer.file.empty())
        fail_input(name, "tokenizer.file", "a path, as tokenizer.kind is file", "none");
    if (config.tokenizer.kind != "file" && !config.tokenizer.file.empty())
        fail_input(name, "tokenizer.kind", "file, as tokenizer.file is given", config.tokenizer.kind);
    t.model_width = config.model.width;
    groups_of(t, name);  // refuses what contradicts itself
    return config;
}

std::optional<std::string> last_setting(const std::vector<std::string>& settings, std::string_view key) {
    const std::string start = std::string(key) + "=";
    for (auto setting = settings.rbegin(); setting != settings.rend(); ++setting)
        if (setting->starts_with(start)) return setting->substr(start.size());
    return std::nullopt;
}

double decay_begin(const TrainConfig& c) {
    return decay_begin(c.schedule, static_cast<double>(c.steps));
}

RateSpan rate_span(const TrainConfig& c) {
    return {c.optimizer.lr, static_cast<double>(c.steps), static_cast<double>(c.model_width)};
}

double learning_rate(const TrainConfig& c, std::int64_t step) {
    return scheduled_rate(c.schedule, rate_span(c), step);
}

std::vector<ParameterGroup> groups_of(const TrainConfig& c, std::string_view file) {
    return parameter_groups(c.optimizer, c.schedule, c.groups, file);
}

}  // namespace linnet
