#include "commands/training_options.h"

#include "commands/options.h"
#include "commands/read_options.h"
#include "data/labelled/lines.h"
#include "generate/generator.h"

namespace linnet {
namespace {

/// Takes "PATH=WEIGHT" apart, unless a file has that name. Inputs without one weigh 1 beside those that have.
void take_weights(DataOptions& data) {
    bool any = false;
    for (std::string& input : data.inputs) {
        const std::optional<double> given =
            cut_number(input, "--data", "PATH, or PATH=WEIGHT with a positive number", 0, most_weight);
        any |= given.has_value();
        data.weights.push_back(given.value_or(1));
    }
    if (!any || data.inputs.size() == 1) data.weights.clear();
}

}  // namespace

void add_data(CLI::App& app, DataOptions& data, bool pictures) {
    add_texts(
        app, "--data", data.inputs,
        std::string("text to learn: a file (.txt, .jsonl, also .gz or .zst), a folder of them, - for stdin, "
                    "or a folder of tokens made by `linnet corpus` or another program; ") +
            (pictures ? "for pairs, classes and tags .tsv or .jsonl; for classes of pictures IDX files, or a "
                        "folder with one subfolder of pictures (PNG, PGM, PPM) per class; "
                      : "") +
            "may be given several times. With weights (a.txt=2) each is sampled in proportion and evaluated "
            "by itself")
        ->type_name("PATH");
}

void finish_data(DataOptions& data) {
    take_weights(data);
    finish_read_options(data.read);
}

void add_training_options(CLI::App& app, TrainingArguments& arguments) {
    TrainingOptions& train = arguments.train;
    add_data(app, train.data);
    add_fields(app, arguments.fields, all_fields);
    add_output(app, "-o,--out", train.out,
               "folder for model.gguf (or adapter.gguf), last.gguf, config.json, checkpoints, log.jsonl, "
               "report.html")
        ->type_name("DIR")
        ->required();
    add_texts(app, "--set", train.set,
              "change a setting of the config, for example train.steps=500 (`linnet help config` lists all)")
        ->type_name("KEY=VALUE");
    add_overwrite(app, train.overwrite, "start over in a folder that holds a run")
        ->excludes(app.add_flag("--resume", train.resume,
                                "go on from the newest checkpoint in --out, with its data and config"));
    add_integer(app, "--steps", arguments.steps, 1, 1'000'000'000'000, "end after this step")
        ->default_str("train.steps");
    add_real(app, "--epochs", train.epochs, 1e-9, 1e9,
             "end when the text has been read X times; with weights, all texts together")
        ->default_str("train.steps")
        ->excludes("--steps");
    add_text(app, "--time", arguments.time,
             "end after this time, such as 90s, 10m, 1.5h, 2d or 1:30 (minutes:seconds)")
        ->type_name("TIME")
        ->default_str("10m where " + std::string(app.get_option_no_throw("CONFIG")
                                                     ? "no CONFIG, --steps or --epochs is given"
                                                     : "neither --steps nor --epochs is given"));
    add_choice(
        app, "--save", arguments.save, {"gguf", "hf"},
        "hf: also write the best model as a Hugging Face folder, DIR/hf (an adapter as a PEFT folder), "
        "if Hugging Face has the model's family")
        ->default_str("gguf");
    app.add_flag("--resize", train.data.resize, "scale pictures of another size to the model's");
    app.add_flag("--verify", train.verify, "check all of a corpus's checksums, not a sample of 128 MiB");
    add_hidden_names(app, "--format", add_read_options(app, train.data.read));
    app.add_flag_callback(
        "--no-early-stop", [&train] { train.early_stop = false; },
        "do not end early where the model is overfitting");
    app.add_flag("--dry-run", train.dry_run, "only say what would be trained, and the memory it takes");
    app.add_flag("--json", train.json, "progress as one JSON object per line on stdout");
}

int run_training(const CLI::App& app, TrainingArguments& arguments, const Globals& globals) {
    TrainingOptions& train = arguments.train;
    if (arguments.steps > 0) train.steps = arguments.steps;
    if (!arguments.time.empty()) train.time_limit_s = parse_duration("--time", arguments.time);
    if (train.data.inputs.empty() && !train.resume)
        usage_error("--data", "a value", "none", "the text to learn; a resumed run knows its own");
    // How data is read stays as the run began, so what says it otherwise needs the data, too.
    for (const std::string& option :
         {std::string("--fields"), std::string("--resize"), given_read_option(app)})
        if (!option.empty()) require_beside(app, option, {"--data"});
    finish_data(train.data);
    train.data.fields = field_names(arguments.fields);
    if (!arguments.save.empty()) train.set.push_back("train.save=" + arguments.save);
    train.threads = globals.threads;
    int threads = globals.threads;
    train.sample = [threads](const std::shared_ptr<const Model>& model, const std::string& prompt,
                             std::int64_t tokens) { return write_sample(model, prompt, tokens, threads); };
    return linnet::train(train);
}

}  // namespace linnet
