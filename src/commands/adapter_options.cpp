#include "commands/adapter_options.h"

#include <CLI/CLI.hpp>

#include "commands/options.h"
#include "train/run_model.h"

namespace linnet {
namespace {

AdapterChoice adapter_choice(const std::string& text) {
    if (text.empty()) usage_error("--lora", "a value", "an empty text");
    AdapterChoice choice{text};
    if (const auto scale = cut_number(choice.path, "--lora", "FILE or FILE=SCALE, a number", -1e9, 1e9))
        choice.scale = *scale;
    choice.path = adapter_of_run(choice.path);
    return choice;
}

}  // namespace

CLI::Option* add_adapters(CLI::App& app, std::vector<AdapterChoice>& adapters, const std::string& what) {
    auto take = [&adapters](const std::vector<std::string>& all) {
        adapters.clear();
        for (const std::string& text : all) adapters.push_back(adapter_choice(text));
    };
    return app
        .add_option_function<std::vector<std::string>>("--lora", take,
                                                       what +
                                                           ": GGUF, a PEFT folder, or the folder of a run "
                                                           "that trained one; =SCALE multiplies its effect; "
                                                           "may be given several times")
        ->allow_extra_args(false)
        ->type_name("FILE")
        ->default_str("");
}

}  // namespace linnet
