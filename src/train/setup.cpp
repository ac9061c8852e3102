#include "train/setup.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/split.h"
#include "base/terminal.h"
#include "base/utf8.h"
#include "model/architectures.h"
#include "model/convert/open.h"
#include "model/encode/encoder_text.h"
#include "train/chosen.h"
#include "train/optimize/optimizers.h"
#include "train/run_model.h"
#include "train/step/precision.h"
#include "train/task/example_task.h"
#include "train/task/objectives.h"

namespace linnet {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The config of a file, or (resuming) of the checkpoint; null: none is given.
struct GivenConfig {
    json config;
    std::string name, model;  // model: what it begins from; empty: nothing
};
GivenConfig given_config(const TrainingOptions& options, const RunSetup& setup) {
    GivenConfig given;
    given.name = input_name(options.config_path);
    if (!given.name.empty())
        given.config = parse_json(read_input(options.config_path), given.name);
    else if (setup.resumed)
        given.config = setup.checkpoint.config, given.name = *setup.resumed;
    given.model = start_model(given.config, settings_of(options));
    return given;
}

/// That with --set and --steps; where it begins from a model, the model is opened.
RunConfig read_given(const GivenConfig& given, const TrainingOptions& options, RunSetup& setup) {
    const std::vector<std::string> settings = settings_of(options);
    if (!given.model.empty()) open_base(given.model, setup.start);
    if (setup.resumed && setup.checkpoint.base != setup.start.fingerprint)
        fail(Exit::diverged, options.out, "finetune.model", "the model that the run began from",
             setup.start.base ? "another one, " + setup.start.base->path() : "none");
    return given.model.empty() ? read_run_config(given.config, given.name, settings)
                               : begin_from(given.model, given.config, given.name, settings, setup.start);
}

void note_rates(const RunSetup& setup) {
    const std::string stays = rate_that_stays(groups_of(setup.config.train));
    if (!stays.empty()) note(stays);
}

/// Numbers that this optimizer keeps for each element of a parameter.
int moments_kept(const OptimizerConfig& optimizer) {
    return moments_of(optimizer_kind(optimizer.kind), optimizer);
}

/// The optimizer of each parameter, and how many moments it keeps: what a checkpoint holds depends on them.
std::vector<std::pair<std::string, int>> optimizers_of(const TrainConfig& train, const Graph& graph,
                                                       const std::string& name) {
    const std::vector<ParameterGroup> groups = groups_of(train);
    std::vector<std::pair<std::string, int>> kept;
    for (std::size_t group : assign_groups(groups, graph, name)) {
        const OptimizerConfig& optimizer = groups[group].optimizer;
        kept.emplace_back(optimizer.kind, moments_kept(optimizer));
    }
    return kept;
}

/// Of --fields, as it is given.
std::string named(const std::vector<std::string>& fields) {
    return fields.empty() ? "none" : joined(fields, ",");
}

/// A run goes on only as what it was: the same model, vocabulary, data and batches. The rest may change.
void check_resume(const RunSetup& setup, const TrainingOptions& options, const Graph& graph,
                  const std::string& data) {
    constexpr const char* keeps = "the checkpoint holds what that one keeps";
    json was = setup.checkpoint.config, now = setup.config_json;
    for (json* config : {&was, &now}) {  // wherever it lies, it is the same one
        if (!setup.start.base) break;
        (*config)["finetune"].erase("model");
        (*config)["tokenizer"].erase("file");
    }
    for (const char* key : {"model", "tokenizer", "finetune"})
        if (was.value(key, json()) != now.value(key, json()))
            fail(Exit::diverged, options.out, key, "the checkpoint's config", "another one",
                 "train into another folder, or leave the config out");
    auto optimizer = [](const json& config) { return config["train"]["optimizer"].value("kind", ""); };
    if (optimizer(was) != optimizer(now))
        fail(Exit::diverged, options.out, "train.optimizer.kind", optimizer(was), optimizer(now), keeps);
    const RunConfig then = read_run_config(setup.checkpoint.config, *setup.resumed, {});
    if (optimizers_of(then.train, graph, *setup.resumed) !=
        optimizers_of(setup.config.train, graph, setup.config_name)) {
        const OptimizerConfig &before = then.train.optimizer, &after = setup.config.train.optimizer;
        if (moments_kept(before) != moments_kept(after))
            fail(Exit::diverged, options.out, "train.optimizer.momentum", json(before.momentum).dump(),
                 json(after.momentum).dump(), keeps);
        fail(Exit::diverged, options.out, "train.groups", "the same optimizer for each parameter",
             "another one for some", keeps);
    }
    for (const char* key : {"batch", "sequence", "accumulate", "seed", "objective", "replaced", "masked",
                            "augment", "validation_fraction"})
        if (was["train"].value(key, json()) != now["train"].value(key, json()))
            fail(Exit::diverged, options.out, std::string("train.") + key,
                 was["train"].value(key, json()).dump(), now["train"].value(key, json()).dump());
    if (setup.checkpoint.inputs.fields != setup.data.fields)
        fail(Exit::diverged, options.out, "--fields",
             named(setup.checkpoint.inputs.fields) + ", as the run began", named(setup.data.fields));
    if (setup.checkpoint.data != setup.data_hash)
        fail(Exit::diverged, data, "",
             "the text that the run began with (sha256 " + setup.checkpoint.data + ")",
             "another one (" + setup.data_hash + ")");
}

/// That groups match parameters, and that a resumed run may go on; `data` is for messages.
void check_groups(const RunSetup& setup, const TrainingOptions& options, const std::string& data) {
    const TracedModel traced = training_graph(setup.config.model, setup.start.learner);
    assign_groups(groups_of(setup.config.train), traced.graph, setup.config_name);
    if (setup.resumed) check_resume(setup, options, traced.graph, data);
}

/// What "auto" stands for is found once per run: a resumed one keeps what its checkpoint says.
void settle_precision(RunSetup& setup) {
    std::string& precision = setup.config.train.precision;
    if (precision == "f32-split" && !kernels().narrow.split)
        note(std::string("f32-split needs matrix units, which ") + kernels().name +
             " has not: products are those of f32");
    if (precision == "bf16" && !kernels().narrow.rounded)
        note(std::string("bf16: ") + kernels().name +
             " has no products of it, so they are those of f32; what is kept for the backward pass takes "
             "half the "
             "memory");
    if (precision != "auto") return;
    if (!setup.resumed) {
        precision = fastest_precision(setup.config, setup.threads);
        return;
    }
    const json train = setup.checkpoint.config.value("train", json::object());
    precision = train.value("precision", "f32");
    if (precision == "auto") precision = "f32";  // what it was before there was a choice
}

/// Each text goes on where the checkpoint left it.
void check_positions(const RunSetup& setup, const TrainingOptions& options) {
    if (setup.checkpoint.inputs.weights != setup.data.weights)
        fail(Exit::diverged, options.out, "--data", "the weights that the run began with", "others");
    const json now = text_positions(setup, setup.checkpoint.step);
    if (!setup.checkpoint.texts.is_null() && setup.checkpoint.texts != now)
        fail(Exit::diverged, options.out, "texts", setup.checkpoint.texts.dump(), now.dump());
}

/// Steps that read all data so many times.
void set_steps(RunSetup& setup, double epochs) {
    TrainConfig& t = setup.config.train;
    const double all = epochs * static_cast<double>(setup.text_size.train_tokens);
    const double steps = std::ceil(all / static_cast<double>(t.step_tokens()));
    t.steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::min(steps, 1e12)));
}

/// An end that is given may not lie behind a resumed run. That of its own checkpoint may, where an older
/// version took such a one.
void check_end(const RunSetup& setup, const TrainingOptions& options) {
    const std::int64_t done = setup.checkpoint.step, steps = setup.config.train.steps;
    if (steps >= done) return;
    const std::string stands = grouped(static_cast<std::uint64_t>(done)) + ", where the run stands",
                      end = grouped(static_cast<std::uint64_t>(steps));
    if (options.steps) fail(Exit::usage, "", "--steps", "at least " + stands, end);
    if (options.epochs > 0) fail(Exit::usage, "", "--epochs", "at least step " + stands, "step " + end);
    if (last_setting(options.set, "train.steps"))
        fail(Exit::usage, "--set", "train.steps", "at least " + stands, end);
    if (!options.config_path.empty())
        fail(Exit::diverged, setup.config_name, "train.steps", "at least " + stands, end);
}

/// Once it is known how long the data is: the batch, in which numbers it is computed, how often.
void settle_steps(const TrainingOptions& options, RunSetup& setup) {
    choose_batch(options, setup);
    settle_precision(setup);
    if (options.epochs > 0) set_steps(setup, options.epochs);
    require_countable(setup.config.train, setup.config_name);
    check_end(setup, options);
    require_time_of_given(options, setup);
    setup.config_json = whole_config(setup.config);
}

/// The run's folder, and the checkpoint to go on from.
void open_folder(const TrainingOptions& options, RunSetup& setup) {
    if (!options.dry_run)
        setup.folder = std::make_unique<RunFolder>(options.out, options.resume      ? RunStart::resume
                                                                : options.overwrite ? RunStart::overwrite
                                                                                    : RunStart::fresh);
    if (!options.resume) return;
    setup.checkpoint = read_newest_checkpoint(options.out + "/checkpoints", setup.resumed.emplace());
    if (!setup.checkpoint.isa.empty() && setup.checkpoint.isa != kernels().name)
        note("the run so far was computed with " + setup.checkpoint.isa + ", its rest with " +
             kernels().name + ": its bytes will differ from those of a run with one of them (--isa chooses)");
}

/// A base that stands in the folder would go with the run that is replaced, at the first checkpoint.
void check_base(const RunSetup& setup, const TrainingOptions& options) {
    std::error_code ignored;
    if (!setup.start.base || !options.overwrite || !fs::exists(setup.start.base->path(), ignored)) return;
    const fs::path base = fs::weakly_canonical(fs::absolute(setup.start.base->path(), ignored), ignored);
    fs::path out = fs::weakly_canonical(fs::absolute(options.out, ignored), ignored);
    if (!out.has_filename()) out = out.parent_path();  // named with a slash at its end
    if (std::mismatch(out.begin(), out.end(), base.begin(), base.end()).first == out.end())
        fail(Exit::usage, "", "--out", "a folder without the model that the run begins from",
             options.out + ", where it is " + base.lexically_relative(out).string());
}

/// What --data says, or (resuming) what the run began with; its folder is no part of that.
DataOptions data_options(const TrainingOptions& options, const RunSetup& setup) {
    DataOptions known = options.data;
    if (known.inputs.empty()) {
        known = setup.checkpoint.inputs;
        if (known.inputs.empty())
            fail(Exit::usage, "", "--data", "the text that the run began with", "none",
                 "its checkpoint does not name it");
        if (std::find(known.inputs.begin(), known.inputs.end(), "-") != known.inputs.end())
            fail(Exit::usage, "", "--data", "the text that the run began with", "none",
                 "it was read from stdin");
    }
    known.read.except = options.out;
    std::error_code ignored;
    for (const std::string& input : known.inputs)
        if (!setup.resumed && fs::equivalent(input, options.out, ignored))
            fail(Exit::usage, "", "--out", "another folder than --data", options.out);
    return known;
}

/// What a config's own vocabulary is called in errors.
std::string tokenizer_name(const RunSetup& setup, const std::string& data) {
    return setup.config.tokenizer.kind == "file" ? setup.config.tokenizer.file : data;
}

/// A run's folder, as tokenizer.file, stands for the file in it.
void settle_tokenizer_file(RunSetup& setup) {
    TokenizerConfig& tokenizer = setup.config.tokenizer;
    if (tokenizer.kind == "file" && !setup.start.base) tokenizer.file = tokenizer_of_run(tokenizer.file);
}

/// What stands beside the model, and what its tags are called: of the objective replaced.
void settle_generator(RunSetup& setup) {
    const TrainConfig& t = setup.config.train;
    if (!objective_of(t.objective).generator) return;
    setup.start.learner.generator = {t.replaced.generator, t.masked.share, t.replaced.weight};
    setup.labels = replaced_labels();
}

/// Objectives of windows other than the next token.
void prepare_task(const RunTexts& texts, RunSetup& setup) {
    const TrainConfig& t = setup.config.train;
    if (objective_of(t.objective).next_token) return;
    if (setup.windows->parts() > 1)
        fail(Exit::usage, "", "--data", "texts without weights, as train.objective is " + t.objective,
             "weights");
    setup.task = window_task(setup.config, setup.windows->part(0), setup.tokenizer,
                             tokenizer_name(setup, texts.name()));
}

/// The id that answers begin behind becomes part of the config, as files say it. A tokenizer that no model
/// file could hold is refused before anything is learned.
void fix_tokenizer(RunSetup& setup, const std::string& data) {
    ModelConfig& m = setup.config.model;
    if (!setup.start.base && !m.reads_patches())
        require_gguf_tokenizer(tokenizer_name(setup, data), setup.tokenizer);
    if (m.kind == "encoder-decoder")
        m.start_token = answer_marks(*setup.tokenizer, m, tokenizer_name(setup, data)).start;
}

void note_names(const RunSetup& setup) {
    if (!has_standard_architecture(setup.config.model))
        note(
            "GGUF has no name for these model settings: only linnet will load model.gguf (README.md, \"Other "
            "runtimes\", has those that it has)");
}

/// The tokenizer, and with it all of the model; whether a resumed run may go on so. `data` (called `name`)
/// makes a vocabulary where there is none yet.
template <class Data>
void settle_model(const TrainingOptions& options, const Data& data, const std::string& name,
                  RunSetup& setup) {
    check_base(setup, options);
    settle_tokenizer_file(setup);
    setup.tokenizer = setup.start.base ? setup.start.base->shared_tokenizer()
                      : setup.resumed  ? tokenizer_from_gguf(Gguf(*setup.resumed + "/" + best_model))
                                       : data.tokenizer(setup.config, setup.threads);
    ModelConfig& model = setup.config.model;
    if (!model.reads_patches()) model.vocabulary = setup.tokenizer->size();
    // A run that began before this was asked goes on as it is.
    if (!setup.resumed && !setup.start.base) require_learnable(model, setup.config_name);
    settle_generator(setup);
    fix_tokenizer(setup, name);
    setup.config_json = whole_config(setup.config);
    check_groups(setup, options, name);
}

/// A run of labelled examples.
void set_up_examples(const TrainingOptions& options, RunSetup& setup) {
    if (!options.data.weights.empty())
        fail(Exit::usage, "", "--data", "files of examples without weights", "a weight");
    ExampleData data(setup.config, data_options(options, setup));
    setup.data = data.options();
    setup.data_hash = data.sha256();
    const std::string name = setup.data.inputs[0], description = data.description();
    if (setup.start.base && !setup.start.new_head) data.keep_labels(*setup.start.base);
    data.fit(setup.config);
    setup.labels = data.labels();
    if (objective_of(setup.config.train.objective).examples == LabelledKind::classes &&
        !setup.config.model.reads_patches())
        setup.two_texts = data.two_texts();
    settle_model(options, data, name, setup);
    setup.task = data.task(setup.config, setup.tokenizer, tokenizer_name(setup, name));
    // Each example takes a sequence, however long it is.
    const auto length = static_cast<std::uint64_t>(setup.config.train.sequence);
    setup.text_size = {data.bytes(), setup.task->size(DataSplit::train) * length, tuning_epochs};
    settle_steps(options, setup);
    note(name + ": " + description);
    note_names(setup);
    choose_rest(options, setup);
}

/// What a resumed run's checkpoint holds.
std::string checkpoint_model(const RunSetup& setup) {
    return *setup.resumed + "/" + setup.start.model_name();
}

/// How the first conversation, at `chat`, and all others are marked.
ChatTemplate form_of_chats(const RunSetup& setup, const std::string& chat) {
    ChatTemplate form = template_of(setup.start, chat);
    if (form.continues)
        fail_input(chat, "messages", "a chat template with roles", form.name + ", which has none",
                   "--template names another");
    return form;
}

/// Of each text a stream of tokens; or it is packed: examples, and where the run begins from a model the
/// documents of one text.
void prepare_tokens(RunTexts& texts, RunSetup& setup) {
    const TrainConfig& t = setup.config.train;
    const RunData* examples = texts.examples();
    const bool next = objective_of(t.objective).next_token;
    if (examples && !next)
        fail_input(examples->name(), "", "texts, as train.objective is " + t.objective,
                   "examples with answers");
    std::optional<ChatTemplate> chats;
    if (!texts.first_chat().empty()) chats = form_of_chats(setup, texts.first_chat());
    const ChatTemplate* form = chats ? &*chats : nullptr;
    const auto seed = static_cast<std::uint64_t>(t.seed);
    setup.windows.emplace(texts.tokens(*setup.tokenizer, form, setup.start.base && next,
                                       t.validation_fraction, seed, t.sequence, setup.threads),
                          setup.data.weights, seed, t.sequence);
    // A step reads whole bins, however much of them is learned.
    setup.text_size = {texts.bytes(), setup.windows->epoch_rows(), setup.start.base ? tuning_epochs : 0};
}

/// Adds sequence `index` of a split (and where that is held out, of text `part`) to the batch.
void add_sequence(const RunSetup& setup, DataSplit split, std::size_t part, std::uint64_t index,
                  Batch& work) {
    if (setup.task) return setup.task->add(split, index, work);
    if (split == DataSplit::train) return setup.windows->add(index, work);
    setup.windows->part(part).add(split, index, work);
}

/// Rows with a loss in all micro-batches of a step, of which `work` is one.
std::int64_t step_targets(const RunSetup& setup, std::int64_t step, const Batch& work) {
    const TrainConfig& t = setup.config.train;
    if (t.accumulate == 1) return std::max<std::int64_t>(1, target_count(work));
    const std::int64_t sequences = t.batch * t.accumulate;
    if (setup.task) return setup.task->targets(step, sequences);
    return setup.windows->targets(static_cast<std::uint64_t>(step * sequences),
                                  static_cast<std::uint64_t>((step + 1) * sequences));
}

/// All of a micro-batch but the scale of its loss, which the other ones of the step have a share in.
void read_batch(const RunSetup& setup, std::int64_t step, std::int64_t micro, Batch& work) {
    const TrainConfig& t = setup.config.train;
    const std::int64_t count = step * t.accumulate + micro;
    work = Batch();
    work.seed = static_cast<std::uint64_t>(t.seed);
    work.step = static_cast<std::uint64_t>(count);
    work.training = true;
    for (std::int64_t b = 0; b < t.batch; b++)
        add_sequence(setup, DataSplit::train, 0, static_cast<std::uint64_t>(count * t.batch + b), work);
    work.step_share = 1.0 / static_cast<double>(t.accumulate);
    work.sequence_scale = work.step_share / static_cast<double>(t.batch);
}

/// Sequences held out of text `part`.
std::int64_t held_out_sequences(const RunSetup& setup, std::size_t part) {
    return static_cast<std::int64_t>(setup.task ? setup.task->held_out()
                                                : setup.windows->part(part).validation_windows());
}

}  // namespace

double bits_per_byte(const RunSetup& setup, std::size_t part, double nats) {
    const auto [tokens, bytes] = setup.held_out(part);
    return nats / std::log(2.0) * static_cast<double>(tokens) / static_cast<double>(bytes);
}

json whole_config(RunConfig config) {
    json all = to_json(run_fields(config));
    if (!config.train.groups.empty())
        all["train"]["groups"] = config.train.groups;  // which may use what the run itself does not
    else if (config.train.schedule.kind != "wsd")
        all["train"]["schedule"].erase("decay");
    return all;
}

RunSetup set_up(const TrainingOptions& options) {
    if (const auto steps = last_setting(options.set, "train.steps"); steps && options.epochs > 0)
        fail(Exit::usage, "", "--epochs", "no --set train.steps beside it, as each says when the run ends",
             "train.steps=" + *steps);
    RunSetup setup;
    setup.started = Clock::now();
    setup.time_limit_s = options.time_limit_s;
    setup.threads = threads_or_cores(options.threads);
    open_folder(options, setup);
    GivenConfig given = given_config(options, setup);
    setup.chosen = given.config.is_null();
    setup.config_name = given.name;
    const bool from_nothing = setup.chosen && given.model.empty();
    if (!from_nothing) {
        setup.config =
            setup.chosen ? tuning_config(given.model, options, setup) : read_given(given, options, setup);
        if (setup.start.base)
            settle_template(setup.config.finetune, setup.resumed ? checkpoint_model(setup) : "", setup.start);
        note_rates(setup);
        if (reads_examples(setup.config.train)) {
            set_up_examples(options, setup);
            return setup;
        }
    }
    RunTexts data(data_options(options, setup));
    setup.data = data.options();
    setup.data_hash = data.sha256();
    const std::vector<std::string> descriptions = data.descriptions();  // said once nothing is refused
    if (from_nothing) {
        setup.config = default_config(options, data, setup);
        note_rates(setup);
    } else {
        choose_held_out(options, data.bytes(), setup);
    }
    const TrainConfig& t = setup.config.train;
    if (reads_examples(t))
        fail(Exit::usage, "", "CONFIG", "a config, as train.objective is " + t.objective, "none");
    settle_model(options, data, data.name(), setup);
    if (setup.start.base && !data.own_tokenizer().empty())
        require_vocabulary(setup.start, *load_tokenizer(data.own_tokenizer()), data.own_tokenizer());
    data.check(options.verify);
    prepare_tokens(data, setup);
    prepare_task(data, setup);
    if (setup.resumed) check_positions(setup, options);
    settle_steps(options, setup);
    if (options.plan) require_time_left(setup);
    for (const std::string& description : descriptions) note(description);
    for (const std::string& line : data.notes()) note(line);
    note_names(setup);
    if (!data.own_tokenizer().empty() && setup.config.tokenizer.kind != "file")
        note("the tokenizer is that of the corpus: " + data.own_tokenizer());
    choose_rest(options, setup);
    return setup;
}

void fill_batch(const RunSetup& setup, std::int64_t step, std::int64_t micro, Batch& work) {
    read_batch(setup, step, micro, work);
    work.loss_scale = 1.0 / static_cast<double>(step_targets(setup, step, work));
}

BatchesAhead batches_of(const RunSetup& setup) {
    // The targets of a step are counted with its first micro-batch, and kept for the others.
    const auto make = [&setup, counted_step = std::int64_t{-1}, targets = std::int64_t{0}](
                          std::int64_t number, Batch& batch) mutable {
        const std::int64_t micros = setup.config.train.accumulate, step = number / micros;
        read_batch(setup, step, number % micros, batch);
        if (step != counted_step) {
            targets = step_targets(setup, step, batch);
            counted_step = step;
        }
        batch.loss_scale = 1.0 / static_cast<double>(targets);
    };
    return {make, setup.prepares_ahead()};
}

LearnedStep learn_step(const RunSetup& setup, std::int64_t step, Learner& learner, BatchesAhead& batches) {
    const std::int64_t micros = setup.config.train.accumulate, end = setup.config.train.steps * micros;
    LearnedStep learned;
    for (std::int64_t number = step * micros; number < (step + 1) * micros; number++) {
        const Batch batch = batches.take(number, end);
        learned.rows += batch.rows.count;
        learned.loss += learner.learn(batch) * batch.loss_scale;
    }
    return learned;
}

bool fill_validation(const RunSetup& setup, std::size_t part, std::int64_t i, std::int64_t batches,
                     Batch& work) {
    const std::int64_t size = setup.config.train.batch, count = held_out_sequences(setup, part);
    const std::int64_t all = (count + size - 1) / size;
    if (batches == 0 || batches > all) batches = all;
    if (i >= batches) return false;
    // Neighbours in a text are alike: sequences that lie apart, the middle one of each part, say more.
    const std::int64_t read = std::min(batches * size, count);
    work = Batch();
    for (std::int64_t b = i * size; b < std::min((i + 1) * size, read); b++)
        add_sequence(setup, DataSplit::validation, part,
                     static_cast<std::uint64_t>((2 * b + 1) * count / (2 * read)), work);
    return true;
}

json text_positions(const RunSetup& setup, std::int64_t step) {
    if (setup.texts() == 1) return nullptr;
    const WindowMixture& windows = *setup.windows;
    const TrainConfig& t = setup.config.train;
    const auto sequences = static_cast<std::uint64_t>(step * t.accumulate * t.batch);
    json texts = json::array();
    for (std::size_t i = 0; i < windows.parts(); i++)
        texts.push_back({{"weight", windows.weight(i)}, {"sequences", windows.drawn(i, sequences)}});
    return texts;
}

std::string held_out_line(const RunSetup& setup) {
    if (setup.task) return setup.task->sample_source();
    constexpr std::size_t shortest = 20, longest = 80, some = 40;  // bytes
    std::vector<std::int32_t> ids(static_cast<std::size_t>(setup.config.train.sequence)), targets(ids.size());
    const WindowSampler& sampler = setup.windows->part(0);
    if (sampler.source().packed()) return sampler.source().packed()->held_out_beginning(*setup.tokenizer);
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(sampler.validation_windows(), 20); i++) {
        sampler.validation_window(i, ids, targets);
        std::string text = setup.tokenizer->decode(ids);
        std::size_t begin = text.find('\n');  // the first line may have begun before
        while (begin != std::string::npos) {
            std::size_t end = text.find('\n', ++begin);
            if (end == std::string::npos) break;
            if (end - begin >= shortest && end - begin <= longest) return text.substr(begin, end - begin + 1);
            begin = end;
        }
    }
    // Lines of another kind, or none: what the held-out text begins with.
    if (sampler.validation_windows() == 0) return {};
    sampler.validation_window(0, ids, targets);
    const std::string text = setup.tokenizer->decode(ids);
    return text.empty() ? text : text.substr(0, character_start(text, std::min(some, text.size() - 1)));
}

}  // namespace linnet
