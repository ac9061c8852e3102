// linnet generate: a text continued, streamed to stdout.
#include "generate/generator.h"

#include <signal.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/text_input.h"
#include "generate/stream.h"

namespace linnet {
namespace {

constexpr std::int64_t most = INT64_MAX;

struct Options {
    std::string model, file, format = "text";
    std::optional<std::string> prompt;
    bool echo = false, special = false, keep_newline = false, json = false;
    std::int64_t context = 0, seed = -1;
    DType state = EngineOptions().state;
    GenerateOptions generate;
};

/// Text for a terminal, in pieces of whole characters: line ends stay (CR LF as LF), all else that could
/// steer it is spelled out.
class TerminalText {
  public:
    std::string push(std::string_view piece) {
        std::string text = (held_ ? "\r" : "") + std::string(piece);
        held_ = text.ends_with('\r');  // the LF may come with the next piece
        if (held_) text.pop_back();
        for (std::size_t at; (at = text.find("\r\n")) != std::string::npos;) text.erase(at, 1);
        return printable(text, true);
    }

  private:
    bool held_ = false;
};

/// The three output formats: each says what a prompt, a token and the end look like on stdout. All flush at
/// once, for the reader who watches.
class Printer {
  public:
    explicit Printer(const Options& options) : options_(options) {}

    void prompt(std::string_view text, std::span<const TokenId> ids) {
        if (!options_.echo) return;
        if (options_.format == "text") {
            Utf8Stream whole;
            std::string shown = for_reader(whole.push(text));
            put(stdout_colours() ? "\x1b[1m" + shown + "\x1b[0m" : shown);
        } else if (options_.format == "ids") {
            for (TokenId id : ids) token(id, {});
        } else {
            record({{"prompt", text}, {"ids", ids}});
        }
    }

    void token(std::optional<TokenId> id, std::string_view text) {
        if (options_.format == "text") {
            put(for_reader(text));
        } else if (options_.format == "ids") {
            if (id) put((any_ ? " " : "") + std::to_string(*id));
        } else if (id || !text.empty()) {
            nlohmann::ordered_json line;
            if (id) line["id"] = *id;
            line["text"] = text;
            record(line);
        }
    }

    void end(const Generated& result, std::size_t prompt_tokens, std::int64_t seed) {
        if (options_.format != "jsonl") {
            if (options_.format == "ids" || last_ != '\n') put("\n");
            return;
        }
        record({{"end", name(result.end)},
                {"prompt_tokens", prompt_tokens},
                {"tokens", result.ids.size()},
                {"prompt_seconds", result.prompt_seconds},
                {"seconds", result.seconds},
                {"seed", seed}});
    }

  private:
    void record(const nlohmann::ordered_json& line) {
        put(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
    }
    /// A pipe gets the text as it is.
    std::string for_reader(std::string_view text) {
        return stdout_is_terminal() ? terminal_.push(text) : std::string(text);
    }
    void put(std::string_view text) {
        if (text.empty()) return;
        write_stdout(text);
        flush_stdout();
        any_ = true;
        last_ = text.back();
    }

    const Options& options_;
    TerminalText terminal_;
    bool any_ = false;
    char last_ = '\n';
};

/// What a person wants to know afterwards; on stderr.
void report(const Generated& result, std::size_t prompt_tokens, std::int64_t context, std::int64_t seed) {
    std::size_t tokens = result.ids.size();
    if (result.end == GenerateEnd::context)
        note("linnet: the context of " + std::to_string(context) + " tokens is full; ended after " +
             std::to_string(tokens) + " new tokens (--slide forgets the oldest and goes on)");
    if (!stderr_is_terminal()) return;
    char line[160];
    std::snprintf(line, sizeof line,
                  "[prompt %zu token%s, %.0f tokens/s; written %zu, %.0f tokens/s; seed %lld]", prompt_tokens,
                  prompt_tokens == 1 ? "" : "s",
                  static_cast<double>(prompt_tokens) / std::max(result.prompt_seconds, 1e-9), tokens,
                  static_cast<double>(tokens) / std::max(result.seconds, 1e-9), static_cast<long long>(seed));
    note(line, true);
}

int run(Options& options, const Globals& globals) {
    install_stop_signals();
    if (options.json) options.format = "jsonl";
    std::string text = prompt_text(options.prompt, options.file, options.keep_newline);
    std::shared_ptr<const Model> model = Model::open(options.model);
    const Tokenizer& tokenizer = model->tokenizer();
    std::vector<TokenId> prompt = encode_prompt(tokenizer, text, options.special);
    std::int64_t seed = options.seed;
    if (seed < 0) seed = static_cast<std::int64_t>(std::random_device{}());
    options.generate.sampler.seed = static_cast<std::uint64_t>(seed);

    EngineOptions engine;
    engine.context = options.context;
    engine.threads = globals.threads;
    engine.state = options.state;
    SequenceSource source(model, engine);
    Printer printer(options);
    printer.prompt(text, prompt);
    Generated result =
        generate(source, tokenizer, prompt, options.generate,
                 [&](std::optional<TokenId> id, std::string_view piece) { printer.token(id, piece); });
    printer.end(result, prompt.size(), seed);
    report(result, prompt.size(), source.context(), seed);
    if (result.end != GenerateEnd::interrupted) return 0;
    return 128 + stop_signal();
}

}  // namespace

Action add_generate(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    GenerateOptions& generate = options->generate;
    SamplerOptions& sampler = generate.sampler;
    add_model(app, options->model);
    add_prompt(app, "text to continue", options->prompt, options->file, options->keep_newline);
    add_integer(app, "-n,--tokens", generate.tokens, -1, most,
                "tokens to write; -1: until something else ends it");
    add_real(app, "--temp", sampler.temperature, 0, 1e9, "temperature; 0: always the likeliest token");
    add_integer(app, "--top-k", sampler.top_k, 0, most, "draw from the K likeliest; 0: all")->type_name("K");
    add_real(app, "--top-p", sampler.top_p, 0, 1,
             "draw from the likeliest that together have probability P; 1: all")
        ->type_name("P");
    add_real(app, "--min-p", sampler.min_p, 0, 1,
             "draw from those with at least P of the likeliest's probability")
        ->type_name("P");
    add_real(app, "--repeat-penalty", sampler.repeat_penalty, 1e-3, 1e3,
             "above 1: recent tokens become less likely")
        ->type_name("R");
    add_integer(app, "--repeat-window", sampler.repeat_window, 0, most, "how many recent tokens that means");
    auto* seed = add_integer(app, "--seed", options->seed, 0, most, "same seed, same text")
                     ->type_name("S")
                     ->default_str("random");
    add_hidden_names(app, "-s", seed);
    add_context(app, options->context, 1, "tokens to have room for");
    add_state_type(app, options->state);
    add_texts(app, "--stop", generate.stops, "end before this text (may be given several times)");
    app.add_flag("--slide", generate.slide, "when the context is full, forget its older half and go on");
    auto* ignore_end = app.add_flag("--ignore-end", generate.ignore_end, "go on after the model's end token");
    add_hidden_names(app, "--ignore-eos", ignore_end);  // llama.cpp's name
    app.add_flag("--special", options->special, "text in the prompt that spells a control token is one");
    app.add_flag("--echo", options->echo, "print the prompt, too");
    auto* format = add_choice(app, "--format", options->format, {"text", "ids", "jsonl"}, "what to print");
    app.add_flag("--json", options->json, "one JSON object per token, and one at the end (--format jsonl)")
        ->excludes(format);
    return [options, &globals] { return run(*options, globals); };
}

}  // namespace linnet
