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
#include "commands/options.h"
#include "commands/percent.h"
#include "commands/read_options.h"
#include "commands/text_input.h"
#include "model/engine/engine.h"
#include "train/run_model.h"

namespace linnet {
namespace {

struct Options {
    std::string model, file, fields, against;
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
std::size_t count_windows(const Options& options, const TextInput& file, std::span<const TokenId> ids,
                          std::int64_t size) {
    if (size < 2) usage_error("--ctx", "at least 2 tokens", std::to_string(size));
    require_window(file, ids.size(), size);
    const std::size_t count = ids.size() / static_cast<std::size_t>(size);
    return options.windows > 0 ? std::min(count, static_cast<std::size_t>(options.windows)) : count;
}

/// What --against asks for, in windows that both models have the context for.
int compare(const Options& options, const std::shared_ptr<const Model>& model, const TextInput& file,
            std::span<const TokenId> ids, EngineOptions wanted) {
    const std::shared_ptr<const Model> reference = Model::open(model_of_run(options.against));
    if (reference->config().has_encoder())
        fail_input(options.against, "", "a model that predicts a text", "one with an encoder");
    if (wanted.context == 0) wanted.context = std::min(model->config().context, reference->config().context);
    count_windows(options, file, ids, wanted.context);
    Percent percent("compared");
    const Divergence measured =
        measure_divergence(reference, model, ids, wanted, options.windows, std::ref(percent));
    percent.clear();
    write_stdout(options.json ? json_line(divergence_json(measured)) : divergence_line(measured));
    return 0;
}

/// Options that mean nothing to a model with an encoder.
void refuse_unused(const Options& options, const ModelConfig& config) {
    const bool answers = config.kind == "encoder-decoder", pictures = config.reads_patches();
    const bool masks = !answers && config.head.kind == "tokens";
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

int run(const Options& options, const Globals& globals) {
    install_stop_signals();
    std::shared_ptr<const Model> model = open_with_adapters(options.model, options.adapters);
    if (model->config().has_encoder()) {
        refuse_unused(options, model->config());
        return eval_examples(model,
                             {options.file,
                              options.fields,
                              options.context,
                              options.windows,
                              {options.beams, options.length_penalty, -1},
                              options.state,
                              options.json,
                              options.resize},
                             globals);
    }
    if (options.beams > 1)
        usage_error("--beams", "1, as the model predicts a text", std::to_string(options.beams));
    if (!options.fields.empty())
        usage_error("--fields", "none, as the model predicts a text", "'" + options.fields + "'");
    if (options.resize) usage_error("--resize", "none, as the model predicts a text", "it");
    const TextInput file(options.file);
    const std::vector<TokenId> ids = encode_for_windows(model->tokenizer(), file, globals.threads);
    EngineOptions wanted;
    wanted.context = options.context;
    wanted.threads = globals.threads;
    wanted.state = options.state;
    if (!options.against.empty()) return compare(options, model, file, ids, wanted);
    Engine engine(model, wanted);
    Sequence sequence = engine.start();
    const std::size_t size = static_cast<std::size_t>(sequence.context()),
                      count = count_windows(options, file, ids, sequence.context());

    Score score;
    StatusLine status;
    auto start = Clock::now();
    for (std::size_t i = 0; i < count; i++) {
        std::span<const TokenId> window = std::span(ids).subspan(i * size, size);
        sequence.rewind(0);
        score.nll += sequence.append_nll(window);
        if (!std::isfinite(score.nll)) fail_not_finite(*model);
        score.tokens += static_cast<std::int64_t>(size) - 1;
        score.bytes += predicted_bytes(model->tokenizer(), window);
        char line[120];
        std::snprintf(line, sizeof line, "window %zu of %zu, nll %.4f", i + 1, count,
                      score.nll / static_cast<double>(score.tokens));
        if (seconds_since(start) > 1) status.show(line);
        if (int signal = stop_signal()) return 128 + signal;
    }
    status.clear();
    double nll = score.nll / static_cast<double>(score.tokens), ppl = std::exp(nll);
    double bpb = score.nll / std::log(2.0) / static_cast<double>(std::max<std::int64_t>(score.bytes, 1));
    if (options.json) {
        nlohmann::ordered_json out{{"nll", nll}, {"ppl", ppl}, {"bpb", bpb}, {"tokens", score.tokens}};
        write_stdout(out.dump() + "\n");
        return 0;
    }
    char line[160];
    std::snprintf(line, sizeof line, "nll %.6f  ppl %.4f  bpb %.4f  tokens %lld\n", nll, ppl, bpb,
                  static_cast<long long>(score.tokens));
    write_stdout(line);
    return 0;
}

}  // namespace

Action add_eval(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_model(app, options->model);
    add_adapters(app, options->adapters);
    add_text(
        app, "-f,--file", options->file,
        "text to predict; for models of those examples (.tsv, .jsonl) or pictures (IDX, or a folder with a "
        "folder for each class); -: stdin")
        ->type_name("FILE")
        ->required();
    add_text(app, "--against", options->against,
             "tell how far the predictions are from this model's, in its place: KL divergence, perplexities, "
             "how often both think the same token likeliest")
        ->type_name("MODEL");
    add_context(app, options->context, 2, "tokens per window");
    add_state_type(app, options->state);
    add_integer(app, "--windows", options->windows, 1, INT64_MAX, "windows or examples at most")
        ->default_str("all");
    add_fields(app, options->fields);
    add_integer(app, "--beams", options->beams, 1, 256, "encoder-decoders: answers kept at a time");
    add_real(app, "--length-penalty", options->length_penalty, -10, 10,
             "of beams: log probability is divided by length to this power");
    app.add_flag("--resize", options->resize, "make pictures of another size as large as the model's");
    app.add_flag("--json", options->json,
                 "one JSON object: nll, ppl, bpb, tokens; or accuracy, exact, word_error, chrf, …");
    return [options, &globals, &app] {
        require_beside(app, "--length-penalty", {"--beams"});
        return run(*options, globals);
    };
}

}  // namespace linnet
