// linnet inspect attention: where each head looks.
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json_line.h"
#include "base/output.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "commands/commands.h"
#include "commands/inspect/attention_page.h"
#include "commands/options.h"
#include "commands/text_input.h"
#include "generate/beam.h"
#include "generate/generator.h"
#include "model/encode/encoder_text.h"
#include "text/inspect/show_pieces.h"
#include "text/naming.h"

namespace linnet {
namespace {

struct Options {
    std::string model, file, html, answer;
    std::optional<std::string> prompt;
    bool special = false, keep_newline = false, json = false, overwrite = false;
};

// Weights grow with the square of the text; a page of more tokens cannot be read.
constexpr std::size_t most_tokens = 512;

/// The tokens that a text is for this kind of model; an encoder–decoder's answer is what it would say itself
/// where none is given.
LookedAt looked_at(const std::shared_ptr<const Model>& model, const Options& options,
                   const Globals& globals) {
    const std::string text = prompt_text(options.prompt, options.file, options.keep_newline);
    const Tokenizer& tokenizer = model->tokenizer();
    LookedAt at;
    const std::string& kind = model->config().kind;
    if (kind != "encoder-decoder" && !options.answer.empty())
        usage_error("--answer", "an encoder-decoder", "a model of kind " + kind);
    std::vector<TokenId> ids = naming(prompt_name(options.prompt, options.file), [&] {
        return kind == "decoder" ? encode_prompt(tokenizer, text, options.special)
                                 : text_input(tokenizer, text, options.special).tokens;
    });
    if (kind != "encoder-decoder") {
        at.tokens = std::move(ids);
    } else {
        at.source = std::move(ids);
        const AnswerMarks marks = answer_marks(tokenizer, model->config(), model->path());
        at.tokens = {marks.start};
        std::vector<TokenId> answer;
        if (!options.answer.empty()) {
            EncodeOptions encode;
            encode.parse_special = options.special;
            answer = naming("--answer", [&] { return tokenizer.encode(options.answer, encode); });
        } else if (!at.source.empty()) {
            EngineOptions engine;
            engine.threads = globals.threads;
            BeamOptions greedy;
            greedy.beams = 1;
            answer = BeamSearch(model, engine, greedy).run(at.source, at.tokens).ids;
        }
        for (TokenId id : answer)
            if (!tokenizer.is_end(id)) at.tokens.push_back(id);
    }
    for (const std::vector<TokenId>& tokens : {at.tokens, at.source})
        if (tokens.size() > most_tokens)
            fail_input("", "text", "at most " + std::to_string(most_tokens) + " tokens",
                       std::to_string(tokens.size()));
    return at;
}

std::vector<std::string> shown(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
    std::vector<std::string> all;
    for (TokenId id : ids) {
        std::string text;
        for (char c : shown_token(tokenizer, id, false))
            text += c == ' ' ? "␣" : c == '\n' ? "↵" : c == '\t' ? "⇥" : std::string(1, c);
        all.push_back(text);
    }
    return all;
}

/// What a head does, in numbers; each a mean over the queries that it can be told of.
struct Habits {
    double entropy = 0;  // nats
    double first = 0;    // weight on the first key
    // On the query's own place, on the one before it, and on what follows earlier places of the query's token
    // (an induction head's: Olsson et al. 2022, "In-context Learning and Induction Heads"). NaN: cannot be
    // told.
    double own = NAN, previous = NAN, induction = NAN;
};

struct Mean {
    double sum = 0;
    std::int64_t count = 0;
    void add(double x) { sum += x, count++; }
    double value() const { return count > 0 ? sum / static_cast<double>(count) : NAN; }
};

Habits habits_of(const AttentionMap& map, std::int64_t head, const std::vector<TokenId>& tokens) {
    const std::span<const float> weights = map.head(head);
    Mean entropy, first, own, previous, induction;
    for (std::int64_t q = 0; q < map.queries; q++) {
        const auto row =
            weights.subspan(static_cast<std::size_t>(q * map.keys), static_cast<std::size_t>(map.keys));
        double spread = 0;
        for (float w : row)
            if (w > 0) spread -= static_cast<double>(w) * std::log(static_cast<double>(w));
        entropy.add(spread), first.add(static_cast<double>(row[0]));
        if (map.cross) continue;
        const auto at = static_cast<std::size_t>(q);
        own.add(static_cast<double>(row[at]));
        if (q > 0) previous.add(static_cast<double>(row[at - 1]));
        double after = 0;
        bool repeated = false;
        for (std::size_t k = 1; k < at + 1; k++)
            if (tokens[k - 1] == tokens[at]) after += static_cast<double>(row[k]), repeated = true;
        if (repeated) induction.add(after);
    }
    return {.entropy = entropy.value(),
            .first = first.value(),
            .own = own.value(),
            .previous = previous.value(),
            .induction = induction.value()};
}

struct Habit {
    const char* name;
    double Habits::*value;
};
/// In the order of the columns.
constexpr Habit columns_of_habits[] = {{"entropy", &Habits::entropy},
                                       {"first", &Habits::first},
                                       {"own", &Habits::own},
                                       {"previous", &Habits::previous},
                                       {"induction", &Habits::induction}};

void print_table(const AttentionMap& map, std::int64_t head, const Habits& habits) {
    char line[64];
    std::snprintf(line, sizeof line, "%-16s %4lld", map.path.c_str(), static_cast<long long>(head));
    std::string out = line;
    for (const Habit& habit : columns_of_habits) {
        const double x = habits.*habit.value;
        std::snprintf(line, sizeof line, " %9.3f", x);
        out += std::isfinite(x) ? line : "         -";
    }
    write_stdout(out + "\n");
}

void print_json(const AttentionMap& map, std::int64_t head, const Habits& habits, const LookedAt& text,
                const Tokenizer& tokenizer) {
    const std::vector<std::string> rows = shown(tokenizer, map.in_source ? text.source : text.tokens),
                                   columns = map.cross ? shown(tokenizer, text.source) : rows;
    nlohmann::ordered_json record{{"path", map.path}, {"head", head}};
    for (const Habit& habit : columns_of_habits) {
        const double x = habits.*habit.value;
        record[habit.name] = std::isfinite(x) ? nlohmann::ordered_json(x) : nullptr;
    }
    record["queries"] = rows, record["keys"] = columns;
    nlohmann::ordered_json& weights = record["weights"] = nlohmann::ordered_json::array();
    for (std::int64_t q = 0; q < map.queries; q++) {
        const auto row = map.head(head).subspan(static_cast<std::size_t>(q * map.keys),
                                                static_cast<std::size_t>(map.keys));
        weights.push_back(std::vector<float>(row.begin(), row.end()));
    }
    write_stdout(json_line(record));
}

void write_page(const Options& options, const Model& model, const LookedAt& text,
                std::vector<AttentionMap> maps) {
    const AttentionPage page{"Attention of " + (options.model.empty() ? "the built-in model" : options.model),
                             shown(model.tokenizer(), text.tokens), shown(model.tokenizer(), text.source),
                             std::move(maps)};
    install_stop_signals();  // the file is written whole
    write_file(options.html, attention_page(page), existing(options.overwrite));
    note_written(options.html);
}

/// Projected keys are no tokens, so that layers which have them show no weights.
void note_projected(const ModelConfig& config) {
    std::int64_t projected = 0;
    for (std::int64_t layer = 0; layer < config.layers; layer++)
        projected += config.attends(layer) && config.attention.projected.at(layer) > 0;
    if (projected > 0)
        note("left out, as their keys are projected (model.attention.projected): " +
             std::to_string(projected) + " of " + std::to_string(config.layers) + " layers" +
             (config.has_decoder() ? " of the encoder" : ""));
}

int run(const Options& options, const Globals& globals) {
    if (!options.html.empty()) prepare_output(options.html, existing(options.overwrite));
    const std::shared_ptr<const Model> model = Model::open(options.model);
    const LookedAt text = looked_at(model, options, globals);
    std::vector<AttentionMap> maps = attention_maps(*model, text);
    if (maps.empty())
        fail_input(model->path(), "", "a model with attention between tokens", "none of its layers has it");
    note_projected(model->config());
    if (!options.html.empty()) {
        write_page(options, *model, text, std::move(maps));
        return 0;
    }
    if (!options.json) {
        std::string header = "layer            head";
        for (const Habit& habit : columns_of_habits) {
            char column[16];
            std::snprintf(column, sizeof column, " %9s", habit.name);
            header += column;
        }
        write_stdout(header + "\n");
    }
    for (const AttentionMap& map : maps)
        for (std::int64_t h = 0; h < map.heads; h++) {
            const Habits habits = habits_of(map, h, map.in_source ? text.source : text.tokens);
            if (options.json)
                print_json(map, h, habits, text, model->tokenizer());
            else
                print_table(map, h, habits);
        }
    return 0;
}

}  // namespace

Action add_inspect_attention(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_model(app, options->model);
    add_prompt(app, "text to look at (an encoder-decoder's source)", options->prompt, options->file,
               options->keep_newline);
    add_text(app, "--answer", options->answer, "of an encoder-decoder, the answer to look at")
        ->type_name("TEXT")
        ->default_str("the model's own");
    add_output(app, "--html", options->html, "write a page of pictures instead of printing numbers")
        ->type_name("OUT");
    add_overwrite(app, options->overwrite);
    app.add_flag("--special", options->special,
                 "parse control tokens written in the text, such as <|im_end|>, as tokens, not as text");
    app.add_flag("--json", options->json, "one JSON object per head, with its weights");
    return [options, &globals] { return run(*options, globals); };
}

}  // namespace linnet
