// linnet generate: texts continued, streamed to stdout.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <random>

#include "base/error.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "commands/commands.h"
#include "commands/generate/answers.h"
#include "commands/generate/settings.h"
#include "commands/options.h"
#include "commands/text_input.h"

namespace linnet {
namespace {

struct Options {
    std::string model, file, format = "text";
    std::optional<std::string> prompt;
    bool echo = false, keep_newline = false, json = false;
    std::int64_t context = 0, samples = 1, parallel = 8;
    TextSettings text;
};

/// Where and how many texts ended for want of room; on stderr.
void note_full(const std::vector<Generated>& results, std::int64_t context) {
    auto ended = [](const Generated& g) { return g.end == GenerateEnd::context; };
    auto full = std::count_if(results.begin(), results.end(), ended);
    if (full == 0) return;
    std::string which = results.size() == 1
                            ? "ended after " + std::to_string(results[0].ids.size()) + " new tokens"
                            : std::to_string(full) + " of " + std::to_string(results.size()) + " texts ended";
    note("linnet: the context of " + std::to_string(context) + " tokens is full; " + which +
         " (--slide forgets the oldest and goes on)");
}

/// What a person wants to know afterwards; on stderr.
void report(const std::vector<Answer>& answers, const GenerateTotals& totals) {
    if (!stderr_is_terminal()) return;
    auto rate = [](std::int64_t count, double seconds) {
        return static_cast<double>(count) / std::max(seconds, 1e-9);
    };
    std::string texts = answers.size() > 1 ? std::to_string(answers.size()) + " texts; " : "";
    char line[200];
    std::snprintf(line, sizeof line,
                  "[%sprompt %lld token%s, %.0f tokens/s; written %lld, %.0f tokens/s; seed %lld]",
                  texts.c_str(), static_cast<long long>(totals.read), totals.read == 1 ? "" : "s",
                  rate(totals.read, totals.read_seconds), static_cast<long long>(totals.written),
                  rate(totals.written, totals.write_seconds), static_cast<long long>(answers[0].seed));
    note(line, true);
}

/// The texts that the command line asks for.
std::vector<Answer> asked(const Options& options, const Tokenizer& tokenizer) {
    Answer answer;
    answer.prompt = prompt_text(options.prompt, options.file, options.keep_newline);
    answer.ids = encode_prompt(tokenizer, answer.prompt, options.text.special);
    answer.seed =
        options.text.seed < 0 ? static_cast<std::int64_t>(std::random_device{}()) : options.text.seed;
    answer.samples = options.samples;
    std::vector<Answer> all;
    for (; answer.sample < answer.samples; answer.sample++) all.push_back(answer);
    return all;
}

int run(Options& options, const Globals& globals) {
    install_stop_signals();
    if (options.json) options.format = "jsonl";
    std::shared_ptr<const Model> model = Model::open(options.model);
    const std::vector<Answer> answers = asked(options, model->tokenizer());

    EngineOptions engine;
    engine.context = options.context;
    engine.threads = globals.threads;
    engine.sequences = std::min<std::int64_t>(options.parallel, static_cast<std::int64_t>(answers.size()));
    EngineSource source(model, engine);
    Generator generator(source, model->tokenizer());
    std::unique_ptr<AnswerPrinter> printer = make_printer(answers, options.format, options.echo);
    std::vector<Generated> results;
    std::vector<Request> requests;
    for (std::size_t i = 0; i < answers.size(); i++) {
        Request& request = requests.emplace_back();
        request.prompt = answers[i].ids;
        request.options = options.text.generate;
        request.options.sampler.seed = static_cast<std::uint64_t>(answers[i].seed);
        request.options.sampler.sample = static_cast<std::uint64_t>(answers[i].sample);
        request.emit = [&, i](std::optional<TokenId> id, std::string_view text) {
            printer->token(i, id, text);
        };
        request.done = [&, i](const Generated& result) {
            printer->end(i, result, generator.totals());
            results.push_back(result);
        };
    }
    printer->begin();
    generator.run(requests);
    note_full(results, source.context());
    report(answers, generator.totals());
    int signal = stop_signal();
    return signal ? 128 + signal : 0;
}

/// An option of the name and the limits of a field.
CLI::Option* add_field(CLI::App& app, const std::string& names, const Field& field) {
    if (auto* const* whole = std::get_if<std::int64_t*>(&field.target))
        return add_integer(app, names, **whole, static_cast<std::int64_t>(field.low),
                           static_cast<std::int64_t>(field.high), field.help);
    if (auto* const* real = std::get_if<double*>(&field.target))
        return add_real(app, names, **real, field.low, field.high, field.help);
    return app.add_flag(names, *std::get<bool*>(field.target), field.help);
}

void add_text_options(CLI::App& app, TextSettings& settings) {
    for (const Field& field : text_fields(settings)) {
        CLI::Option* option = add_field(app, (field.key == "tokens" ? "-n,--" : "--") + field.key, field);
        if (field.key == "top-k") option->type_name("K");
        if (field.key == "top-p" || field.key == "min-p") option->type_name("P");
        if (field.key == "repeat-penalty") option->type_name("R");
        if (field.key == "seed") {
            option->type_name("S")->default_str("random");
            add_hidden_names(app, "-s", option);
        }
        if (field.key == "ignore-end") add_hidden_names(app, "--ignore-eos", option);  // llama.cpp's name
    }
}

}  // namespace

Action add_generate(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_model(app, options->model);
    add_prompt(app, "text to continue", options->prompt, options->file, options->keep_newline);
    add_text_options(app, options->text);
    add_texts(app, "--stop", options->text.generate.stops,
              "end before this text (may be given several times)");
    add_integer(app, "--samples", options->samples, 1, most_samples,
                "texts to write after the prompt, each with random numbers of its own");
    add_integer(app, "--parallel", options->parallel, 1, 1024, "texts written at a time");
    add_context(app, options->context, 1, "tokens to have room for");
    app.add_flag("--slide", options->text.generate.shift,
                 "when the context is full, forget its older half and go on");
    app.add_flag("--echo", options->echo, "print the prompt, too");
    auto* format = add_choice(app, "--format", options->format, {"text", "ids", "jsonl"}, "what to print");
    app.add_flag("--json", options->json, "JSON objects, one a line (--format jsonl)")->excludes(format);
    return [options, &globals] { return run(*options, globals); };
}

}  // namespace linnet
