// linnet bench: speeds of a model and of a tokenizer. (train.cpp: of training; machine.cpp: of the machine.)
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
#include "commands/bench/profile.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/text_input.h"
#include "kernels/kernels.h"
#include "model/engine/engine.h"
#include "text/naming.h"

namespace linnet {
namespace {

/// Of several rounds.
struct Rounds {
    std::vector<double> all{};

    double median() const { return median_of(all); }
    double least() const { return all.empty() ? 0 : *std::min_element(all.begin(), all.end()); }
    double most() const { return all.empty() ? 0 : *std::max_element(all.begin(), all.end()); }
};

double peak_rss_mib() {
    return static_cast<double>(peak_memory()) / (1 << 20);
}

struct ModelOptions {
    std::string model;
    std::int64_t prompt = 512, tokens = 128, repeats = 3;
    DType state = EngineOptions().state;
    bool json = false, profile = false;
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

/// What is read and written: random ids, each part as long as the context allows.
struct BenchText {
    std::vector<TokenId> ids;
    std::span<const TokenId> prompt, tokens;

    BenchText(const ModelOptions& options, std::int64_t context, std::int64_t vocabulary) {
        const std::int64_t length = std::min(options.prompt, context);
        Rng rng(1, 0);
        ids.resize(static_cast<std::size_t>(std::max(length, options.tokens)));
        for (std::size_t i = 0; i < ids.size(); i++)
            ids[i] = static_cast<TokenId>(rng.below(static_cast<std::uint64_t>(vocabulary), i));
        prompt = std::span(ids).first(static_cast<std::size_t>(length));
        tokens = std::span(ids).first(static_cast<std::size_t>(options.tokens));
    }
    BenchText(const BenchText&) = delete;
};

/// Reads the prompt and writes a few tokens op by op, from an empty cache.
ModelProfile take_profile(Engine& engine, Sequence& sequence, const BenchText& text) {
    ModelProfile taken;
    sequence.rewind(0);
    if (!text.prompt.empty()) profile(engine, sequence, text.prompt, Phase::read, taken.reading);
    sequence.rewind(0);
    for (TokenId id : text.tokens.first(std::min<std::size_t>(text.tokens.size(), 8))) {
        if (sequence.position() == sequence.context()) sequence.rewind(0);
        profile(engine, sequence, {&id, 1}, Phase::write, taken.writing);
        taken.written++;
    }
    return taken;
}

ModelProfile take_profiles(Engine& engine, Sequence& sequence, const BenchText& text, std::int64_t rounds) {
    std::vector<ModelProfile> taken;
    for (std::int64_t round = 0; round < rounds; round++)
        taken.push_back(take_profile(engine, sequence, text));
    return median_profile(taken);
}

struct Measured {
    Rounds read{}, write{};  // tokens/s
    double prompt_flops = 0, token_bytes = 0, load_s = 0;
};

Measured measure(Engine& engine, Sequence& sequence, const BenchText& text, std::int64_t rounds) {
    Measured m;
    const ModelProfile warm = take_profile(engine, sequence, text);  // as the round that warms up
    for (const OpTime& op : warm.reading) m.prompt_flops += op.flops;
    for (const OpTime& op : warm.writing) m.token_bytes += op.bytes / warm.written;
    for (std::int64_t round = 0; round < rounds; round++) {
        if (!text.prompt.empty()) m.read.all.push_back(read_speed(sequence, text.prompt));
        if (!text.tokens.empty()) m.write.all.push_back(write_speed(sequence, text.tokens));
    }
    return m;
}

/// `profile`: what --profile asked for, or null.
void print(const Measured& m, const BenchText& text, const ModelOptions& options, const Globals& globals,
           const ModelProfile* profile) {
    const std::size_t prompt = text.prompt.size(), tokens = text.tokens.size();
    const double flops = prompt > 0 ? m.prompt_flops / static_cast<double>(prompt) * m.read.median() : 0,
                 bytes = m.token_bytes * m.write.median();
    if (options.json) {
        nlohmann::ordered_json out{{"pp_tps", m.read.median()},
                                   {"pp_least", m.read.least()},
                                   {"pp_most", m.read.most()},
                                   {"pp_flops_per_s", flops},
                                   {"tg_tps", m.write.median()},
                                   {"tg_least", m.write.least()},
                                   {"tg_most", m.write.most()},
                                   {"tg_bytes_per_s", bytes},
                                   {"load_s", m.load_s},
                                   {"peak_rss_mib", peak_rss_mib()},
                                   {"prompt", prompt},
                                   {"tokens", tokens},
                                   {"threads", threads_or_cores(globals.threads)},
                                   {"isa", kernels().name}};
        if (profile) out["profile"] = profile_json(*profile);
        write_stdout(out.dump() + "\n");
        return;
    }
    char lines[500];
    std::snprintf(lines, sizeof lines,
                  "prompt    %zu tokens  %10.2f tokens/s (%.2f to %.2f), %.1f GFLOP/s\n"
                  "writing   %zu tokens  %10.2f tokens/s (%.2f to %.2f), %.2f GB/s of weights\n"
                  "load      %.3f s\n"
                  "memory    %.1f MiB at most\n"
                  "(median of %lld, %d threads, %s)\n",
                  prompt, m.read.median(), m.read.least(), m.read.most(), flops / 1e9, tokens,
                  m.write.median(), m.write.least(), m.write.most(), bytes / 1e9, m.load_s, peak_rss_mib(),
                  static_cast<long long>(options.repeats), threads_or_cores(globals.threads), kernels().name);
    write_stdout(lines);
    if (profile) write_stdout(profile_text(*profile, threads_or_cores(globals.threads)));
}

int run_model(const ModelOptions& options, const Globals& globals) {
    auto start = Clock::now();
    std::shared_ptr<const Model> model = Model::open(options.model);
    EngineOptions wanted;
    wanted.threads = globals.threads;
    wanted.state = options.state;
    // Room for what is measured, as a user of so many tokens would ask for, and no more than the model has.
    std::int64_t need = std::max({options.prompt, options.tokens, std::int64_t{1}});
    wanted.context = std::min(need, model->config().context);
    Engine engine(model, wanted);
    Sequence sequence = engine.start();
    const double load = seconds_since(start);
    if (options.prompt > sequence.context())
        note("linnet: the model's context holds " + std::to_string(sequence.context()) +
             " tokens; the prompt has as many");
    const BenchText text(options, sequence.context(), model->config().vocabulary);
    Measured measured = measure(engine, sequence, text, options.repeats);
    measured.load_s = load;
    std::optional<ModelProfile> profile;
    if (options.profile) profile = take_profiles(engine, sequence, text, options.repeats);
    print(measured, text, options, globals, profile ? &*profile : nullptr);
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
    encode.threads = threads_or_cores(globals.threads);
    std::vector<double> speeds;
    std::vector<TokenId> ids;
    for (std::int64_t i = 0; i < options.repeats; i++) {
        ids.clear();
        auto start = Clock::now();
        naming(file.name(), [&] { tokenizer->encode(file.text(), ids, encode); });
        speeds.push_back(static_cast<double>(file.text().size()) / seconds_since(start) / 1e6);
    }
    // The first round is that of a new process: no word is known yet, no memory has been touched.
    const double first = speeds[0], best = *std::max_element(speeds.begin(), speeds.end());
    if (options.json) {
        nlohmann::ordered_json out{{"mb_per_s", Rounds{speeds}.median()},
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
                  Rounds{speeds}.median(), first, best, file.text().size(), ids.size(), encode.threads,
                  load * 1e3);
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
    app.add_flag("--json", options->json,
                 "one JSON object: pp_tps (tokens/s of the prompt), tg_tps (of writing), load_s, …");
    app.add_flag("--profile", options->profile,
                 "also where the time goes, by op and type of weights, and shares of the machine's limits");
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
