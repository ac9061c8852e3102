// linnet train: options in, train/trainer.h does the rest.
#include "commands/options.h"
#include "commands/training_options.h"
#include "train/run_model.h"

namespace linnet {

Action add_train(CLI::App& app, const Globals& globals) {
    struct Options : TrainingArguments {
        std::string from;
    };
    auto options = std::make_shared<Options>();
    TrainingOptions& train = options->train;
    add_text(app, "CONFIG", train.config_path,
             "model and training settings, JSON (models/ has some); -: stdin")
        ->type_name("FILE")
        ->default_str("chosen by the text's size, the time and the machine's speed");
    add_training_options(app, *options);
    add_text(app, "--from", options->from,
             "begin from this model: its form, weights and vocabulary; CONFIG says how it is trained")
        ->type_name("MODEL")
        ->default_str("weights are drawn, or what finetune.model of CONFIG names");
    return [options, &globals, &app] {
        if (!options->from.empty())
            options->train.set.push_back("finetune.model=" + model_of_run(options->from));
        return run_training(app, *options, globals);
    };
}

}  // namespace linnet
