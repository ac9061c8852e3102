// linnet quantize: a model written again with smaller weights, and what that costs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json_line.h"
#include "base/nearest.h"
#include "base/output.h"
#include "base/signals.h"
#include "base/split.h"
#include "base/terminal.h"
#include "commands/commands.h"
#include "commands/divergence_text.h"
#include "commands/measured_text.h"
#include "commands/options.h"
#include "commands/percent.h"
#include "commands/read_options.h"
#include "model/convert/open.h"
#include "model/model.h"
#include "model/quantize/importance.h"
#include "model/quantize/quantize.h"
#include "train/run_model.h"

namespace linnet {
namespace {

constexpr std::int64_t longest_window = 2048;  // where --ctx is left out

struct Options {
    std::string in, out, type, importance, check;
    std::vector<std::string> tensors;
    ReadOptions read;  // of what --importance and --check name
    std::int64_t context = 0, windows = 0;
    bool pure = false, requantize = false, overwrite = false, json = false;
};

/// What --type (or, `single`, one tensor) may be.
std::vector<std::string> all_names(bool single) {
    std::vector<std::string> names;
    for (const QuantizeMix& mix : quantize_mixes())
        if (!single || dtype_from_name(mix.name)) names.emplace_back(mix.name);
    return names;
}
std::string type_names(bool single) {
    return joined(all_names(single));
}

/// A type as llama.cpp spells it: Q4_K_M; Q4_K_S, whose rules are those of q4_k here.
std::string our_name(std::string type) {
    for (char& c : type) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    if (type.ends_with("_k_s")) type.resize(type.size() - 2);
    return type;
}

/// "PATTERN=TYPE".
std::pair<std::string, DType> tensor_choice(const std::string& text) {
    std::size_t equals = text.rfind('=');
    if (equals == text.npos || equals == 0) usage_error("--tensor", "PATTERN=TYPE", quoted(text));
    std::string name = text.substr(equals + 1);
    std::optional<DType> type = dtype_from_name(our_name(name));
    if (!type || !info(*type).is_weight)
        usage_error("--tensor", "a type of " + type_names(true), linnet::quoted(name));
    return {text.substr(0, equals), *type};
}

/// A text as a model reads it: in windows of so many tokens, at least one.
struct Windows {
    std::vector<TokenId> ids;
    std::int64_t size;
};

Windows windows_of(const Options& options, const Globals& globals, const Model& model,
                   const MeasuredText& text) {
    Windows windows;
    windows.ids = encode_for_windows(model.tokenizer(), text, globals.threads);
    const std::int64_t context = model.config().context;
    if (options.context > context)
        usage_error("--ctx", "at most " + std::to_string(context) + ", the model's",
                    std::to_string(options.context));
    windows.size = window_size(options.context, std::min(context, longest_window), windows.ids.size());
    require_window(text, windows.ids.size(), windows.size);
    if (const auto most = static_cast<std::size_t>(options.windows);
        most > 0 && windows.ids.size() / static_cast<std::size_t>(windows.size) > most)
        windows.ids.resize(most * static_cast<std::size_t>(windows.size));
    return windows;
}

Importance importance(const Options& options, const Globals& globals, const Model& source,
                      const MeasuredText& text) {
    const Windows windows = windows_of(options, globals, source, text);
    Percent percent("weighed");
    Importance measured =
        measure_importance(source, windows.ids, windows.size, globals.threads, std::ref(percent));
    percent.clear();
    return measured;
}

/// --check: opened and read before anything is written, as OUT may take IN's place, and as hours may pass
/// before it is needed.
struct Check {
    std::shared_ptr<const Model> source;
    Windows windows;
};

Check prepare_check(const Options& options, const Globals& globals, std::shared_ptr<const Model> source,
                    const MeasuredText& text) {
    if (source->config().has_encoder())
        fail_input(options.in, "", "a model that predicts a text, for --check", "one with an encoder");
    Windows windows = windows_of(options, globals, *source, text);
    return {std::move(source), std::move(windows)};
}

Divergence measure(const Check& check, const Options& options, const Globals& globals) {
    EngineOptions wanted;
    wanted.context = check.windows.size, wanted.threads = globals.threads;
    Percent percent("compared");
    Divergence measured = measure_divergence(check.source, Model::open(options.out), check.windows.ids,
                                             wanted, 0, std::ref(percent));
    percent.clear();
    return measured;
}

std::string dimensions(const Shape& shape) {
    std::string text;
    for (int i = 0; i < shape.rank; i++)
        text += (i ? " x " : "") + std::to_string(shape.dim[static_cast<std::size_t>(i)]);
    return text;
}

std::string text_report(const std::vector<QuantizedTensor>& tensors, const Divergence* divergence) {
    std::string text;
    std::size_t widest = 0;
    for (const QuantizedTensor& t : tensors) widest = std::max(widest, t.name.size());
    char line[256];
    double bytes = 0, weights = 0;
    for (const QuantizedTensor& t : tensors) {
        bytes += static_cast<double>(t.bytes), weights += static_cast<double>(t.shape.count());
        std::string name = printable(t.name), from(info(t.from).name), to(info(t.to).name);
        name.resize(std::max(widest, name.size()), ' ');
        std::snprintf(line, sizeof line, "  %-14s %6s -> %-6s %9s", dimensions(t.shape).c_str(), from.c_str(),
                      to.c_str(), human_bytes(static_cast<double>(t.bytes)).c_str());
        text += name + line;
        if (t.from != t.to) {
            std::snprintf(line, sizeof line, "  error %.4f %%", 100 * t.error);
            text += line;
        }
        text += "\n";
    }
    std::snprintf(line, sizeof line, "%s, %.2f bits per weight\n", human_bytes(bytes).c_str(),
                  8 * bytes / weights);
    text += line;
    return divergence ? text + divergence_line(*divergence) : text;
}

std::string json_report(const Options& options, const std::vector<QuantizedTensor>& tensors,
                        const Divergence* divergence) {
    nlohmann::ordered_json out{{"file", options.out}, {"type", options.type}},
        list = nlohmann::ordered_json::array();
    std::int64_t bytes = 0;
    for (const QuantizedTensor& t : tensors) {
        bytes += t.bytes;
        std::vector<std::int64_t> shape(t.shape.dim.begin(), t.shape.dim.begin() + t.shape.rank);
        list.push_back({{"name", t.name},
                        {"shape", shape},
                        {"from", info(t.from).name},
                        {"type", info(t.to).name},
                        {"bytes", t.bytes},
                        {"error", t.error}});
    }
    out["bytes"] = bytes;
    out["tensors"] = list;
    if (divergence) out["check"] = divergence_json(*divergence);
    return json_line(out);
}

int run(Options& options, const Globals& globals) {
    install_stop_signals();
    QuantizeOptions wanted;
    wanted.mix = quantize_mix(our_name(options.type));
    if (!wanted.mix)
        usage_error("--type", "one of " + type_names(false), linnet::quoted(options.type),
                    did_you_mean(our_name(options.type), all_names(false)));
    wanted.pure = options.pure, wanted.requantize = options.requantize, wanted.threads = globals.threads;
    for (const std::string& text : options.tensors) wanted.tensors.push_back(tensor_choice(text));
    if (options.check == "-" && options.importance == "-")
        usage_error("--importance", "another file than --check's", "stdin twice");
    std::unique_ptr<MeasuredText> text, weighed;
    if (!options.check.empty()) text = std::make_unique<MeasuredText>(options.check, options.read);
    if (!options.importance.empty())
        weighed = std::make_unique<MeasuredText>(options.importance, options.read);
    options.in = model_of_run(options.in);
    TokenizerPtr beside;
    const Gguf file = open_model_file(options.in, &beside);
    require_gguf_tokenizer(options.in, beside);
    if (file.tensors().empty())
        fail_input(options.in, "tensors", "at least one", "none (a vocabulary without a model?)");
    // All that can be refused is, before the measuring that may take hours.
    wanted.by_importance = weighed != nullptr;
    std::vector<QuantizedTensor> tensors = plan_quantization(file, wanted);
    wanted.existing = existing(options.overwrite);
    prepare_output(options.out, wanted.existing);
    std::optional<Check> checked;
    if (text || weighed) {
        const std::shared_ptr<const Model> source = Model::open(options.in);
        if (text) checked = prepare_check(options, globals, source, *text);
        if (weighed) wanted.importance = importance(options, globals, *source, *weighed);
    }
    Percent percent("quantized");
    write_quantized(file, wanted, tensors, options.out, std::ref(percent));
    percent.clear();
    note_written(options.out);
    std::optional<Divergence> measured;
    if (checked) measured = measure(*checked, options, globals);
    const Divergence* divergence = measured ? &*measured : nullptr;
    write_stdout(options.json ? json_report(options, tensors, divergence) : text_report(tensors, divergence));
    return 0;
}

}  // namespace

Action add_quantize(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_hidden_names(app, "-m,--model",
                     add_file(app, "FILE", options->in,
                              "model to read: GGUF, a Hugging Face folder, or the folder of a training run"));
    add_hidden_names(app, "-o,--out",
                     add_output(app, "OUT", options->out, "model to write: GGUF")->required());
    add_text(app, "--type", options->type,
             "type of the matrices, or a mix by llama.cpp's rules: " + type_names(false))
        ->type_name("TYPE")
        ->required();
    add_texts(app, "--tensor", options->tensors, "another type for matrices of this name; * is any text")
        ->type_name("PATTERN=TYPE");
    app.add_flag("--pure", options->pure, "give every matrix TYPE itself, without llama.cpp's rules");
    app.add_flag("--requantize", options->requantize, "also quantize matrices that are quantized already");
    add_text(app, "--importance", options->importance,
             "text whose activations weigh the errors (importance matrix); -: stdin")
        ->type_name("FILE");
    add_text(app, "--check", options->check, "text on which to compare the result with the source; -: stdin")
        ->type_name("FILE");
    add_context(app, options->context, 2, "tokens per window of --check and --importance")
        ->default_str("the model's own, 2048 at most; all of a shorter text");
    add_integer(app, "--windows", options->windows, 1, INT64_MAX,
                "windows of --check and --importance at most")
        ->default_str("all");
    add_read_options(app, options->read);
    add_overwrite(app, options->overwrite, "replace OUT if it exists; OUT may be FILE itself");
    app.add_flag("--json", options->json, "one JSON object: every tensor's type, bytes, relative error");
    return [options, &globals, &app] {
        for (const std::string& option :
             {std::string("--ctx"), std::string("--windows"), given_read_option(app)})
            if (!option.empty()) require_beside(app, option, {"--check", "--importance"});
        finish_read_options(options->read);
        return run(*options, globals);
    };
}

}  // namespace linnet
