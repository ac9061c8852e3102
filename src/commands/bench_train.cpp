// linnet bench train: the speed of training steps, on random tokens: no data, no files.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/team.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "kernels/kernels.h"
#include "kernels/peaks.h"
#include "text/tokenizer.h"
#include "train/timing.h"

namespace linnet {
namespace {

struct Options {
    std::string config;
    std::vector<std::string> set;
    std::int64_t steps = 10, vocabulary = 0;
    bool json = false;
};

/// What the config's tokenizer would have; a character vocabulary depends on the text, so a play's is taken.
std::int64_t vocabulary_of(const TokenizerConfig& tokenizer) {
    if (tokenizer.kind == "file") return load_tokenizer(tokenizer.file)->size();
    if (tokenizer.kind == "byte") return 256;
    if (tokenizer.kind == "char") return 65;
    return tokenizer.vocab_size;
}

int run(const Options& options, const Globals& globals) {
    RunConfig config =
        read_run_config(parse_json(read_file(options.config), options.config), options.config, options.set);
    if (config.model.has_encoder())
        fail_input(options.config, "model.kind", "decoder", config.model.kind,
                   "steps of other kinds depend on their data");
    int threads = globals.threads > 0 ? globals.threads : physical_cores();
    std::int64_t vocabulary = options.vocabulary > 0 ? options.vocabulary : vocabulary_of(config.tokenizer);
    double peak = measured_peak_flops(threads);
    StepTiming timing = time_steps(config, vocabulary, threads, static_cast<int>(options.steps));
    double mfu = peak > 0 ? timing.flops_per_s / peak : 0;
    if (options.json) {
        nlohmann::ordered_json out{{"step_ms", timing.step_ms},
                                   {"tokens_per_s", timing.tokens_per_s},
                                   {"flops_per_s", timing.flops_per_s},
                                   {"mfu", mfu},
                                   {"peak_flops", peak},
                                   {"vocabulary", vocabulary},
                                   {"threads", threads},
                                   {"isa", kernels().name}};
        write_stdout(out.dump() + "\n");
        return 0;
    }
    char text[300];
    std::snprintf(text, sizeof text,
                  "step        %10.2f ms\n"
                  "tokens      %10.0f per second\n"
                  "arithmetic  %10.1f GFLOP/s, %.0f%% of the measured peak of %.0f\n"
                  "(median of %lld steps, vocabulary %lld, %d threads, %s)\n",
                  timing.step_ms, timing.tokens_per_s, timing.flops_per_s / 1e9, 100 * mfu, peak / 1e9,
                  static_cast<long long>(options.steps), static_cast<long long>(vocabulary), threads,
                  kernels().name);
    write_stdout(text);
    return 0;
}

}  // namespace

Action add_bench_train(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_file(app, "CONFIG", options->config, "model and training settings, JSON");
    add_texts(app, "--set", options->set, "change a setting of the config, for example train.batch=4")
        ->type_name("KEY=VALUE");
    add_integer(app, "--steps", options->steps, 1, 10000, "steps to time, after one to warm up");
    add_integer(app, "--vocabulary", options->vocabulary, 1, 1 << 24, "tokens in the vocabulary")
        ->default_str("as tokenizer.vocab_size says; 65 characters");
    app.add_flag("--json", options->json, "one JSON object: step_ms, tokens_per_s, flops_per_s, mfu, …");
    return [options, &globals] { return run(*options, globals); };
}

}  // namespace linnet
