// linnet bench: speeds of a model and of a tokenizer. (bench_train.cpp: of training and of the machine.)
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/memory_use.h"
#include "base/rng.h"
#include "base/team.h"
#include "base/terminal.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/text_input.h"
#include "kernels/kernels.h"
#include "model/engine.h"

namespace linnet {
namespace {

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

double peak_rss_mib() {
    return static_cast<double>(peak_memory()) / (1 << 20);
}

int threads_of(const Globals& globals) {
    return globals.threads > 0 ? globals.threads : physical_cores();
}

struct ModelOptions {
    std::string model;
    std::int64_t prompt = 512, tokens = 128, repeats = 3;
    DType state = EngineOptions().state;
    bool json = false;
};

/// tokens/s of reading `prompt` tokens at once, and of `count` tokens one at a time, from an empty cache.
/// Which tokens does not matter to the speed, and random ones need no text.
double read_speed(Sequence& sequence, std::span<const TokenId> prompt) {
    sequence.rewind(0);
    auto start = Clock::now();
    sequence.append(prompt, Phase::read);
    return static_cast<double>(prompt.size()) / seconds_since(start);
}

double write_speed(Sequence& sequence, std::span<const TokenId> tokens) {
    sequence.rewind(0);
    auto start = Clock::now();
    for (std::size_t i = 0; i < tokens.size(); i++) {
        if (sequence.position() == sequence.context()) sequence.rewind(0);
        sequence.append(tokens.subspan(i, 1), Phase::write);
    }
    return static_cast<double>(tokens.size()) / seconds_since(start);
}

int run_model(const ModelOptions& options, const Globals& globals) {
    auto start = Clock::now();
    std::shared_ptr<const Model> model = Model::open(options.model);
    EngineOptions wanted;
    wanted.threads = globals.threads;
    wanted.state = options.state;
    // Room for what is measured, as a user of so many tokens would ask for, and no more than the model has.
    std::int64_t need = std::max(options.prompt, options.tokens);
    wanted.context = std::min(std::max<std::int64_t>(need, 1), model->config().context);
    Engine engine(model, wanted);
    Sequence sequence = engine.start();
    double load = seconds_since(start);

    Rng rng(1, 0);
    auto vocabulary = static_cast<std::uint64_t>(model->config().vocabulary);
    std::vector<TokenId> ids(static_cast<std::size_t>(need));
    for (std::size_t i = 0; i < ids.size(); i++) ids[i] = static_cast<TokenId>(rng.below(vocabulary, i));
    std::int64_t prompt = std::min(options.prompt, sequence.context());
    if (prompt < options.prompt)
        note("linnet: the model's context holds " + std::to_string(prompt) +
             " tokens; the prompt has as many");
    std::vector<double> read{0}, write{0};
    for (std::int64_t round = -1; round < options.repeats; round++) {  // the first warms up
        double r =
            prompt > 0 ? read_speed(sequence, std::span(ids).first(static_cast<std::size_t>(prompt))) : 0;
        auto count =
            static_cast<std::size_t>(round < 0 ? std::min<std::int64_t>(options.tokens, 8) : options.tokens);
        double w = count > 0 ? write_speed(sequence, std::span(ids).first(count)) : 0;
        if (round == 0) read.clear(), write.clear();
        read.push_back(r);
        write.push_back(w);
    }
    if (options.json) {
        nlohmann::ordered_json out{
            {"pp_tps", median(read)},         {"tg_tps", median(write)}, {"load_s", load},
            {"peak_rss_mib", peak_rss_mib()}, {"prompt", prompt},        {"tokens", options.tokens},
            {"threads", threads_of(globals)}, {"isa", kernels().name}};
        write_stdout(out.dump() + "\n");
        return 0;
    }
    char text[400];
    std::snprintf(text, sizeof text,
                  "prompt    %lld tokens  %10.2f tokens/s\n"
                  "writing   %lld tokens  %10.2f tokens/s\n"
                  "load      %.3f s\n"
                  "memory    %.1f MiB at most\n"
                  "(median of %lld, %d threads, %s)\n",
                  static_cast<long long>(prompt), median(read), static_cast<long long>(options.tokens),
                  median(write), load, peak_rss_mib(), static_cast<long long>(options.repeats),
                  threads_of(globals), kernels().name);
    write_stdout(text);
    return 0;
}

struct TokenizeOptions {
    std::string tokenizer, file;
    std::int64_t repeats = 3;
    bool json = false;
};

int run_tokenize(const TokenizeOptions& options, const Globals& globals) {
    const auto before = Clock::now();
    TokenizerPtr tokenizer = open_tokenizer(options.tokenizer);
    const double load = seconds_since(before);
    const TextInput file(options.file);
    if (file.text().empty()) fail_input(file.name(), "", "a text", "an empty file");
    EncodeOptions encode;
    encode.threads = threads_of(globals);
    std::vector<double> speeds;
    std::vector<TokenId> ids;
    for (std::int64_t i = 0; i < options.repeats; i++) {
        ids.clear();
        auto start = Clock::now();
        tokenizer->encode(file.text(), ids, encode);
        speeds.push_back(static_cast<double>(file.text().size()) / seconds_since(start) / 1e6);
    }
    // The first round is that of a new process: no word is known yet, no memory has been touched.
    const double first = speeds[0], best = *std::max_element(speeds.begin(), speeds.end());
    if (options.json) {
        nlohmann::ordered_json out{{"mb_per_s", median(speeds)},
                                   {"first_mb_per_s", first},
                                   {"best_mb_per_s", best},
                                   {"tokens", ids.size()},
                                   {"bytes", file.text().size()},
                                   {"threads", encode.threads},
                                   {"load_s", load}};
        write_stdout(out.dump() + "\n");
        return 0;
    }
    char text[200];
    std::snprintf(text, sizeof text,
                  "%.2f MB/s (first round %.2f, best %.2f), %zu bytes, %zu tokens, %d threads; "
                  "loaded in %.1f ms\n",
                  median(speeds), first, best, file.text().size(), ids.size(), encode.threads, load * 1e3);
    write_stdout(text);
    return 0;
}

}  // namespace

Action add_bench(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<ModelOptions>();
    add_model(app, options->model);
    add_integer(app, "-p,--prompt", options->prompt, 0, 1 << 24, "tokens of the prompt");
    add_integer(app, "-n,--tokens", options->tokens, 0, 1 << 24, "tokens to write");
    add_integer(app, "-r,--repeats", options->repeats, 1, 1000, "rounds; the median is printed");
    add_state_type(app, options->state);
    app.add_flag("--json", options->json, "one JSON object: pp_tps, tg_tps, load_s, peak_rss_mib, …");
    return [options, &globals] { return run_model(*options, globals); };
}

Action add_bench_tokenize(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<TokenizeOptions>();
    add_tokenizer(app, options->tokenizer);
    auto* file = add_file(app, "FILE", options->file, "text to tokenize; -: stdin");
    add_hidden_names(app, "-f,--file", file);
    add_integer(app, "-r,--repeats", options->repeats, 1, 1000, "rounds; the median is printed");
    app.add_flag("--json", options->json, "one JSON object: mb_per_s, …");
    return [options, &globals] { return run_tokenize(*options, globals); };
}

}  // namespace linnet
