// linnet merge: adapters made part of a model's weights.
#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/output.h"
#include "base/signals.h"
#include "commands/adapter_options.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "model/convert/open.h"
#include "train/run_model.h"

namespace linnet {
namespace {

struct Options {
    std::string model, out, type;
    std::vector<AdapterChoice> adapters;
    bool overwrite = false;
};

/// Whether `out` is the file that was read, or one of those that a folder is read from: its adapter, or
/// whatever is no GGUF file.
bool replaces(const std::string& out, const std::string& read) {
    namespace fs = std::filesystem;
    std::error_code ignored;
    if (!fs::exists(out, ignored)) return false;
    if (!is_folder(read)) return fs::equivalent(out, read, ignored);
    const fs::path path = fs::absolute(out, ignored);
    return fs::equivalent(path.parent_path(), read, ignored) &&
           (path.extension() != ".gguf" || path.filename() == best_adapter);
}

int run(const Options& options, int threads) {
    install_stop_signals();
    std::shared_ptr<const Model> model = Model::open(options.model);
    require_gguf_tokenizer(options.model, model->tokenizer_beside());
    std::vector<Adapter> adapters;
    for (const AdapterChoice& choice : options.adapters) adapters.push_back(open_adapter(choice, *model));
    bool same = replaces(options.out, model->path());
    for (const AdapterChoice& choice : options.adapters) same |= replaces(options.out, choice.path);
    if (same)
        usage_error("--out", "another file than those of the model and its adapters",
                    linnet::quoted(options.out));
    const Existing found = existing(options.overwrite);
    prepare_output(options.out, found);
    std::optional<DType> type;
    if (!options.type.empty()) type = dtype_from_name(options.type);
    merge_adapters(*model, adapters, type, options.out, found, threads);
    note_written(options.out);
    return 0;
}

}  // namespace

Action add_merge(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_model(app, options->model);
    add_adapters(app, options->adapters, "adapter to merge into the weights")->required();
    add_output(app, "-o,--out", options->out, "GGUF file to write")->required();
    add_choice(app, "--type", options->type, {"f32", "f16", "bf16"}, "type of the tensors that change")
        ->default_str("their own; quantized ones need it");
    add_overwrite(app, options->overwrite);
    return [options, &globals] { return run(*options, globals.threads); };
}

}  // namespace linnet
