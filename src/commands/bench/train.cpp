// linnet bench train: the speed of training steps, on random tokens, or on the first ones of a run's data.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/team.h"
#include "commands/bench/profile.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/read_options.h"
#include "commands/training_options.h"
#include "data/labelled/lines.h"
#include "kernels/kernels.h"
#include "kernels/peaks.h"
#include "model/convert/source.h"
#include "text/tokenizer.h"
#include "train/run_model.h"
#include "train/setup.h"
#include "train/step/precision.h"
#include "train/step/timing.h"

namespace linnet {
namespace {

struct Options {
    TrainingOptions run;  // config, settings, data
    std::string fields;
    std::int64_t steps = 10, vocabulary = 0;
    bool json = false, profile = false;
};

/// What the config's tokenizer would have; a character vocabulary depends on the text, so a play's is taken.
std::int64_t vocabulary_of(const TokenizerConfig& tokenizer) {
    if (tokenizer.kind == "file") return tokenizer_at(tokenizer_of_run(tokenizer.file))->size();
    if (tokenizer.kind == "byte") return 256;
    if (tokenizer.kind == "char") return 65;
    return tokenizer.vocab_size;
}

/// A row per op and direction.
std::vector<ProfileRow> rows_of(const std::vector<StepShare>& shares, const ProductsPeak& peak) {
    std::vector<ProfileRow> rows;
    for (const StepShare& share : shares)
        rows.push_back({share.op, share.direction, share.seconds, share.flops / std::max(share.seconds, 1e-9),
                        peak.flops});
    return rows;
}

std::string profile_text(const std::vector<ProfileRow>& rows, const ProductsPeak& peak) {
    char line[160];
    std::snprintf(line, sizeof line,
                  "\nop by op, %.2f ms per step; GFLOP/s, of the measured %s peak of %.0f\n",
                  seconds_of(rows) * 1e3, peak.name, peak.flops / 1e9);
    return line + profile_table(rows, 1);
}

/// A step on random tokens. Of other kinds and objectives only their data says what a step reads.
TimedRun random_run(const Options& options, int threads) {
    const std::string& path = options.run.config_path;
    const std::string name = input_name(path);
    TimedRun timed;
    timed.config = read_run_config(parse_json(read_input(path), name), name, options.run.set);
    const RunConfig& config = timed.config;
    if (config.model.has_encoder())
        fail_input(name, "model.kind", "decoder, where there is no data", config.model.kind,
                   "--data names some: what a step of another kind reads depends on it");
    if (config.train.precision == "auto") timed.config.train.precision = fastest_precision(config, threads);
    timed.vocabulary = options.vocabulary > 0 ? options.vocabulary : vocabulary_of(config.tokenizer);
    timed.threads = threads;
    return timed;
}

/// The first micro-batch of the run that `setup` has prepared.
TimedRun first_of_run(const RunSetup& setup) {
    TimedRun timed{setup.config, setup.config.model.vocabulary, setup.threads, setup.start.learner};
    fill_batch(setup, 0, 0, timed.batch.emplace());
    return timed;
}

int run(Options& options, const Globals& globals) {
    const int threads = threads_or_cores(globals.threads);
    std::optional<RunSetup> setup;  // what the batch and the model that a run begins from live in
    if (!options.run.data.inputs.empty()) {
        if (options.vocabulary > 0)
            usage_error("--vocabulary", "none with --data", std::to_string(options.vocabulary));
        finish_data(options.run.data);
        options.run.data.fields = field_names(options.fields);
        options.run.dry_run = true, options.run.threads = threads;
        setup.emplace(set_up(options.run));
    }
    const TimedRun timed = setup ? first_of_run(*setup) : random_run(options, threads);
    const std::string& precision = timed.config.train.precision;
    const std::int64_t vocabulary = timed.vocabulary;
    const ProductsPeak peak = products_peak(precision, threads);
    StepTiming timing = time_steps(timed, static_cast<int>(options.steps));
    std::vector<ProfileRow> profile;
    if (options.profile) profile = rows_of(profile_steps(timed, static_cast<int>(options.steps)), peak);
    const double mfu = peak.flops > 0 ? timing.flops_per_s / peak.flops : 0;
    if (options.json) {
        nlohmann::ordered_json out{{"step_ms", timing.step_ms},
                                   {"tokens_per_s", timing.tokens_per_s},
                                   {"flops_per_s", timing.flops_per_s},
                                   {"mfu", mfu},
                                   {"peak_flops", peak.flops},
                                   {"peak", peak.name},
                                   {"vocabulary", vocabulary},
                                   {"threads", threads},
                                   {"isa", kernels().name},
                                   {"precision", precision}};
        if (options.profile) out["profile"] = profile_json(profile, "direction", "flops_per_s");
        write_stdout(out.dump() + "\n");
        return 0;
    }
    char text[300];
    std::snprintf(text, sizeof text,
                  "step        %10.2f ms\n"
                  "tokens      %10.0f per second\n"
                  "arithmetic  %10.1f GFLOP/s, %.0f%% of the measured %s peak of %.0f\n"
                  "(median of %lld steps, vocabulary %lld, %d threads, %s, %s)\n",
                  timing.step_ms, timing.tokens_per_s, timing.flops_per_s / 1e9, 100 * mfu, peak.name,
                  peak.flops / 1e9, static_cast<long long>(options.steps), static_cast<long long>(vocabulary),
                  threads, kernels().name, precision.c_str());
    write_stdout(text);
    if (options.profile) write_stdout(profile_text(profile, peak));
    return 0;
}

}  // namespace

Action add_bench_train(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_file(app, "CONFIG", options->run.config_path, "model and training settings, JSON; -: stdin");
    add_data(app, options->run.data);
    add_fields(app, options->fields, all_fields);
    add_texts(app, "--set", options->run.set, "change a setting of the config, for example train.batch=4")
        ->type_name("KEY=VALUE");
    add_integer(app, "--steps", options->steps, 1, 10000, "steps to time, after one to warm up");
    add_integer(app, "--vocabulary", options->vocabulary, 1, 1 << 24, "tokens in the vocabulary")
        ->default_str("tokenizer.vocab_size; 65 for tokenizer.kind char");
    app.add_flag("--profile", options->profile, "also where the time goes, by op and direction");
    app.add_flag("--json", options->json, "one JSON object: step_ms, tokens_per_s, flops_per_s, mfu, …");
    return [options, &globals] { return run(*options, globals); };
}

}  // namespace linnet
