// linnet inspect logits: what a model thinks comes next, as numbers.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/file.h"
#include "base/json_line.h"
#include "base/log_sum.h"
#include "base/terminal.h"
#include "base/utf8.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/terminal_text.h"
#include "commands/text_input.h"
#include "generate/generator.h"
#include "text/naming.h"

namespace linnet {
namespace {

struct Options {
    std::string model, file;
    std::optional<std::string> prompt;
    std::int64_t top = 0, context = 0;
    DType state = EngineOptions().state;
    bool special = false, keep_newline = false, json = false;
};

/// A token on one line whatever it holds: "\\n" for a line end. (A control token by its name.)
std::string quoted_token(const std::string& text) {
    std::string out = "'";
    for (char c : printable(text, true)) out += c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string(1, c);
    return out + "'";
}

struct Row {
    TokenId id;
    std::string token;
    double logit, probability;
};

std::vector<Row> rows_of(const Options& options, const Tokenizer& tokenizer, std::span<const float> logits) {
    const double total = log_sum(logits);
    std::vector<TokenId> ids(logits.size());
    std::iota(ids.begin(), ids.end(), 0);
    if (options.top > 0) ids = likeliest(logits, static_cast<std::size_t>(options.top));
    std::vector<Row> rows;
    for (TokenId id : ids) {
        Row row{id, token_text(tokenizer, id), static_cast<double>(logits[static_cast<std::size_t>(id)]), 0};
        row.probability = std::exp(row.logit - total);
        rows.push_back(std::move(row));
    }
    return rows;
}

void print_json(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
        nlohmann::ordered_json out{
            {"id", row.id}, {"token", row.token}, {"logit", row.logit}, {"probability", row.probability}};
        write_stdout(json_line(out));
    }
}

void print_table(const std::vector<Row>& rows) {
    std::vector<std::string> tokens;
    int width = 0;
    for (const Row& row : rows) {
        tokens.push_back(quoted_token(row.token));
        width = std::max(width, character_count(tokens.back()));
    }
    char line[80];
    for (std::size_t i = 0; i < rows.size(); i++) {
        const std::string room(static_cast<std::size_t>(width - character_count(tokens[i])), ' ');
        std::snprintf(line, sizeof line, "%6d  ", rows[i].id);
        std::string out = line + tokens[i] + room;
        std::snprintf(line, sizeof line, "  %10.4f  %8.6f\n", rows[i].logit, rows[i].probability);
        write_stdout(out + line);
    }
}

void print(const Options& options, const Tokenizer& tokenizer, std::span<const float> logits) {
    if (options.json) return print_json(rows_of(options, tokenizer, logits));
    if (options.top > 0) return print_table(rows_of(options, tokenizer, logits));
    char line[48];
    for (float logit : logits) {
        std::snprintf(line, sizeof line, "%.6f\n", static_cast<double>(logit));
        write_stdout(line);
    }
}

int run(const Options& options, const Globals& globals) {
    const std::string text = prompt_text(options.prompt, options.file, options.keep_newline);
    std::shared_ptr<const Model> model = Model::open(options.model);
    std::vector<TokenId> prompt = naming(prompt_name(options.prompt, options.file), [&] {
        return encode_prompt(model->tokenizer(), text, options.special);
    });
    EngineOptions wanted;
    wanted.threads = globals.threads;
    wanted.state = options.state;
    wanted.context = options.context;
    if (wanted.context == 0)
        wanted.context =
            std::clamp<std::int64_t>(static_cast<std::int64_t>(prompt.size()), 1, model->config().context);
    EngineSource source(model, wanted);
    Generator generator(source, model->tokenizer());
    print(options, model->tokenizer(), generator.read(prompt));
    return 0;
}

}  // namespace

Action add_inspect_logits(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_model(app, options->model);
    add_prompt(app, "text before the logits", options->prompt, options->file, options->keep_newline);
    add_integer(app, "--top", options->top, 1, INT64_MAX, "only the N largest: id, token, logit, probability")
        ->default_str("all, one per line in id order, the logit alone");
    add_context(app, options->context, 1,
                "room for tokens; where positions depend on it (longrope), so do logits")
        ->default_str("the text's length");
    add_state_type(app, options->state);
    app.add_flag("--special", options->special,
                 "parse control tokens written in the text, such as <|im_end|>, as tokens, not as text");
    app.add_flag("--json", options->json, "one JSON object per token: id, token, logit, probability");
    return [options, &globals] { return run(*options, globals); };
}

}  // namespace linnet
