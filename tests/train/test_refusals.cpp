// Configs, manifests and folders of runs that cannot be: each row is one, and the line that is said of it.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <filesystem>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/sha256.h"
#include "model/family_files.h"
#include "support.h"
#include "text/tokenizer.h"
#include "train/checkpoint.h"
#include "train/log.h"
#include "train/run_folder.h"
#include "train/run_model.h"
#include "train/start.h"
#include "train/task/config.h"

using namespace linnet;
using namespace std::string_literals;
using nlohmann::json;
using test::refusal;
using test::Scratch;
using test::write_text;

namespace {

namespace fs = std::filesystem;

/// The line of an Error of that exit code, without the folder before the file's name.
std::string said(const std::string& folder, Exit exit, const std::function<void()>& act) {
    const std::string line = refusal(act, exit);
    return line.starts_with(folder + "/") ? line.substr(folder.size() + 1) : line;
}

/// A checkpoint's folder, and what its manifest may say.
struct WrittenCheckpoint {
    Scratch s;
    json good = {{"step", 3},
                 {"data", "sum"},
                 {"log_bytes", 12},
                 {"seconds", 1.5},
                 {"config", {{"model", 7}, {"train", {{"optimizer", json::object()}}}}},
                 {"isa", "avx2"},
                 {"base", "print"},
                 {"read",
                  {{"inputs", {"a", "b"}},
                   {"format", "auto"},
                   {"field", "text"},
                   {"separator", ""},
                   {"invalid", "error"},
                   {"skip_bad", true}}},
                 {"evaluations", {{"step", 2}, {"loss", 1.5}, {"last_loss", 2.5}, {"since", 1}}},
                 {"texts", {{{"weight", 1}, {"sequences", 4}}}},
                 {"norms", {{"last", std::vector<double>(200, 1.0)}, {"skipped", 2}}},
                 {"sha256", {{"adapter.gguf", sha256("weights")}, {"optimizer.bin", sha256("moments")}}}};
    WrittenCheckpoint() {
        write_text(s / "adapter.gguf", "weights");
        write_text(s / "optimizer.bin", "moments");
    }
    Checkpoint read(const json& manifest) const {
        write_text(s / "manifest.json", manifest.dump());
        return read_checkpoint(s.path);
    }
    std::string refused(const json& manifest) const {
        return said(s.path, Exit::input, [&] { read(manifest); });
    }
};

}  // namespace

TEST_CASE("a run's config that contradicts itself is refused by the setting's name") {
    auto with = [](const json& more) {
        json model = {{"context", 16}, {"width", 8}, {"layers", 1}, {"heads", 2}};
        model.update(more);
        return json{{"model", model}};
    };
    const json plain = with(json::object()), encoder = with({{"kind", "encoder"}}),
               pairs = with({{"kind", "encoder-decoder"}}),
               picture = with({{"kind", "encoder"},
                               {"head", {{"kind", "classes"}}},
                               {"image", {{"width", 4}, {"height", 4}, {"patch", 2}}}});
    struct Row {
        json config;
        std::vector<std::string> settings;
        std::string says;
    };
    const std::string tuned =
        "finetune.model: expected a model to begin from, as other settings of finetune are given, got none";
    const Row rows[] = {
        {plain, {}, "accepted"},
        {plain,
         {"train.objective=pairs"},
         "train.objective: expected next, as model.kind is decoder, got pairs"},
        {pairs,
         {"train.objective=next"},
         "train.objective: expected pairs or spans, as model.kind is encoder-decoder, got next"},
        {pairs, {"train.objective=spans"}, "accepted"},
        {plain,
         {"train.steps=1000000000000", "train.accumulate=1048576"},
         "train.steps: expected at most 4.6e+18 tokens in all, got 1000000000000 steps of 2e+08"},
        {picture,
         {"model.image.channels=2"},
         "model.image.channels: expected 1 (grey) or 3 (colours), got 2"},
        {encoder,
         {"train.objective=next"},
         "train.objective: expected masked, as model.kind is encoder and model.head.kind tokens, got next"},
        {plain,
         {"train.objective=replaced"},
         "train.objective: expected next, as model.kind is decoder, got replaced"},
        {pairs,
         {"train.objective=replaced"},
         "train.objective: expected pairs or spans, as model.kind is encoder-decoder, got replaced"},
        {encoder, {"train.objective=replaced"}, "accepted"},
        {encoder,
         {"train.objective=replaced", "model.head.classes=3"},
         "model.head.classes: expected 2, as train.objective is replaced, got 3"},
        {encoder, {"train.objective=classes"}, "accepted"},
        {encoder, {"train.objective=tags"}, "accepted"},
        {picture,
         {"train.objective=masked"},
         "train.objective: expected classes, as model.kind is encoder and model.head.kind classes, got "
         "masked"},
        {plain, {"train.sequence=32"}, "train.sequence: expected at most model.context (16), got 32"},
        {picture, {"train.sequence=2"}, "train.sequence: expected 0, as a picture is read whole, got 2"},
        {picture, {}, "accepted"},
        {encoder,
         {"train.sequence=2"},
         "train.sequence: expected at least 3, as train.objective is masked, got 2"},
        {encoder,
         {"model.head.next=true"},
         "model.segments: expected at least 2, as model.head.next is true, got 0"},
        {encoder,
         {"model.head.next=true", "model.segments=2", "train.sequence=4"},
         "train.sequence: expected at least 5, as model.head.next is true, got 4"},
        {encoder, {"model.head.next=true", "model.segments=2", "train.sequence=5"}, "accepted"},
        {pairs,
         {"train.objective=spans", "train.sequence=2"},
         "train.sequence: expected at least 3, as train.objective is spans, got 2"},
        {pairs,
         {"train.objective=spans", "model.context=16777216", "train.sequence=16777216",
          "train.masked.share=0.5", "train.masked.length=1"},
         "train.sequence: expected at most 65536 spans, by train.masked, got 8388610"},
        {plain, {"finetune.layers=1"}, tuned},
        {plain, {"finetune.reset_layers=1"}, tuned},
        {plain, {"finetune.lora.rank=1"}, tuned},
        {plain, {"finetune.layer_decay=0.5"}, tuned},
        {plain, {"finetune.layers=1", "finetune.model=m"}, "accepted"},
        {plain,
         {"tokenizer.kind=file"},
         "tokenizer.file: expected a path, as tokenizer.kind is file, got none"},
        {plain,
         {"tokenizer.file=t", "tokenizer.kind=bpe"},
         "tokenizer.kind: expected file, as tokenizer.file is given, got bpe"},
        {plain, {"finetune.template=chatml"}, tuned},
        {plain, {"train.groups=some"}, "train.groups: expected a list of objects, as JSON, got 'some'"},
        {plain, {"train.groups="}, "train.groups: expected a list of objects, as JSON, got ''"},
        {plain, {"train.groups=[{]"}, "train.groups: expected a list of objects, as JSON, got '[{]'"},
        {plain,
         {"train.groups=" + std::string(200, '[')},
         "train.groups: expected a list of objects, as JSON, got JSON nested more than 100 deep"},
        {plain, {"train.groups=null"}, "train.groups: expected a list of objects, got null"},
        {plain, {"train.groups=\"some\""}, "train.groups: expected a list of objects, got string"},
        {plain,
         {R"(train.groups=[{"match":"*","lr":1},{"match":"a","match":"b"}])"},
         "train.groups: match: expected each key once, got a second one"},
        {plain, {"train.groups=[7]"}, "train.groups[0]: expected an object, got number"},
        {json{{"model", plain["model"]}, {"train", {{"groups", json::array({json{{"lr", 1}}})}}}},
         {},
         "train.groups[0].match: expected a pattern of parameters' names, as blk.*.attn_q.weight, got none"},
        {json::array(), {}, "top level: expected an object, got array"},
        {{{"train", 7}}, {}, "train: expected "},
    };
    for (const Row& row : rows) {
        const std::string line = refusal([&] { read_run_config(row.config, "c", row.settings); });
        CHECK_MESSAGE(line.starts_with((row.says == "accepted" ? "" : "c: ") + row.says), line);
    }
    CHECK(read_run_config(plain, "c", {}).train.sequence == 16);
    CHECK(read_run_config(encoder, "c", {"train.objective=tags"}).model.head.kind == "tags");
}

TEST_CASE("the special tokens of a vocabulary are those that its objective needs") {
    using Names = std::vector<std::string>;
    auto names = [](const std::string& objective, const std::string& kind = "bpe") {
        RunConfig c;
        c.train.objective = objective, c.tokenizer.kind = kind;
        c.train.sequence = 20, c.train.masked.share = 0.15, c.train.masked.length = 3;
        return special_tokens(c);
    };
    CHECK(names("next").empty());
    CHECK(names("masked") == Names{"<|endoftext|>", "[CLS]", "[SEP]", "[MASK]"});
    CHECK(names("masked", "wordpiece").empty());
    CHECK(names("replaced") == names("masked"));
    CHECK(names("classes") == Names{"<|endoftext|>", "[CLS]", "[SEP]"});
    CHECK(names("tags") == names("classes"));
    CHECK(names("pairs") == Names{"<|endoftext|>"});
    CHECK(names("spans") == Names{"<|endoftext|>", "<extra_id_0>", "<extra_id_1>", "<extra_id_2>"});
}

TEST_CASE("a manifest tells what a checkpoint is of") {
    WrittenCheckpoint written;
    const Scratch& s = written.s;
    json& good = written.good;
    Checkpoint state = written.read(good);
    CHECK(state.isa == "avx2");
    CHECK(state.base == "print");
    CHECK(state.inputs.inputs == std::vector<std::string>{"a", "b"});
    CHECK(state.inputs.called() == state.inputs.inputs);  // an older one has no names
    CHECK(state.inputs.weights.empty());
    CHECK(state.inputs.read.skip_bad);
    CHECK_FALSE(state.best_loss.any());  // the model that it knows of is not there
    CHECK(state.texts == good["texts"]);
    CHECK(state.outliers.norms().size() == OutlierGate::window);
    CHECK(state.outliers.skipped() == 2);
    CHECK(state.best.empty());
    write_text(s / "best.gguf", "best");
    good["read"]["weights"] = {1, 2};
    CHECK(written.read(good).best == s / "best.gguf");
    CHECK(written.read(good).best_loss.best_step() == 2);
    good["sha256"]["best.gguf"] = sha256("best");
    CHECK(written.read(good).best_sha256 == sha256("best"));
    write_text(s / "best.gguf", "b");
    CHECK(written.refused(good) == "best.gguf: sha256: expected " + sha256("best") + ", got " + sha256("b") +
                                       " (the checkpoint is damaged; without this file it goes on)");
    write_text(s / "best.gguf", "best");
    CHECK(written.read(good).inputs.weights == std::vector<double>{1, 2});
    good["read"]["weights"] = {1};  // which cannot be of two inputs
    CHECK(written.read(good).inputs.weights.empty());
}

TEST_CASE("a manifest that cannot be is refused by the place and what it says there") {
    const WrittenCheckpoint written;
    const std::string weights = "positive numbers, at most 1 000 000 000";
    const std::pair<std::string, std::string> changes[] = {
        {R"({"step": "3"})", "step: expected a count, got string"},
        {R"({"step": null})", "step: expected a count, got none"},
        {R"({"step": 9007199254740993})", "step: expected a count, got 9007199254740993"},
        {R"({"config": null})", "expected a checkpoint's manifest, got other JSON"},
        {R"({"data": 7})", "expected a checkpoint's manifest, got other JSON"},
        {R"({"read": 7})", "expected a checkpoint's manifest, got other JSON"},
        {R"({"read": {"weights": [1, -1]}})", "read/weights: expected " + weights + ", got -1"},
        {R"({"read": {"weights": [0, 1]}})", "read/weights: expected " + weights + ", got 0"},
        {R"({"read": {"weights": [1e300, 1]}})", "read/weights: expected " + weights + ", got 1e+300"},
        {R"({"read": {"weights": ["2", 1]}})", "expected a checkpoint's manifest, got other JSON"},
        {R"({"read": {"inputs": "a"}})", "expected a checkpoint's manifest, got other JSON"},
        {R"({"evaluations": {"loss": "x"}})", "expected a checkpoint's manifest, got other JSON"},
        {R"({"norms": 7})", "norms/skipped: expected a count, got none"},
        {R"({"norms": {"skipped": 1e30}})", "norms/skipped: expected a count, got 1e+30"},
        {R"({"norms": {"skipped": 4}})", "norms/skipped: expected at most the checkpoint's step, 3, got 4"},
        {R"({"norms": {"last": [1, -0.5]}})", "norms/last: expected norms, at least 0, got -0.5"},
        {R"({"norms": {"last": 7}})", "expected a checkpoint's manifest, got other JSON"},
        {R"({"evaluations": {"step": 1e300}})", "evaluations/step: expected a count, got 1e+300"},
        {R"({"evaluations": {"step": 4}})",
         "evaluations/step: expected at most the checkpoint's step, 3, got 4"},
        {R"({"evaluations": {"since": 4294967297}})",
         "evaluations/since: expected at most the checkpoint's step, 3, got 4294967297"},
        {R"({"evaluations": {"loss": -1}})", "evaluations/loss: expected a loss, at least 0, got -1"},
        {R"({"evaluations": {"last_loss": -0.1}})",
         "evaluations/last_loss: expected a loss, at least 0, got -0.1"},
        {R"({"evaluations": 7})", "evaluations/step: expected a count, got none"},
        {R"({"seconds": 1e308})", "seconds: expected a time of training, got 1e+308"},
        {R"({"seconds": 4e9})", "seconds: expected a time of training, got 4000000000.0"},
        {R"({"seconds": -1})", "seconds: expected a time of training, got -1"},
        {R"({"sha256": {"model.gguf": "00"}})",
         "sha256: expected adapter.gguf and optimizer.bin, got model.gguf"},
        {R"({"sha256": 7})", "sha256: expected an object, got number"},
    };
    for (const auto& [change, says] : changes) {
        json damaged = written.good;
        damaged.merge_patch(json::parse(change));
        CHECK(written.refused(damaged) == "manifest.json: " + says);
    }
    CHECK(written.refused(json::array()) == "manifest.json: step: expected a count, got none");
    json most = written.good;
    most.merge_patch(json::parse(R"({"step": 7, "seconds": 3e9, "read": {"weights": [1e9, 1e-9]},
        "norms": {"skipped": 7, "last": [0]}, "evaluations": {"step": 7, "loss": 0, "last_loss": 0}})"));
    CHECK(written.read(most).inputs.weights == std::vector<double>{1e9, 1e-9});
}

TEST_CASE("of a folder's names only a checkpoint's own count, and what it cannot hold is refused") {
    const WrittenCheckpoint written;
    const Scratch& s = written.s;
    std::string newest;
    const std::string misnamed = s / "misnamed/step-00000009/";
    fs::create_directories(misnamed);
    for (const char* name : {"adapter.gguf", "optimizer.bin"}) fs::copy_file(s / name, misnamed + name);
    write_text(misnamed + "manifest.json", written.good.dump());
    CHECK(said(s.path, Exit::input, [&] { read_newest_checkpoint(s / "misnamed", newest); }) ==
          "misnamed/step-00000009/manifest.json: step: expected that of the folder's name, got 3");
    CHECK(said(s.path, Exit::diverged, [&] { read_newest_checkpoint(s / "none", newest); }) ==
          "none: expected a checkpoint, got none");
    write_text(s / "best.gguf", "best");
    CHECK(said(s.path, Exit::io, [&] { link_or_copy(s / "no-such", s / "to"); }) ==
          "no-such: No such file or directory");
    CHECK(said(s.path, Exit::io, [&] { link_or_copy(s / "best.gguf", s / "none/to"); }) ==
          "none/to: No such file or directory");
    fs::create_directories(s / "folder");
    CHECK(said(s.path, Exit::io, [&] { link_or_copy(s / "best.gguf", s / "folder"); }) ==
          "folder: Is a directory");
    // Of names in the folder only a checkpoint's own counts; one that was exchanged goes where the new one
    // stands.
    const std::string all = s / "checkpoints";
    for (const char* name : {"notes", "step-1", "step-00000004", ".replaced-step-00000004",
                             ".replaced-step-00000003", ".partial-step-00000009"})
        fs::create_directories(all + "/" + name);
    write_text(all + "/step-00000007", "a file");
    CHECK(newest_checkpoint(all) == all + "/step-00000004");
    remove_partial_checkpoints(all);
    for (const char* name : {"notes", "step-1", "step-00000003", "step-00000004", "step-00000007"})
        CHECK(fs::exists(all + "/" + name));
    CHECK(std::distance(fs::directory_iterator(all), fs::directory_iterator()) == 5);
}

TEST_CASE("a log that cannot be opened or written is refused with the system's reason") {
    Scratch s;
    CHECK(said(s.path, Exit::io, [&] { RunLog log(s / "none/log.jsonl", 0, false); }) ==
          "none/log.jsonl: No such file or directory");
    CHECK(said(s.path, Exit::io, [&] { RunLog log("/dev/full", 0, false); }) ==
          "/dev/full: Invalid argument");
    const auto lowest_free = [] { return Descriptor(::open("/dev/null", O_RDONLY)).fd; };
    const int before = lowest_free();
    CHECK_THROWS_AS(RunLog("/dev/full", 0, false), Error);
    CHECK(lowest_free() == before);  // it is closed
    write_text(s / "log", "kept\ncut");
    { RunLog log(s / "log", 5, false); }
    CHECK(test::read_text(s / "log") == "kept\n");
}

TEST_CASE("what a run cannot begin from a model with is refused by setting, tensor or vocabulary") {
    Scratch s;
    for (const char* name : {"llama-grouped", "llama-one-bias", "llama-factors"})
        test::write_family_file(test::family_file(name), s / name);
    struct Row {
        const char* model;
        json config;
        std::vector<std::string> settings;
        std::string says;
        Exit exit = Exit::input;
    };
    const json none = json::object();
    const std::string plain = "llama-grouped";
    const Row rows[] = {
        {"llama-grouped", none, {}, "accepted"},
        {"llama-grouped", json::array(), {}, "c: top level: expected an object, got array"},
        {"llama-grouped", {{"finetune", 7}}, {}, "c: finetune: expected "},
        {"llama-grouped", {{"model", 7}}, {}, "c: model: expected "},
        {"llama-grouped",
         none,
         {"tokenizer.kind=bpe"},
         "--set: tokenizer.kind: expected no setting of the tokenizer, got one (a run from a model keeps its "
         "vocabulary)",
         Exit::usage},
        {"llama-grouped",
         none,
         {"finetune.layers=4"},
         "c: finetune.layers: expected at most the model's 3, got 4"},
        {"llama-grouped",
         none,
         {"finetune.layers=1", "finetune.reset_layers=2"},
         "c: finetune.reset_layers: expected at most finetune.layers, as others are not trained, got 2"},
        {"llama-grouped",
         none,
         {"finetune.lora.rank=1", "finetune.reset_layers=1"},
         "c: finetune.reset_layers: expected 0 with an adapter, which cannot hold whole layers, got 1"},
        {"llama-grouped",
         none,
         {"finetune.lora.dropout=0.1"},
         "c: finetune.lora.rank: expected a rank, as other settings of an adapter are given, got 0 (--lora "
         "R)"},
        {"llama-one-bias", none, {}, "llama-one-bias: blk."},
        {"llama-one-bias", none, {"finetune.lora.rank=1"}, "accepted"},
    };
    for (const Row& row : rows) {
        TrainingStart start;
        const std::string line = said(s.path, row.exit, [&] {
            open_base(s / row.model, start), begin_from(s / row.model, row.config, "c", row.settings, start);
        });
        CHECK_MESSAGE(line.starts_with(row.says), line);
    }
    TrainingStart start;
    open_base(s / "llama-factors", start);
    begin_from(s / "llama-factors", none, "c", {}, start);
    const auto& parameters = start.base->traced().graph.parameters();
    for (std::size_t i = 0; i < parameters.size(); i++)
        CHECK(start.learner.own[i].trained == !parameters[i].name.starts_with("rope_f"));
    require_vocabulary(start, start.base->tokenizer(), "data");
    const TokenizerPtr other = train_tokenizer("char", "abc", 0, 1);
    CHECK(said(s.path, Exit::input, [&] { require_vocabulary(start, *other, "data"); }) ==
          "data: tokenizer: expected the vocabulary of " + (s / "llama-factors") +
              ", got another (linnet corpus -t MODEL makes a corpus for it)");
}

TEST_CASE("a run's folder is refused by what is found in it, and a run that was set aside comes back") {
    Scratch s;
    CHECK(said(s.path, Exit::diverged, [&] { RunFolder run(s / "none", RunStart::resume); }) ==
          "none: expected a folder of a run to resume, got no such folder");
    write_text(s / "file", "");
    CHECK(said(s.path, Exit::diverged, [&] { RunFolder run(s / "file", RunStart::resume); }) ==
          "file: expected a folder of a run to resume, got a file");
    fs::create_directories(s / "empty");
    CHECK(said(s.path, Exit::diverged, [&] { RunFolder run(s / "empty", RunStart::resume); }) ==
          "empty: expected a checkpoint to resume from, got none (without --resume a run begins)");
    for (const std::string name : {"checkpoints", "log.jsonl", "mine.gguf", "model.safetensors"}) {
        const std::string folder = s / ("with-" + name);
        fs::create_directories(folder);
        write_text(folder + "/notes.txt", "");
        CHECK(said(s.path, Exit::usage, [&] { RunFolder run(folder, RunStart::fresh); }) == "accepted");
        name == "checkpoints" ? void(fs::create_directories(folder + "/" + name))
                              : write_text(folder + "/" + name, "old");
        CHECK(said(s.path, Exit::usage, [&] { RunFolder run(folder, RunStart::fresh); }) ==
              "with-" + name + ": expected a folder without a model, a checkpoint or a log, got " + name +
                  " (--overwrite replaces it)");
    }
    const std::string folder = s / "with-log.jsonl";
    {
        RunFolder run(folder, RunStart::overwrite);
        run.begin();
        CHECK_FALSE(fs::exists(folder + "/log.jsonl"));
        write_text(folder + "/log.jsonl", "new");
    }
    CHECK(test::read_text(folder + "/log.jsonl") == "old");  // no checkpoint came
    {
        RunFolder run(folder, RunStart::overwrite);
        run.begin();
        write_text(folder + "/log.jsonl", "new");
        run.settle();
    }
    CHECK(test::read_text(folder + "/log.jsonl") == "new");
    fs::create_directories(folder + "/checkpoints");
    {
        RunFolder run(folder, RunStart::overwrite);
        run.begin();
        write_text(folder + "/model.gguf", "new");  // of a name that the old run has not
    }
    CHECK_FALSE(fs::exists(folder + "/model.gguf"));
    CHECK(fs::exists(folder + "/checkpoints"));
    // A run that was killed between the two: without a checkpoint the old one is back, with one it goes.
    for (bool checkpoint : {false, true}) {
        fs::create_directories(folder + "/" + set_aside);
        write_text(folder + "/" + set_aside + "/log.jsonl", "old");
        if (checkpoint) fs::create_directories(folder + "/checkpoints/step-00000001");
        { RunFolder run(folder, RunStart::overwrite); }
        CHECK_FALSE(fs::exists(folder + "/" + set_aside));
        CHECK(test::read_text(folder + "/log.jsonl") == "old");
    }
    // Putting it back was broken off: checkpoints are the last to be moved.
    fs::create_directories(folder + "/" + set_aside + "/checkpoints/step-00000001");
    for (const char* name : {"config.json", "model.gguf"}) write_text(folder + "/" + name, "old");
    write_text(folder + "/" + set_aside + "/log.jsonl", "old");
    fs::remove_all(folder + "/checkpoints");
    { RunFolder run(folder, RunStart::overwrite); }
    CHECK(fs::exists(folder + "/checkpoints/step-00000001"));
    for (const char* name : {"config.json", "model.gguf", "log.jsonl"})
        CHECK(test::read_text(folder + "/" + name) == "old");
}

TEST_CASE(
    "a path of a run stands for its best model, its newest checkpoint's, or that of the run it replaces") {
    Scratch s;
    const std::string run = s / "run";
    auto file = [&](const std::string& name) {
        fs::create_directories(fs::path(run + "/" + name).parent_path());
        write_text(run + "/" + name, "");
        return run + "/" + name;
    };
    CHECK(model_of_run("") == "");
    CHECK(model_of_run(run) == run);
    fs::create_directories(run);
    CHECK(model_of_run(run) == run);
    CHECK(adapter_of_run(run) == run);
    CHECK(adapter_of_run("a.gguf") == "a.gguf");
    CHECK(tokenizer_of_run("a.json") == "a.json");
    file("log.jsonl");
    CHECK(refusal([&] { model_of_run(run); }) ==
          run + ": expected a model, or a run that has one, got a run before its first evaluation");
    const std::string old_adapter = file(std::string(set_aside) + "/adapter.gguf");
    CHECK(adapter_of_run(run) == old_adapter);
    const std::string old = file(std::string(set_aside) + "/checkpoints/step-00000007/model.gguf");
    CHECK(model_of_run(run) == old);
    fs::create_directories(run + "/checkpoints/step-00000003");
    CHECK(model_of_run(run) == old);  // that one has none
    const std::string newest = file("checkpoints/step-00000003/adapter.gguf");
    CHECK(adapter_of_run(run) == newest);
    CHECK(refusal([&] { model_of_run(run); }) ==
          run +
              ": expected a model, or a run that has one, got a run that trained an adapter (-m names the "
              "model that it began from, --lora this folder)");
    const std::string best = file("model.gguf");
    CHECK(model_of_run(run) == best);
    CHECK(tokenizer_of_run(run) == best);
    file("tokenizer.json");
    CHECK(tokenizer_of_run(run) == run);  // as a Hugging Face folder, with what lies beside it
}

TEST_CASE("the model that a run begins from is named by the last setting, or by the config") {
    CHECK(start_model(json(), {}).empty());
    CHECK(start_model({{"finetune", 7}}, {}).empty());
    CHECK(start_model({{"finetune", {{"model", 7}}}}, {}).empty());
    const json named = {{"finetune", {{"model", "a"}}}};
    CHECK(start_model(named, {"train.steps=1"}) == "a");
    CHECK(start_model(named, {"finetune.model=b", "finetune.model=c"}) == "c");
    CHECK(start_model(named, {"finetune.model="}).empty());
}

TEST_CASE("of several settings of a key the last one counts, and no longer key is taken for it") {
    const std::vector<std::string> settings = {"train.batch=1", "train.batch=2=3", "train.batch_size=4"};
    CHECK(last_setting(settings, "train.batch") == "2=3");
    CHECK(last_setting(settings, "train.bat") == std::nullopt);
    CHECK(last_setting({"train.batch="}, "train.batch") == "");
    CHECK(last_setting({"train.batch"}, "train.batch") == std::nullopt);
}
