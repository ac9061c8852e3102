// What `train` and `finetune` have in common.
#pragma once
#include <string>

#include "commands/commands.h"
#include "train/trainer.h"

namespace linnet {

struct TrainingArguments {
    TrainingOptions train;
    std::string time, save, fields;
    std::int64_t steps = 0;
};

/// --data, once or several times, with weights; `pictures`: the command learns from those, too.
void add_data(CLI::App& app, DataOptions& data, bool pictures = true);
/// Call after parsing: takes the weights off.
void finish_data(DataOptions& data);

/// Data, folder, settings, the end, what is said.
void add_training_options(CLI::App& app, TrainingArguments& arguments);

/// The run that they ask for; `app`: the command, after parsing.
int run_training(const CLI::App& app, TrainingArguments& arguments, const Globals& globals);

}  // namespace linnet
