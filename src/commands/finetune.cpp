// linnet finetune: a model that is there trained further, whole, in part, or by an adapter.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <variant>

#include "commands/options.h"
#include "commands/training_options.h"
#include "train/run_model.h"
#include "train/start.h"

namespace linnet {
namespace {

struct Options : TrainingArguments {
    std::string model, targets, form;
    std::int64_t layers = 0, reset_layers = 0, rank = 0;
    double layer_decay = 1, alpha = 0, dropout = 0;
};

/// An option and the setting of the config that it stands for.
struct Setting {
    const char *option, *key;
    std::variant<std::string Options::*, std::int64_t Options::*, double Options::*> value;
};
constexpr Setting settings[] = {
    {"--template", "finetune.template", &Options::form},
    {"--layers", "finetune.layers", &Options::layers},
    {"--layer-decay", "finetune.layer_decay", &Options::layer_decay},
    {"--reset-layers", "finetune.reset_layers", &Options::reset_layers},
    {"--lora", "finetune.lora.rank", &Options::rank},
    {"--alpha", "finetune.lora.alpha", &Options::alpha},
    {"--targets", "finetune.lora.targets", &Options::targets},
    {"--lora-dropout", "finetune.lora.dropout", &Options::dropout},
};

/// What the config keeps.
const std::string& kept(const char* option, const std::string& value) {
    require_utf8(option, "a name in UTF-8, as the run's config keeps it", value);
    return value;
}

/// As the config takes it: a number as JSON, however it was written (.5, 007).
std::string config_value(const Setting& setting, const Options& options) {
    return std::visit(
        [&](auto member) {
            if constexpr (std::is_same_v<decltype(member), std::string Options::*>)
                return kept(setting.option, options.*member);
            else
                return nlohmann::json(options.*member).dump();
        },
        setting.value);
}

}  // namespace

Action add_finetune(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_text(app, "-m,--model", options->model,
             "GGUF file, Hugging Face folder, or the folder of a training run")
        ->type_name("MODEL")
        ->default_str("the built-in model; with --resume the one that the run began from");
    add_training_options(app, *options);
    add_text(app, "--template", options->form,
             "how conversations are marked, here and in the model that is written: a name "
             "(models/templates), or a file like those")
        ->type_name("TEMPLATE")
        ->default_str("the model file's own");
    auto* layers = add_integer(app, "--layers", options->layers, 1, 1 << 20,
                               "train only the last N layers and what follows them");
    add_hidden_names(app, "--last", layers->default_str("all"));
    add_real(app, "--layer-decay", options->layer_decay, 1e-3, 1,
             "learning rate of a layer as a share of the next one's");
    add_integer(app, "--reset-layers", options->reset_layers, 0, 1 << 20, "reinitialise the last N layers");
    add_integer(app, "--lora", options->rank, 1, 4096,
                "train an adapter of this rank instead of the weights, which stay as they are")
        ->type_name("R")
        ->default_str("none");
    auto* alpha =
        add_real(app, "--alpha", options->alpha, 1e-3, 1e6, "the adapter is scaled by alpha / rank");
    add_hidden_names(app, "--lora-alpha", alpha->default_str("twice the rank"));
    add_text(app, "--targets", options->targets,
             "what the adapter changes: names of tensors, or their middles (attn_q), with * for any text, "
             "separated by commas")
        ->type_name("LIST")
        ->default_str("every linear layer of the blocks");
    add_real(app, "--lora-dropout", options->dropout, 0, 0.95, "dropout on the adapter's input");
    return [options, &globals, &app] {
        std::vector<std::string>& set = options->train.set;
        if (!options->model.empty())
            set.push_back("finetune.model=" + kept("--model", model_of_run(options->model)));
        else if (!options->train.resume)
            set.insert(set.begin(), std::string("finetune.model=") + built_in);  // --set comes behind it
        for (const Setting& setting : settings)
            if (const CLI::Option* option = app.get_option(setting.option); option->count() > 0)
                set.push_back(std::string(setting.key) + "=" + config_value(setting, *options));
        return run_training(app, *options, globals);
    };
}

}  // namespace linnet
