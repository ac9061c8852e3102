// linnet generate: texts continued, streamed to stdout.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "base/error.h"
#include "base/output.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "commands/adapter_options.h"
#include "commands/commands.h"
#include "commands/generate/answers.h"
#include "commands/generate/batch_file.h"
#include "commands/generate/settings.h"
#include "commands/generate/sources.h"
#include "commands/options.h"
#include "commands/text_input.h"
#include "generate/prompt_cache.h"
#include "text/naming.h"
#include "train/run_model.h"

namespace linnet {
namespace {

constexpr std::int64_t most_kept = INT64_MAX;

struct Options {
    std::string model, file, batch_file, format, draft, prompt_cache;
    std::optional<std::string> prompt;
    std::vector<AdapterChoice> adapters;
    bool echo = false, keep_newline = false, json = false, speculate = false;
    std::int64_t context = 0, samples = 1, parallel = 8;
    DType state = EngineOptions().state;
    TextSettings text;
    std::int64_t beams = 1;
    double length_penalty = 1;
};

constexpr std::int64_t remembered = 65536;  // tokens of a text behind a full context

/// Where and how many texts ended for want of room; on stderr.
void note_full(const std::vector<Generated>& results, std::int64_t context) {
    auto ended = [](const Generated& g) { return g.end == GenerateEnd::context; };
    auto full = std::count_if(results.begin(), results.end(), ended);
    if (full == 0) return;
    std::string which =
        results.size() == 1
            ? "ended after " + counted(static_cast<std::uint64_t>(results[0].tokens), "new token")
            : std::to_string(full) + " of " + std::to_string(results.size()) + " texts ended";
    note("linnet: the context of " + counted(static_cast<std::uint64_t>(context), "token") + " is full; " +
         which + " (--ctx-shift drops the oldest part and goes on)");
}

/// How many texts ended before their grammar; on stderr.
void note_cut(const std::vector<Generated>& results) {
    auto cut = [](const Generated& g) { return g.complete == false && g.end == GenerateEnd::length; };
    if (auto count = std::count_if(results.begin(), results.end(), cut); count > 0)
        note("linnet: " +
             std::string(results.size() == 1 ? "the text was" : std::to_string(count) + " texts were") +
             " cut before the end that the grammar asks for (-n allows more tokens)");
}

/// What a person wants to know afterwards; on stderr.
void report(const std::vector<Answer>& answers, const GenerateTotals& totals, bool speculated) {
    if (!stderr_is_terminal() && !speculated) return;
    auto rate = [](std::int64_t count, double seconds) {
        return static_cast<double>(count) / std::max(seconds, 1e-9);
    };
    std::string texts = answers.size() > 1 ? std::to_string(answers.size()) + " texts; " : "";
    std::string drafts;
    if (speculated) {
        auto share = 100 * static_cast<double>(totals.accepted) /
                     static_cast<double>(std::max<std::int64_t>(totals.drafted, 1));
        drafts = "drafted " + std::to_string(totals.drafted) + ", accepted " +
                 std::to_string(totals.accepted) + " (" + std::to_string(std::lround(share)) + " %); ";
    }
    char line[300];
    std::snprintf(
        line, sizeof line, "[%sprompt %lld token%s, %.0f tokens/s; written %lld, %.0f tokens/s; %sseed %lld]",
        texts.c_str(), static_cast<long long>(totals.read), totals.read == 1 ? "" : "s",
        rate(totals.read, totals.read_seconds), static_cast<long long>(totals.written),
        rate(totals.written, totals.write_seconds), drafts.c_str(), static_cast<long long>(answers[0].seed));
    note(line, true);
}

/// A text that was asked for, and how it is to be written.
struct Task {
    Answer answer;
    TextSettings settings;
};

/// What the command line or the batch file asks for, each prompt once. The n-th prompt of a file takes the
/// seed of the command line plus n, unless it has its own.
std::vector<Task> asked(const Options& options) {
    const auto chance = static_cast<std::int64_t>(std::random_device{}());
    const std::int64_t seed = options.text.seed < 0 ? chance : options.text.seed;
    std::vector<Task> tasks;
    if (options.batch_file.empty()) {
        Task& task = tasks.emplace_back();
        task.answer.prompt = prompt_text(options.prompt, options.file, options.keep_newline);
        task.answer.seed = seed;
        task.settings = options.text;
        return tasks;
    }
    TextSettings defaults = options.text;
    defaults.seed = -1;
    for (BatchLine& line : read_batch_file(options.batch_file, defaults)) {
        Task& task = tasks.emplace_back();
        task.answer.prompt = std::move(line.prompt);
        task.answer.index = tasks.size() - 1;
        task.answer.line = line.line;
        task.settings = line.settings;
        task.answer.seed = line.settings.seed >= 0
                               ? line.settings.seed
                               : static_cast<std::int64_t>(
                                     (static_cast<std::uint64_t>(seed) + tasks.size() - 1) & INT64_MAX);
    }
    for (Task& task : tasks) task.answer.prompts = tasks.size();
    return tasks;
}

/// Who typed no prompt on a terminal may have meant to.
void note_missing_prompt(const Options& options) {
    if (options.batch_file.empty() && prompt_is_missing(options.prompt, options.file))
        note("no prompt: begins from nothing (-f - to type one)");
}

/// The file and the line of a batch; empty where there is none.
std::string place_of(const Answer& answer, const Options& options) {
    if (answer.prompts == 0) return "";
    return input_name(options.batch_file) + ": line " + std::to_string(answer.line);
}

/// The ids of the prompt, which must fit the context unless it may be cut.
void encode(Answer& answer, const TextSettings& settings, const Options& options, const Model& model) {
    const std::int64_t context = options.context > 0 ? options.context : model.config().context;
    const std::string place = place_of(answer, options);
    naming(place.empty() ? prompt_name(options.prompt, options.file) : place + ": prompt",
           [&] { answer.ids = encode_prompt(model.tokenizer(), answer.prompt, settings.special); });
    if (!settings.generate.shift) require_room(answer.ids.size(), context, place);
}

/// Two tokens of the context are for what comes behind those that stay.
void require_room_behind(std::int64_t keep, std::int64_t context) {
    const std::int64_t most = std::max<std::int64_t>(context - 2, 0);
    if (keep > most)
        usage_error("--keep",
                    "at most " + std::to_string(most) + " in a context of " +
                        counted(static_cast<std::uint64_t>(context), "token"),
                    std::to_string(keep));
}

/// The settings of a task, checked against the model.
void prepare(Task& task, const Options& options, GrammarFiles& grammars) {
    const bool batch = task.answer.prompts > 0;
    resolve(task.settings, grammars, batch ? Exit::input : Exit::usage, place_of(task.answer, options));
    if (task.settings.generate.logprobs >= 0 && options.format != "jsonl")
        usage_error("--logprobs", "--format jsonl", "--format " + options.format);
}

/// A request for every sample of a task.
Request request_of(const Answer& answer, const TextSettings& settings) {
    Request request;
    request.prompt = answer.ids;
    request.options = settings.generate;
    request.options.sampler.seed = static_cast<std::uint64_t>(answer.seed);
    request.options.sampler.sample = static_cast<std::uint64_t>(answer.sample);
    return request;
}

/// The model of --draft, with a sequence for each that may be written at a time.
std::unique_ptr<Engine> open_draft(const Options& options, const Model& model, EngineOptions engine) {
    std::shared_ptr<const Model> draft = Model::open(model_of_run(options.draft));
    require_same_vocabulary(*draft, model);
    engine.context = std::min(engine.context > 0 ? engine.context : INT64_MAX, draft->config().context);
    return std::make_unique<Engine>(draft, engine);
}

MakeDrafter drafter_of(const Options& options, Engine* draft) {
    if (draft) return [draft] { return std::make_unique<ModelDrafter>(*draft); };
    if (options.speculate) return [] { return std::make_unique<LookupDrafter>(); };
    return {};
}

/// --prompt-cache: what the file has of the prompt is not read again; a file that is not there yet is made.
void use_prompt_cache(const std::string& path, EngineSource& source, Generator& generator,
                      const Answer& answer) {
    if (name_taken(path)) {
        CachedPrompt cached = load_prompt_cache(path, source);
        generator.hold(std::move(cached.tokens), cached.logits);
        return;
    }
    if (static_cast<std::int64_t>(answer.ids.size()) > source.context())
        return note("the prompt is longer than the context: it is cut, and " + path + " is not made");
    prepare_output(path, Existing::keep);
    std::span<const float> logits = generator.read(answer.ids);
    if (stop_signal()) return;
    try {
        save_prompt_cache(path, source, {answer.ids, {logits.begin(), logits.end()}});
    } catch (const Error&) {
        if (!name_taken(path)) throw;
        return note(path + " is not written: another program has made it meanwhile");
    }
    note_written(path);
}

/// An encoder–decoder answers sources, one per line.
int answer(Options& options, const Globals& globals, Task task, const std::shared_ptr<const Model>& model,
           GrammarFiles& grammars) {
    if (!options.batch_file.empty())
        usage_error("--batch-file", "none, as the model answers sources", options.batch_file,
                    "-f FILE has one source per line");
    if (options.speculate || !options.draft.empty() || !options.prompt_cache.empty())
        usage_error("--speculate, --draft, --prompt-cache", "none, as the model answers sources", "one");
    const TextSettings& text = options.text;
    if (options.beams > 1 &&
        (options.samples > 1 || !text.grammar.empty() || !text.json_schema.empty() ||
         !text.generate.stops.empty() || !text.logit_bias.empty() || text.generate.ignore_end))
        usage_error("--beams",
                    "1 beside --samples, --grammar, --json-schema, --stop, --logit-bias and --ignore-end",
                    std::to_string(options.beams));
    prepare(task, options, grammars);
    if (options.echo || task.settings.generate.logprobs >= 0)
        usage_error("--echo, --logprobs", "none, as the model answers sources", "one");
    AnswerOptions wanted;
    wanted.text = task.answer.prompt;
    wanted.name = prompt_name(options.prompt, options.file);
    wanted.format = options.format;
    wanted.settings = task.settings;
    wanted.seed = task.answer.seed, wanted.samples = options.samples, wanted.parallel = options.parallel;
    wanted.engine.context = options.context, wanted.engine.threads = globals.threads;
    wanted.engine.state = options.state;
    wanted.beam = {options.beams, options.length_penalty, task.settings.generate.tokens};
    return answer_sources(model, wanted);
}

int run(Options& options, const Globals& globals) {
    install_stop_signals();
    if (options.json || (options.format.empty() && !options.batch_file.empty())) options.format = "jsonl";
    if (options.format.empty()) options.format = "text";
    std::vector<Task> tasks = asked(options);
    std::shared_ptr<const Model> model = open_with_adapters(options.model, options.adapters);
    GrammarFiles grammars(model->tokenizer());
    if (model->config().kind == "encoder-decoder")
        return answer(options, globals, std::move(tasks[0]), model, grammars);
    if (options.beams > 1)
        usage_error("--beams", "1, as the model is no encoder-decoder", std::to_string(options.beams));
    note_missing_prompt(options);
    std::vector<Answer> answers;
    std::vector<Request> requests;
    for (Task& task : tasks) {
        prepare(task, options, grammars);
        encode(task.answer, task.settings, options, *model);
        task.answer.samples = options.samples;
        for (; task.answer.sample < options.samples; task.answer.sample++) {
            answers.push_back(task.answer);
            requests.push_back(request_of(task.answer, task.settings));
        }
    }

    // One text is given out as it comes: of one that never ends only so much is held.
    if (answers.size() == 1 && answers[0].prompts == 0) requests[0].options.remember = remembered;

    EngineOptions engine;
    engine.context = options.context;
    engine.threads = globals.threads;
    engine.state = options.state;
    engine.sequences = std::min<std::int64_t>(options.parallel, static_cast<std::int64_t>(answers.size()));
    EngineSource source(model, engine);
    require_room_behind(options.text.generate.keep, source.context());
    std::unique_ptr<Engine> draft;
    if (!options.draft.empty()) draft = open_draft(options, *model, engine);
    Generator generator(source, model->tokenizer(), drafter_of(options, draft.get()));
    if (!options.prompt_cache.empty()) use_prompt_cache(options.prompt_cache, source, generator, answers[0]);
    std::unique_ptr<AnswerPrinter> printer =
        make_printer(answers, options.format, options.echo, model->tokenizer());
    std::vector<Generated> results;
    for (std::size_t i = 0; i < answers.size(); i++) {
        requests[i].emit = [&, i](std::optional<TokenId> id, std::string_view text) {
            printer->token(i, id, text);
        };
        requests[i].emit_logprobs = [&, i](const TokenLogprobs& told) { printer->logprobs(i, told); };
        requests[i].done = [&, i](const Generated& result) {
            printer->end(i, result, generator.totals());
            results.push_back(result);
        };
    }
    printer->begin();
    generator.run(requests);
    note_full(results, source.context());
    note_cut(results);
    report(answers, generator.totals(), options.speculate || draft);
    int signal = stop_signal();
    return signal ? 128 + signal : 0;
}

}  // namespace

Action add_generate(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_model(app, options->model);
    add_adapters(app, options->adapters);
    add_prompt(app, "text to continue", options->prompt, options->file, options->keep_newline);
    auto* batch = add_text(app, "--batch-file", options->batch_file,
                           "one JSON object per line: prompt, and settings named as these options; -: stdin")
                      ->type_name("FILE");
    for (const char* other : {"--prompt", "--file"}) batch->excludes(app.get_option(other));
    add_text_options(app, options->text);
    add_integer(app, "--samples", options->samples, 1, most_samples,
                "texts to write after the prompt, each with its own random numbers");
    add_integer(app, "--parallel", options->parallel, 1, 1024, "texts written at a time");
    add_integer(
        app, "--beams", options->beams, 1, 256,
        "encoder-decoders: answers kept at a time, the likeliest of which is printed; nothing is drawn");
    add_real(app, "--length-penalty", options->length_penalty, -10, 10,
             "of --beams: log probabilities are divided by length to the power X");
    add_context(app, options->context, 1, "context length in tokens");
    add_state_type(app, options->state);
    auto* shift = app.add_flag("--ctx-shift", options->text.generate.shift,
                               "when the context is full, drop the oldest part of the text and go on");
    add_hidden_names(app, "--slide", shift);
    add_integer(
        app, "--keep", options->text.generate.keep, 0, most_kept,
        "tokens at the beginning that --ctx-shift never drops; a begin token is one, and always stays");
    app.add_flag("--speculate", options->speculate,
                 "guess from the text so far and verify several tokens at once: the same text, sooner");
    add_text(app, "--draft", options->draft, "guess by this smaller model of the same vocabulary")
        ->type_name("MODEL")
        ->excludes("--speculate");
    add_output(app, "--prompt-cache", options->prompt_cache,
               "reuse the prompt's state from FILE, or create FILE")
        ->excludes(batch);
    app.add_flag("--echo", options->echo, "print the prompt, too");
    auto* format = add_choice(app, "--format", options->format, {"text", "ids", "jsonl"}, "what to print")
                       ->default_str("text; of a batch file jsonl");
    app.add_flag("--json", options->json, "JSON objects, one per line (--format jsonl)")->excludes(format);
    return [options, &globals, &app] {
        require_beside(app, "--length-penalty", {"--beams"});
        require_beside(app, "--keep", {"--ctx-shift"});
        return run(*options, globals);
    };
}

}  // namespace linnet
