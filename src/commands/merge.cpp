// linnet merge: adapters made part of a model's weights.
#include <CLI/CLI.hpp>

#include "base/output.h"
#include "base/signals.h"
#include "commands/adapter_options.h"
#include "commands/commands.h"
#include "commands/options.h"
#include "model/convert/open.h"

namespace linnet {
namespace {

struct Options {
    std::string model, out, type;
    std::vector<AdapterChoice> adapters;
    bool overwrite = false;
};

int run(const Options& options) {
    install_stop_signals();
    std::shared_ptr<const Model> model = Model::open(options.model);
    require_gguf_tokenizer(options.model, model->tokenizer_beside());
    std::vector<Adapter> adapters;
    for (const AdapterChoice& choice : options.adapters) adapters.push_back(open_adapter(choice, *model));
    const Existing found = existing(options.overwrite);
    prepare_output(options.out, found);
    std::optional<DType> type;
    if (!options.type.empty()) type = dtype_from_name(options.type);
    merge_adapters(*model, adapters, type, options.out, found);
    note_written(options.out);
    return 0;
}

}  // namespace

Action add_merge(CLI::App& app, const Globals&) {
    auto options = std::make_shared<Options>();
    add_model(app, options->model);
    add_adapters(app, options->adapters, "adapter to merge into the weights")->required();
    add_output(app, "-o,--out", options->out, "GGUF file to write")->required();
    add_choice(app, "--type", options->type, {"f32", "f16", "bf16"}, "type of the tensors that change")
        ->default_str("their own; quantized ones need it");
    add_overwrite(app, options->overwrite, "replace a file that is there");
    return [options] { return run(*options); };
}

}  // namespace linnet
