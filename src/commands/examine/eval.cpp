// linnet eval: how well a model predicts a text, over disjoint windows, or how far from another model.
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json_line.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "commands/adapter_options.h"
#include "commands/commands.h"
#include "commands/divergence_text.h"
#include "commands/examine/eval_examples.h"
#include "commands/measured_text.h"
#include "commands/options.h"
#include "commands/percent.h"
#include "commands/read_options.h"
#include "model/engine/engine.h"
#include "train/run_model.h"

namespace linnet {
namespace {

struct Options {
    std::string model, file, fields, against;
    ReadOptions read;
    std::string read_given;  // the first of the options of `read` that was given
    std::vector<AdapterChoice> adapters;
    std::int64_t beams = 1;
    double length_penalty = 1;
    std::int64_t context = 0, windows = 0;
    DType state = EngineOptions().state;
    bool json = false, resize = false;
};

struct Score {
    double nll = 0;  // nats, summed
    std::int64_t tokens = 0, bytes = 0;
};

/// Bytes of text that the tokens after the first stand for.
std::int64_t predicted_bytes(const Tokenizer& tokenizer, std::span<const TokenId> window) {
    std::string text;
    for (TokenId id : window.subspan(1)) tokenizer.decode(id, false, text);
    return static_cast<std::int64_t>(text.size());
}

/// Windows of `size` tokens to look at.
std::size_t count_windows(const Options& options, const MeasuredText& text, std::span<const TokenId> ids,
                          std::int64_t size) {
    if (size < 2) usage_error("--ctx", "at least 2 tokens", std::to_string(size));
    require_window(text, ids.size(), size);
    const std::size_t count = ids.size() / static_cast<std::size_t>(size);
    return options.windows > 0 ? std::min(count, static_cast<std::size_t>(options.windows)) : count;
}

/// A window has a token to predict, and no more than the model has the context for. `whose`: that is.
void check_context(const Options& options, const ModelConfig& config, const std::string& whose) {
    if (options.context > config.context)
        usage_error("--ctx", "2 to " + std::to_string(config.context) + ", " + whose,
                    std::to_string(options.context));
}

/// What --against asks for, in windows that both models have the context for.
int compare(const Options& options, const std::shared_ptr<const Model>& model, const MeasuredText& text,
            std::span<const TokenId> ids, EngineOptions wanted) {
    const std::shared_ptr<const Model> reference = Model::open(model_of_run(options.against));
    if (reference->config().has_encoder())
        fail_input(options.against, "", "a model that predicts a text", "one with an encoder");
    check_context(options, reference->config(), "as --against's model has it");
    wanted.context = window_size(options.context,
                                 std::min(model->config().context, reference->config().context), ids.size());
    count_windows(options, text, ids, wanted.context);
    Percent percent("compared");
    const Divergence measured =
        measure_divergence(reference, model, ids, wanted, options.windows, std::ref(percent));
    percent.clear();
    write_stdout(options.json ? json_line(divergence_json(measured)) : divergence_line(measured));
    return 0;
}

/// Options that mean nothing to the model.
void refuse_unused(const Options& options, const ModelConfig& config) {
    if (!config.has_encoder()) {
        const std::string none = "none, as the model predicts a text";
        if (options.beams > 1)
            usage_error("--beams", "1, as the model predicts a text", std::to_string(options.beams));
        if (!options.fields.empty()) usage_error("--fields", none, "'" + options.fields + "'");
        if (options.resize) usage_error("--resize", none, "it");
        return;
    }
    const bool answers = config.kind == "encoder-decoder", pictures = config.reads_patches();
    const bool masks = !answers && config.head.kind == "tokens";
    if (!options.read_given.empty() && !masks)
        usage_error(options.read_given, "none, as the model reads no plain texts", "it");
    if (!options.against.empty())
        usage_error("--against", "none, as the model has an encoder", "'" + options.against + "'");
    if (options.beams > 1 && !answers)
        usage_error("--beams", "1, as the model writes no answers", std::to_string(options.beams));
    if (options.resize && !pictures) usage_error("--resize", "none, as the model reads no pictures", "it");
    if (!options.fields.empty() && (pictures || masks))
        usage_error("--fields", "none, as the model reads no labelled lines", "'" + options.fields + "'");
    if (options.context > 0 && !answers && !masks)
        usage_error("--ctx", "none, as the model reads every example whole", std::to_string(options.context));
}

Score score_windows(const Model& model, Sequence& sequence, std::span<const TokenId> ids, std::size_t count) {
    const auto size = static_cast<std::size_t>(sequence.context());
    Score score;
    StatusLine status;
    const auto start = Clock::now();
    for (std::size_t i = 0; i < count && !stop_signal(); i++) {
        const std::span<const TokenId> window = ids.subspan(i * size, size);
        sequence.rewind(0);
        score.nll += sequence.append_nll(window);
        if (!std::isfinite(score.nll)) fail_not_finite(model);
        score.tokens += static_cast<std::int64_t>(size) - 1;
        score.bytes += predicted_bytes(model.tokenizer(), window);
        char line[120];
        std::snprintf(line, sizeof line, "window %zu of %zu, nll %.4f", i + 1, count,
                      score.nll / static_cast<double>(score.tokens));
        if (seconds_since(start) > 1) status.show(line);
    }
    if (!stop_signal()) status.clear();
    return score;
}

void print(const Score& score, bool json) {
    const double nll = score.nll / static_cast<double>(score.tokens), ppl = std::exp(nll);
    const double bpb =
        score.nll / std::log(2.0) / static_cast<double>(std::max<std::int64_t>(score.bytes, 1));
    if (json) {
        nlohmann::ordered_json out{{"nll", nll}, {"ppl", ppl}, {"bpb", bpb}, {"tokens", score.tokens}};
        write_stdout(out.dump() + "\n");
        return;
    }
    char line[160];
    std::snprintf(line, sizeof line, "nll %.6f  ppl %.4f  bpb %.4f  tokens %lld\n", nll, ppl, bpb,
                  static_cast<long long>(score.tokens));
    write_stdout(line);
}

int run(const Options& options, const Globals& globals) {
    install_stop_signals();
    std::shared_ptr<const Model> model = open_with_adapters(options.model, options.adapters);
    refuse_unused(options, model->config());
    if (model->config().has_encoder())
        return eval_examples(model,
                             {options.file,
                              options.fields,
                              options.read,
                              options.context,
                              options.windows,
                              {options.beams, options.length_penalty, -1},
                              options.state,
                              options.json,
                              options.resize},
                             globals);
    check_context(options, model->config(), "the model's");
    const MeasuredText text(options.file, options.read);
    const std::vector<TokenId> ids = encode_for_windows(model->tokenizer(), text, globals.threads);
    EngineOptions wanted;
    wanted.context = window_size(options.context, model->config().context, ids.size());
    wanted.threads = globals.threads;
    wanted.state = options.state;
    if (!options.against.empty()) return compare(options, model, text, ids, wanted);
    Engine engine(model, wanted);
    Sequence sequence = engine.start();
    const Score score =
        score_windows(*model, sequence, ids, count_windows(options, text, ids, sequence.context()));
    if (int signal = stop_signal()) return 128 + signal;
    print(score, options.json);
    return 0;
}

}  // namespace

Action add_eval(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_model(app, options->model);
    add_adapters(app, options->adapters);
    add_text(
        app, "-f,--file", options->file,
        "text to predict (.jsonl, .gz and .zst as train reads them), or labelled examples (.tsv, .jsonl), or "
        "pictures (IDX, or one subfolder per class); -: stdin")
        ->type_name("FILE")
        ->required();
    add_text(
        app, "--against", options->against,
        "compare with this model's predictions instead: KL divergence, perplexities, top-token agreement")
        ->type_name("MODEL");
    add_context(app, options->context, 2, "tokens per window")
        ->default_str("the model's own; all of a shorter text");
    add_state_type(app, options->state);
    add_integer(app, "--windows", options->windows, 1, INT64_MAX, "at most so many windows or examples")
        ->default_str("all");
    add_read_options(app, options->read);
    add_fields(app, options->fields, line_fields);
    add_integer(app, "--beams", options->beams, 1, 256, "encoder-decoders: answers kept at a time");
    add_real(app, "--length-penalty", options->length_penalty, -10, 10,
             "of --beams: log probabilities are divided by length to the power X");
    app.add_flag("--resize", options->resize, "scale pictures of another size to the model's");
    app.add_flag("--json", options->json,
                 "one JSON object: nll, ppl, bpb, tokens; or accuracy, exact, word_error, chrf, …");
    return [options, &globals, &app] {
        require_beside(app, "--length-penalty", {"--beams"});
        options->read_given = given_read_option(app);
        finish_read_options(options->read);
        return run(*options, globals);
    };
}

}  // namespace linnet
