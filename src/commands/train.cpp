// linnet train: options in, train/trainer.h does the rest.
#include "train/trainer.h"

#include "commands/commands.h"
#include "commands/options.h"
#include "commands/read_options.h"
#include "data/examples.h"
#include "generate/generator.h"

namespace linnet {
namespace {

struct Options {
    TrainingOptions train;
    std::string time, fields;
    std::int64_t steps = 0;
};

}  // namespace

Action add_train(CLI::App& app, const Globals& globals) {
    auto options = std::make_shared<Options>();
    TrainingOptions& train = options->train;
    add_text(app, "CONFIG", train.config_path, "model and training settings, JSON (models/ has some)")
        ->type_name("FILE")
        ->default_str("chosen by the text's size, the time and the machine's speed");
    add_texts(app, "--data", train.data.inputs,
              "text to learn: a file (.txt, .jsonl, also .gz or .zst), a folder of them, - for stdin, or a "
              "folder made by "
              "`linnet corpus`; may be given several times")
        ->type_name("PATH");
    add_text(app, "--fields", options->fields,
             "of JSON lines that hold pairs, classes or tags, parted by commas")
        ->type_name("NAME")
        ->default_str("source,target; text,label; words,tags");
    add_text(app, "-o,--out", train.out,
             "folder for model.gguf, config.json, checkpoints, log.jsonl, report.html")
        ->type_name("DIR")
        ->required();
    add_texts(app, "--set", train.set, "change a setting of the config, for example train.steps=500")
        ->type_name("KEY=VALUE");
    add_overwrite(app, train.overwrite, "begin anew in a folder that holds a run")
        ->excludes(app.add_flag("--resume", train.resume,
                                "go on from the newest checkpoint in --out, with its data and config"));
    add_integer(app, "--steps", options->steps, 1, INT64_MAX, "end after this step")
        ->default_str("train.steps");
    add_text(app, "--time", options->time,
             "end after this time, such as 90s, 10m, 1.5h, 2d or 1:30 (minutes:seconds)")
        ->type_name("TIME")
        ->default_str("10m where neither a config nor --steps is given");
    app.add_flag("--verify", train.verify, "check all of a corpus's checksums, not a sample of 128 MiB");
    add_hidden_names(app, "--format", add_read_options(app, train.data.read));
    app.add_flag_callback(
        "--no-early-stop", [&train] { train.early_stop = false; },
        "go on also where the text is being memorised");
    app.add_flag("--dry-run", train.dry_run, "only say what would be trained, and the memory it takes");
    app.add_flag("--json", train.json, "progress as one JSON object per line on stdout");
    return [options, &globals] {
        TrainingOptions& train = options->train;
        if (options->steps > 0) train.steps = options->steps;
        if (!options->time.empty()) train.time_limit_s = parse_duration("--time", options->time);
        if (train.data.inputs.empty() && !train.resume)
            usage_error("--data", "a value", "none", "the text to learn; a resumed run knows its own");
        finish_read_options(train.data.read);
        train.data.fields = field_names(options->fields);
        train.threads = globals.threads;
        int threads = globals.threads;
        train.sample = [threads](const std::shared_ptr<const Model>& model, const std::string& prompt,
                                 std::int64_t tokens) {
            return write_sample(model, prompt, tokens, threads);
        };
        return linnet::train(train);
    };
}

}  // namespace linnet
