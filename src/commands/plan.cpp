// linnet plan: what fits a text and a time. train/forecast/ does the work.
#include "commands/commands.h"
#include "commands/options.h"
#include "commands/read_options.h"
#include "commands/training_options.h"
#include "train/forecast/forecast_text.h"

namespace linnet {
namespace {

struct Options {
    TrainingOptions train;
    std::string time;
    bool json = false;
};

int run(Options& options, const Globals& globals) {
    TrainingOptions& train = options.train;
    if (train.data.inputs.empty()) usage_error("--data", "a value", "none", "the text to learn");
    train.time_limit_s = parse_duration("--time", options.time);
    finish_data(train.data);
    train.threads = globals.threads;
    const Forecast planned = forecast(train);
    write_stdout(options.json ? forecast_lines(planned) : forecast_table(planned));
    return 0;
}

}  // namespace

Action add_plan(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    add_data(app, options->train.data, false);
    add_text(app, "--time", options->time,
             "what a run may take, such as 90s, 10m, 1.5h, 2d or 1:30 (minutes:seconds)")
        ->type_name("TIME")
        ->required();
    add_read_options(app, options->train.data.read);
    app.add_flag(
        "--json", options->json,
        "one JSON object per row: parameters, tokens, batch (sequences of a step), memory_mib, disk_mib, "
        "bpb (bits per byte of held-out text), best, …, config");
    return [options, &globals] { return run(*options, globals); };
}

}  // namespace linnet
