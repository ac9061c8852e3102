#include "train/setup.h"

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/terminal.h"
#include "data/corpus_check.h"
#include "data/corpus_index.h"

namespace linnet {
namespace {

using nlohmann::json;

nlohmann::json whole(RunConfig config) {
    return to_json(run_fields(config));
}

bool is_folder(const std::string& path) {
    std::error_code ignored;  // whoever opens it says what is wrong with it
    return std::filesystem::is_directory(path, ignored);
}

/// The config: the file's, a default for the text's size, or (resuming) the checkpoint's; then --set and
/// --steps.
RunConfig choose_config(const TrainingOptions& options, const RunSetup& setup) {
    std::vector<std::string> settings = options.set;
    if (options.steps) settings.push_back("train.steps=" + std::to_string(*options.steps));
    if (!options.config_path.empty()) {
        json file = parse_json(read_file(options.config_path), options.config_path);
        return read_run_config(file, options.config_path, settings);
    }
    if (setup.resumed) return read_run_config(setup.checkpoint.config, *setup.resumed, settings);
    std::string reason;
    std::uint64_t bytes = is_folder(options.data) ? UINT64_MAX : MappedFile(options.data).bytes().size();
    json config = default_config(bytes, reason);
    note("no config given: for a text of this size, " + reason);
    return read_run_config(config, "default config", settings);
}

TokenizerPtr choose_tokenizer(const TrainingOptions& options, const RunSetup& setup) {
    if (setup.resumed) return tokenizer_from_gguf(Gguf(*setup.resumed + "/model.gguf"));
    const TokenizerConfig& t = setup.config.tokenizer;
    if (t.kind == "file") return load_tokenizer(t.file);
    if (is_folder(options.data)) {  // its tokens are made, whatever the config would have made
        const std::string path = options.data + "/" + corpus_tokenizer;
        if (!std::filesystem::exists(path))
            fail_input(options.data, corpus_tokenizer, "the tokenizer that the corpus was made with",
                       "nothing", "--set tokenizer.kind=file --set tokenizer.file=PATH names another");
        note("the tokenizer is that of the corpus: " + path);
        const std::string made_with = read_corpus_index(options.data).tokenizer_sha256,
                          there = sha256(MappedFile(path).text());
        if (there != made_with) fail_input(path, "sha256", made_with + ", which made the corpus", there);
        return load_tokenizer(path);
    }
    MappedFile text(options.data);
    // Characters must all be known, also those of the validation part; merges are learned from the training
    // part only.
    std::size_t used = text.text().size();
    if (t.kind == "bpe")
        used = static_cast<std::size_t>(static_cast<double>(used) *
                                        (1 - setup.config.train.validation_fraction));
    return train_tokenizer(t.kind, text.text().substr(0, used), static_cast<TokenId>(t.vocab_size),
                           setup.threads);
}

/// A run goes on only as what it was: the same model, vocabulary, data and batches. The rest may change.
void check_resume(const RunSetup& setup, const TrainingOptions& options) {
    json was = setup.checkpoint.config, now = setup.config_json;
    for (const char* key : {"model", "tokenizer"})
        if (was.value(key, json()) != now[key])
            fail(Exit::diverged, options.out, key, "the checkpoint's config", "another one",
                 "train into another folder, or leave the config out");
    for (const char* key : {"batch", "sequence", "accumulate", "seed"})
        if (was["train"].value(key, json()) != now["train"][key])
            fail(Exit::diverged, options.out, std::string("train.") + key,
                 was["train"].value(key, json()).dump(), now["train"][key].dump());
    if (setup.checkpoint.data != setup.data_hash)
        fail(Exit::diverged, options.data, "",
             "the text that the run began with (sha256 " + setup.checkpoint.data + ")",
             "another one (" + setup.data_hash + ")");
}

/// The run's folder, and the checkpoint to go on from.
void open_folder(const TrainingOptions& options, RunSetup& setup) {
    setup.folder = std::make_unique<RunFolder>(options.out, options.resume      ? RunStart::resume
                                                            : options.overwrite ? RunStart::overwrite
                                                                                : RunStart::fresh);
    if (!options.resume) return;
    setup.checkpoint = read_newest_checkpoint(options.out + "/checkpoints", setup.resumed.emplace());
    if (!setup.checkpoint.isa.empty() && setup.checkpoint.isa != kernels().name)
        note("the run so far was computed with " + setup.checkpoint.isa + ", its rest with " +
             kernels().name + ": its bytes will differ from those of a run with one of them (--isa chooses)");
}

std::string hash_data(const std::string& path) {
    return sha256(MappedFile(is_folder(path) ? path + "/index.json" : path).text());
}

/// What can be said of the data before anything is chosen by it.
void check_data(const std::string& path) {
    if (!is_folder(path)) {
        if (MappedFile(path).bytes().empty()) fail_input(path, "", "a text", "an empty file");
    } else if (!std::filesystem::exists(path + "/index.json")) {
        fail_input(path, "", "a text file, or a folder made by `linnet corpus`",
                   "a folder without index.json");
    }
}

}  // namespace

RunSetup set_up(const TrainingOptions& options) {
    RunSetup setup;
    check_data(options.data);
    setup.threads = options.threads > 0 ? options.threads : physical_cores();
    if (!options.dry_run) open_folder(options, setup);
    setup.config = choose_config(options, setup);
    setup.data_hash = hash_data(options.data);
    setup.tokenizer = choose_tokenizer(options, setup);
    setup.config.model.vocabulary = setup.tokenizer->size();
    setup.config_json = whole(setup.config);
    if (setup.resumed) check_resume(setup, options);
    if (is_folder(options.data)) check_corpus(options.data, options.verify);
    const TrainConfig& t = setup.config.train;
    setup.windows.emplace(
        TokenSource::open(options.data, *setup.tokenizer, t.validation_fraction, setup.threads),
        static_cast<std::uint64_t>(t.seed), t.sequence);
    return setup;
}

void fill_batch(const RunSetup& setup, std::int64_t step, std::int64_t micro, Batch& work) {
    const TrainConfig& t = setup.config.train;
    work = Batch();
    std::vector<std::int32_t> inputs(static_cast<std::size_t>(t.sequence)), targets(inputs.size());
    for (std::int64_t b = 0; b < t.batch; b++) {
        std::int64_t index = (step * t.accumulate + micro) * t.batch + b;
        setup.windows->train_window(static_cast<std::uint64_t>(index), inputs, targets);
        work.add(inputs.data(), t.sequence, 0, b);
        work.targets.insert(work.targets.end(), targets.begin(), targets.end());
    }
    work.loss_scale = 1.0 / static_cast<double>(t.batch * t.sequence * t.accumulate);
    work.seed = static_cast<std::uint64_t>(t.seed);
    work.step = static_cast<std::uint64_t>(step * t.accumulate + micro);
    work.training = true;
}

bool fill_validation(const RunSetup& setup, std::int64_t i, std::int64_t batches, Batch& work) {
    const TrainConfig& t = setup.config.train;
    auto windows = static_cast<std::int64_t>(setup.windows->validation_windows());
    std::int64_t all = (windows + t.batch - 1) / t.batch;
    if (batches == 0 || batches > all) batches = all;
    if (i >= batches) return false;
    std::int64_t first = i * all / batches * t.batch;
    work = Batch();
    std::vector<std::int32_t> inputs(static_cast<std::size_t>(t.sequence)), targets(inputs.size());
    for (std::int64_t b = 0; b < t.batch && first + b < windows; b++) {
        setup.windows->validation_window(static_cast<std::uint64_t>(first + b), inputs, targets);
        work.add(inputs.data(), t.sequence, 0, b);
        work.targets.insert(work.targets.end(), targets.begin(), targets.end());
    }
    return true;
}

}  // namespace linnet
