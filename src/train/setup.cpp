#include "train/setup.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/terminal.h"
#include "kernels/peaks.h"
#include "model/architectures.h"
#include "model/encode/encoder_text.h"
#include "train/example_task.h"
#include "train/ladder.h"
#include "train/timing.h"

namespace linnet {
namespace {

using nlohmann::json;

/// The settings that options stand for: --set, then --steps.
std::vector<std::string> settings_of(const TrainingOptions& options) {
    std::vector<std::string> settings = options.set;
    if (options.steps) settings.push_back("train.steps=" + std::to_string(*options.steps));
    return settings;
}

bool sets(const std::vector<std::string>& settings, const std::string& key) {
    return std::any_of(settings.begin(), settings.end(),
                       [&](const std::string& setting) { return setting.starts_with(key + "="); });
}

/// A default run's model and vocabulary. Where the steps are given and no time is, speed has no part in it.
RunConfig default_config(const TrainingOptions& options, const RunData& data, RunSetup& setup) {
    const std::vector<std::string> settings = settings_of(options);
    Prospect prospect;
    prospect.bytes = data.bytes();
    prospect.vocabulary = data.vocabulary();
    setup.by_time = options.time_limit_s > 0 || !sets(settings, "train.steps");
    if (setup.by_time) {
        if (setup.time_limit_s == 0) setup.time_limit_s = default_seconds;
        setup.peak_flops = measured_peak_flops(setup.threads);
        prospect.seconds = setup.time_limit_s;
        prospect.flops = setup.peak_flops;
    } else {
        prospect.seconds = default_seconds;
        prospect.flops = 5e11;  // a laptop's two cores
    }
    return read_run_config(choose_config(prospect), "default config", settings);
}

/// The config where it does not depend on the data: a file's, or a checkpoint's.
std::optional<RunConfig> given_config(const TrainingOptions& options, const RunSetup& setup) {
    const std::vector<std::string> settings = settings_of(options);
    if (!options.config_path.empty())
        return read_run_config(parse_json(read_file(options.config_path), options.config_path),
                               options.config_path, settings);
    if (setup.resumed) return read_run_config(setup.checkpoint.config, *setup.resumed, settings);
    return std::nullopt;
}

/// That, or a default.
RunConfig choose_config(const TrainingOptions& options, const RunData& data, RunSetup& setup) {
    if (auto given = given_config(options, setup)) return std::move(*given);
    setup.chosen = true;
    return default_config(options, data, setup);
}

/// Steps, warm-up and cadence of a default run, from the speed of some steps.
void choose_schedule(const TrainingOptions& options, RunSetup& setup) {
    const std::vector<std::string> settings = settings_of(options);
    RunConfig& config = setup.config;
    if (!setup.by_time) return fit_cadence(config, settings);
    double step_seconds = time_steps(config, config.model.vocabulary, setup.threads, 30,
                                     std::min(2.0, 0.03 * setup.time_limit_s))
                              .step_ms /
                          1e3;
    double left = std::max(0.1, setup.time_limit_s - seconds_since(setup.started));
    fit_schedule(config, settings, step_seconds, left, setup.text_size);
    // The end follows the clock only where its steps were ours to choose, and do not change those before.
    setup.by_time = config.train.schedule.kind == "wsd" && config.train.schedule.decay < 1 &&
                    !sets(settings, "train.steps");
}

void say_choice(const RunSetup& setup) {
    const ModelConfig& m = setup.config.model;
    const TrainConfig& t = setup.config.train;
    auto tokens = static_cast<double>(t.batch * t.sequence * t.accumulate * t.steps);
    char times[32];
    std::snprintf(times, sizeof times, "%.2g",
                  tokens / static_cast<double>(std::max<std::uint64_t>(setup.text_size.train_tokens, 1)));
    note("chosen" + (setup.time_limit_s > 0 ? " for " + human_seconds(setup.time_limit_s) : "") + ": " +
         std::to_string(m.layers) + (m.layers == 1 ? " layer of width " : " layers of width ") +
         std::to_string(m.width) + ", " + grouped(static_cast<std::uint64_t>(t.steps)) + " steps of " +
         grouped(static_cast<std::uint64_t>(t.batch * t.sequence * t.accumulate)) + " tokens, " + times +
         " times the text (config.json has all of it)");
}

/// A run goes on only as what it was: the same model, vocabulary, data and batches. The rest may change.
void check_resume(const RunSetup& setup, const TrainingOptions& options, const std::string& data) {
    json was = setup.checkpoint.config, now = setup.config_json;
    for (const char* key : {"model", "tokenizer"})
        if (was.value(key, json()) != now[key])
            fail(Exit::diverged, options.out, key, "the checkpoint's config", "another one",
                 "train into another folder, or leave the config out");
    for (const char* key : {"batch", "sequence", "accumulate", "seed"})
        if (was["train"].value(key, json()) != now["train"][key])
            fail(Exit::diverged, options.out, std::string("train.") + key,
                 was["train"].value(key, json()).dump(), now["train"][key].dump());
    if (setup.checkpoint.data != setup.data_hash)
        fail(Exit::diverged, data, "",
             "the text that the run began with (sha256 " + setup.checkpoint.data + ")",
             "another one (" + setup.data_hash + ")");
}

/// The run's folder, and the checkpoint to go on from.
void open_folder(const TrainingOptions& options, RunSetup& setup) {
    setup.folder = std::make_unique<RunFolder>(options.out, options.resume      ? RunStart::resume
                                                            : options.overwrite ? RunStart::overwrite
                                                                                : RunStart::fresh);
    if (!options.resume) return;
    setup.checkpoint = read_newest_checkpoint(options.out + "/checkpoints", setup.resumed.emplace());
    if (!setup.checkpoint.isa.empty() && setup.checkpoint.isa != kernels().name)
        note("the run so far was computed with " + setup.checkpoint.isa + ", its rest with " +
             kernels().name + ": its bytes will differ from those of a run with one of them (--isa chooses)");
}

/// What --data says, or (resuming) what the run began with.
DataOptions data_options(const TrainingOptions& options, const RunSetup& setup) {
    if (!options.data.inputs.empty()) return options.data;
    DataOptions known = setup.checkpoint.inputs;
    if (known.inputs.empty())
        fail(Exit::usage, "", "--data", "the text that the run began with", "none",
             "its checkpoint does not name it");
    if (std::find(known.inputs.begin(), known.inputs.end(), "-") != known.inputs.end())
        fail(Exit::usage, "", "--data", "the text that the run began with", "none", "it was read from stdin");
    return known;
}

/// What a config's own vocabulary is called in errors.
std::string tokenizer_name(const RunSetup& setup, const std::string& data) {
    return setup.config.tokenizer.kind == "file" ? setup.config.tokenizer.file : data;
}

/// The id that answers begin behind becomes part of the config, as files say it.
void fix_start_token(RunSetup& setup, const std::string& data) {
    ModelConfig& m = setup.config.model;
    if (m.kind == "encoder-decoder")
        m.start_token = answer_marks(*setup.tokenizer, m, tokenizer_name(setup, data)).start;
}

void note_names(const RunSetup& setup) {
    if (!has_standard_architecture(setup.config.model))
        note(
            "GGUF has no name for these model settings: only linnet will load model.gguf (README.md, \"Other "
            "runtimes\", has those that it has)");
}

/// A run of labelled examples.
void set_up_examples(const TrainingOptions& options, RunSetup& setup) {
    ExampleData data(setup.config, data_options(options, setup));
    setup.data = data.options();
    setup.data_hash = data.sha256();
    const std::string name = setup.data.inputs[0], description = data.description();
    data.fit(setup.config);
    setup.labels = data.labels();
    setup.tokenizer = setup.resumed ? tokenizer_from_gguf(Gguf(*setup.resumed + "/model.gguf"))
                                    : data.tokenizer(setup.config, setup.threads);
    if (!setup.config.model.reads_patches()) setup.config.model.vocabulary = setup.tokenizer->size();
    fix_start_token(setup, name);
    setup.config_json = whole_config(setup.config);
    if (setup.resumed) check_resume(setup, options, name);
    setup.task = data.task(setup.config, setup.tokenizer, tokenizer_name(setup, name));
    setup.text_size = {data.bytes(), setup.task->size(DataSplit::train)};
    note(name + ": " + description);
    note_names(setup);
}

}  // namespace

json whole_config(RunConfig config) {
    json all = to_json(run_fields(config));
    if (config.train.schedule.kind != "wsd") all["train"]["schedule"].erase("decay");  // it would say nothing
    return all;
}

RunSetup set_up(const TrainingOptions& options) {
    RunSetup setup;
    setup.started = Clock::now();
    setup.time_limit_s = options.time_limit_s;
    setup.threads = options.threads > 0 ? options.threads : physical_cores();
    if (!options.dry_run) open_folder(options, setup);
    if (auto config = given_config(options, setup); config && reads_examples(config->train)) {
        setup.config = std::move(*config);
        set_up_examples(options, setup);
        return setup;
    }
    RunData data(data_options(options, setup));
    setup.data = data.options();
    setup.data_hash = data.sha256();
    const std::string description = data.name() + ": " + data.description();  // said once nothing is refused
    setup.config = choose_config(options, data, setup);
    const TrainConfig& t = setup.config.train;
    setup.tokenizer = setup.resumed ? tokenizer_from_gguf(Gguf(*setup.resumed + "/model.gguf"))
                                    : data.tokenizer(setup.config, setup.threads);
    setup.config.model.vocabulary = setup.tokenizer->size();
    fix_start_token(setup, data.name());
    setup.config_json = whole_config(setup.config);
    if (setup.resumed) check_resume(setup, options, data.name());
    data.check(options.verify);
    TokenSource source = data.tokens(*setup.tokenizer, t.validation_fraction, setup.threads);
    setup.text_size = {data.bytes(), source.size(DataSplit::train)};
    setup.windows.emplace(std::move(source), static_cast<std::uint64_t>(t.seed), t.sequence);
    if (t.objective != "next")
        setup.task =
            window_task(setup.config, *setup.windows, setup.tokenizer, tokenizer_name(setup, data.name()));
    note(description);
    note_names(setup);
    if (!data.own_tokenizer().empty() && setup.config.tokenizer.kind != "file")
        note("the tokenizer is that of the corpus: " + data.own_tokenizer());
    if (setup.chosen) {
        if (setup.by_time && options.time_limit_s == 0)
            note("no --time given: training takes " + human_seconds(default_seconds) + " at most");
        choose_schedule(options, setup);
        setup.config_json = whole_config(setup.config);
        say_choice(setup);
    }
    return setup;
}

std::uint64_t data_size(const RunSetup& setup, DataSplit split) {
    return setup.task ? setup.task->size(split) : setup.windows->source().size(split);
}

void fill_batch(const RunSetup& setup, std::int64_t step, std::int64_t micro, Batch& work) {
    if (setup.task) return setup.task->fill(step, micro, work);
    const TrainConfig& t = setup.config.train;
    work = Batch();
    std::vector<std::int32_t> inputs(static_cast<std::size_t>(t.sequence)), targets(inputs.size());
    for (std::int64_t b = 0; b < t.batch; b++) {
        std::int64_t index = (step * t.accumulate + micro) * t.batch + b;
        setup.windows->train_window(static_cast<std::uint64_t>(index), inputs, targets);
        work.add(inputs.data(), t.sequence, 0, b);
        work.targets.insert(work.targets.end(), targets.begin(), targets.end());
    }
    work.loss_scale = 1.0 / static_cast<double>(t.batch * t.sequence * t.accumulate);
    work.seed = static_cast<std::uint64_t>(t.seed);
    work.step = static_cast<std::uint64_t>(step * t.accumulate + micro);
    work.training = true;
}

bool fill_validation(const RunSetup& setup, std::int64_t i, std::int64_t batches, Batch& work) {
    if (setup.task) return setup.task->fill_validation(i, batches, work);
    const TrainConfig& t = setup.config.train;
    auto windows = static_cast<std::int64_t>(setup.windows->validation_windows());
    std::int64_t all = (windows + t.batch - 1) / t.batch;
    if (batches == 0 || batches > all) batches = all;
    if (i >= batches) return false;
    std::int64_t first = i * all / batches * t.batch;
    work = Batch();
    std::vector<std::int32_t> inputs(static_cast<std::size_t>(t.sequence)), targets(inputs.size());
    for (std::int64_t b = 0; b < t.batch && first + b < windows; b++) {
        setup.windows->validation_window(static_cast<std::uint64_t>(first + b), inputs, targets);
        work.add(inputs.data(), t.sequence, 0, b);
        work.targets.insert(work.targets.end(), targets.begin(), targets.end());
    }
    return true;
}

std::string held_out_line(const RunSetup& setup) {
    if (setup.task) return setup.task->sample_source();
    constexpr std::size_t shortest = 20, longest = 80;  // bytes
    std::vector<std::int32_t> ids(static_cast<std::size_t>(setup.config.train.sequence)), targets(ids.size());
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(setup.windows->validation_windows(), 20); i++) {
        setup.windows->validation_window(i, ids, targets);
        std::string text = setup.tokenizer->decode(ids);
        std::size_t begin = text.find('\n');  // the first line may have begun before
        while (begin != std::string::npos) {
            std::size_t end = text.find('\n', ++begin);
            if (end == std::string::npos) break;
            if (end - begin >= shortest && end - begin <= longest) return text.substr(begin, end - begin + 1);
            begin = end;
        }
    }
    return {};
}

}  // namespace linnet
