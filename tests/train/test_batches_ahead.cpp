// Runs whose batches are prepared while the one before is learned.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/terminal.h"
#include "commands/tiny.h"
#include "data/labelled/png_made.h"
#include "model/small_models.h"
#include "support.h"
#include "train/kinds.h"
#include "train/needs.h"
#include "train/setup.h"
#include "train/step/learner.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// All that a batch holds.
nlohmann::json contents(const Batch& batch) {
    nlohmann::json all = {batch.tokens,     batch.targets,        batch.outputs,   batch.rows.positions,
                          batch.seed,       batch.step,           batch.training,  batch.rows.count,
                          batch.loss_scale, batch.sequence_scale, batch.step_share};
    auto add = [&](const Rows& rows) {
        for (const Segment& s : rows.segments) all.push_back({s.first, s.length, s.position, s.slot});
    };
    add(batch.rows);
    if (const Rows* source = batch.find_space("source")) add(*source);
    for (const char* name : {"segments", "next", "source", "masks", "originals", "draws", "given", "labels"})
        if (const auto* stream = batch.find_stream(name)) all.push_back(*stream);
    if (const auto* patches = batch.find_vectors("patches")) all.push_back(*patches);
    return all;
}

struct Quiet {
    bool before = quiet();
    Quiet() { set_quiet(true); }
    ~Quiet() { set_quiet(before); }
};

/// A run as it is before its first step, of these files in a folder.
RunSetup run_of(const Scratch& s, const std::vector<std::string>& data, std::vector<double> weights = {}) {
    const Quiet notes;
    TrainingOptions options;
    options.config_path = s / "config.json";
    options.set = {"train.steps=4", "train.precision=f32"};
    for (const std::string& name : data) options.data.inputs.push_back(s / name);
    options.data.weights = std::move(weights);
    options.out = s / "none";
    options.dry_run = true;
    options.threads = 1;
    return set_up(options);
}

/// That its batches are those that fill_batch makes, whatever is evaluated meanwhile.
void check_batches(const RunSetup& setup) {
    const TrainConfig& t = setup.config.train;
    std::vector<nlohmann::json> plain;
    for (std::int64_t n = 0; n < t.steps * t.accumulate; n++) {
        Batch batch;
        fill_batch(setup, n / t.accumulate, n % t.accumulate, batch);
        plain.push_back(contents(batch));
    }
    Batch held_out;
    REQUIRE(fill_validation(setup, 0, 0, 1, held_out));
    BatchesAhead batches = batches_of(setup);
    for (std::size_t n = 0; n < plain.size(); n++) {
        const Batch batch = batches.take(static_cast<std::int64_t>(n), t.steps * t.accumulate);
        Batch again;
        fill_validation(setup, 0, 0, 1, again);
        CHECK(contents(again) == contents(held_out));
        CHECK(contents(batch) == plain[n]);
    }
}

/// Sequences of six tokens; number `bad` cannot be had.
class SomeTask : public Task {
  public:
    SomeTask(const RunConfig& config, std::uint64_t bad, bool in_memory = true)
        : Task(config), bad_(bad), in_memory_(in_memory) {}
    void add(DataSplit, std::uint64_t index, Batch& batch) const override {
        added++;
        if (index == bad_) {
            refused = true;
            fail_input("some", std::to_string(index), "a sequence", "none");
        }
        std::int32_t ids[7];
        for (int i = 0; i < 7; i++) ids[i] = static_cast<std::int32_t>((3 * index + i * i) % 11);
        batch.add(ids, 6, 0, static_cast<std::int64_t>(batch.rows.segments.size()));
        batch.targets.insert(batch.targets.end(), ids + 1, ids + 7);
    }
    std::uint64_t held_out() const override { return 0; }
    std::uint64_t size(DataSplit) const override { return 100; }
    bool in_memory() const override { return in_memory_; }

    mutable std::atomic<bool> refused = false;
    mutable std::atomic<int> added = 0;

  private:
    std::uint64_t bad_;
    bool in_memory_;
};

}  // namespace

TEST_CASE("batches prepared ahead are those made in their step, of every kind of data") {
    for (const Kind& kind : kinds()) {
        CAPTURE(kind.name);
        const Place place(kind);
        const RunSetup setup = run_of(place.s, {kind.file});
        CHECK(setup.prepares_ahead());
        check_batches(setup);
    }
    Scratch s;
    std::string pictures = big_endian(0x803) + big_endian(60) + big_endian(8) + big_endian(8),
                labels = big_endian(0x801) + big_endian(60);
    for (int i = 0; i < 60 * 64; i++) pictures += static_cast<char>(i * i % 251);
    for (int i = 0; i < 60; i++) labels += static_cast<char>(i % 4);
    write_text(s / "a-images-idx3-ubyte", pictures);
    write_text(s / "a-labels-idx1-ubyte", labels);
    write_text(s / "config.json",
               R"({"model": {"kind": "encoder", "width": 16, "layers": 1, "heads": 2, "pooling": "first",
        "head": {"kind": "classes"}, "ffn": {"width": 32}, "image": {"width": 8, "height": 8, "patch": 4}},
        "train": {"batch": 4, "accumulate": 2, "augment": "shift-flip"}})");
    const RunSetup setup = run_of(s, {"a-images-idx3-ubyte"});
    CHECK(setup.prepares_ahead());
    check_batches(setup);
}

TEST_CASE("windows of next tokens, and whatever a mapped file holds, are made in their step") {
    Scratch s;
    write_text(s / "config.json", tiny_config());
    write_text(s / "one", counting_text());
    write_text(s / "two", "and " + counting_text());
    const RunSetup next = run_of(s, {"one", "two"}, {1, 3});
    CHECK_FALSE(next.prepares_ahead());
    check_batches(next);

    const Kind kind = kind_named("masked");
    const Place place(kind);
    REQUIRE(run_linnet({"tokenizer", "train", "--kind", "wordpiece", "--vocab-size", "300", "-o",
                        place.s / "t.json", place.data})
                .exit == 0);
    REQUIRE(run_linnet(
                {"corpus", "--no-end-tokens", "-t", place.s / "t.json", "-o", place.s / "corpus", place.data})
                .exit == 0);
    const RunSetup mapped = run_of(place.s, {"corpus"});
    REQUIRE(mapped.task);
    CHECK_FALSE(mapped.prepares_ahead());
}

TEST_CASE(
    "texts and examples with weights are in one step, whose loss is the mean over all that is learned") {
    Scratch s;
    write_text(
        s / "config.json",
        R"({"model": {"context": 32, "width": 16, "layers": 1, "heads": 2}, "tokenizer": {"kind": "char"},
                   "train": {"batch": 4, "accumulate": 2}})");
    write_text(s / "one", counting_text());
    std::string pairs;
    for (int i = 0; i < 60; i++)
        pairs +=
            R"({"prompt": "one two", "completion": " three)" + std::string(i % 3 ? " four" : "") + "\"}\n";
    write_text(s / "pairs.jsonl", pairs);
    const RunSetup mixed = run_of(s, {"one", "pairs.jsonl"}, {1, 3});
    CHECK(mixed.texts() == 2);
    CHECK_FALSE(mixed.prepares_ahead());
    for (std::int64_t step = 0; step < 4; step++) {
        std::int64_t learned = 0, rows = 0;
        double scale = 0;
        for (std::int64_t micro = 0; micro < 2; micro++) {
            Batch batch;
            fill_batch(mixed, step, micro, batch);
            learned += target_count(batch), rows += batch.rows.count;
            scale = batch.loss_scale;
        }
        CHECK(learned < rows);  // prompts are not
        CHECK(scale * static_cast<double>(learned) == doctest::Approx(1));
    }
    for (std::size_t part = 0; part < 2; part++) {
        Batch held_out;
        REQUIRE(fill_validation(mixed, part, 0, 1, held_out));
        CHECK((target_count(held_out) < held_out.rows.count) == (part == 1));
    }
}

TEST_CASE("what is learned in a step is counted once, however many micro-batches it has") {
    RunSetup setup;
    setup.config.model = config_with(11, {small_model});
    TrainConfig& t = setup.config.train;
    t.batch = 2, t.sequence = 6, t.accumulate = 3, t.steps = 2, t.precision = "f32";
    auto owned = std::make_unique<SomeTask>(setup.config, 1000, false);
    const SomeTask& task = *owned;
    setup.task = std::move(owned);
    BatchesAhead batches = batches_of(setup);
    for (std::int64_t n = 0; n < 6; n++) CHECK(batches.take(n, 6).loss_scale == 1.0 / 36);
    CHECK(task.added == 2 * (6 + 6));  // to be counted, and to be learned
}

TEST_CASE(
    "examples of one text are the bins that packing makes of them with the run's seed, in their order") {
    Scratch s;
    write_text(
        s / "config.json",
        R"({"model": {"context": 32, "width": 16, "layers": 1, "heads": 2}, "tokenizer": {"kind": "char"},
                   "train": {"batch": 3, "accumulate": 2, "seed": 5}})");
    std::string pairs;
    for (int i = 0; i < 60; i++)
        pairs += R"({"prompt": "one two)" + std::string(static_cast<std::size_t>(i % 7), 'o') +
                 R"(", "completion": " three"})" + "\n";
    write_text(s / "pairs.jsonl", pairs);
    const RunSetup setup = run_of(s, {"pairs.jsonl"});
    const TrainConfig& t = setup.config.train;
    const PackedTexts packed =
        RunData(setup.data).packed(*setup.tokenizer, nullptr, t.validation_fraction, 5, t.sequence, 1);
    CHECK(setup.texts() == 1);
    CHECK(setup.tokens(DataSplit::train) == packed.size(DataSplit::train));
    CHECK(setup.held_out(0) ==
          std::pair(packed.size(DataSplit::validation), packed.bytes(DataSplit::validation)));
    CHECK(setup.text_size.train_tokens == packed.bins(DataSplit::train) * 32);
    CHECK(held_out_line(setup) == packed.held_out_beginning(*setup.tokenizer));
    CHECK(text_positions(setup, 3).is_null());
    for (std::int64_t n = 0; n < 8; n++) {
        Batch batch, wanted;
        fill_batch(setup, n / 2, n % 2, batch);
        for (std::int64_t b = 0; b < 3; b++)
            packed.add(DataSplit::train, packed.train_bin(static_cast<std::uint64_t>(3 * n + b)), wanted);
        CHECK(batch.tokens == wanted.tokens);
        CHECK(batch.targets == wanted.targets);
    }
    check_batches(setup);
}

TEST_CASE("a batch ahead that cannot be had ends the run at its own step, not at the one before") {
    RunSetup setup;
    setup.config.model = config_with(11, {small_model});
    TrainConfig& t = setup.config.train;
    t.batch = 2, t.sequence = 6, t.accumulate = 1, t.steps = 9, t.precision = "f32";
    auto owned = std::make_unique<SomeTask>(setup.config, 5);  // of step 2
    const SomeTask& task = *owned;
    setup.task = std::move(owned);
    Learner learner(setup.config.model, setup.rows(), 1, 1, groups_of(t));
    BatchesAhead batches = batches_of(setup);
    for (std::int64_t step = 0; step < 2; step++) {
        CHECK(learn_step(setup, step, learner, batches).rows == 12);
        learner.update(t, step + 1);
    }
    for (int i = 0; i < 10'000 && !task.refused; i++)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    REQUIRE(task.refused);
    CHECK(has(refusal([&] { learn_step(setup, 2, learner, batches); }),
              "some: 5: expected a sequence, got none"));
}

TEST_CASE("what a run will need counts the batch that is prepared") {
    RunSetup setup;
    setup.config =
        read_run_config({{"model",
                          {{"kind", "encoder"},
                           {"width", 16},
                           {"layers", 1},
                           {"heads", 2},
                           {"head", {{"kind", "classes"}, {"classes", 2}}},
                           {"image", {{"width", 512}, {"height", 512}, {"channels", 3}, {"patch", 64}}}}},
                         {"train", {{"batch", 64}, {"precision", "f32"}}}},
                        "c", {});
    std::size_t bytes[2];
    for (const bool in_memory : {false, true}) {
        setup.task = std::make_unique<SomeTask>(setup.config, 1000, in_memory);
        bytes[in_memory] = memory_with_learner(setup, setup.config);
    }
    const double patches = 64.0 * 512 * 512 * 3 * sizeof(float);  // 192 MiB
    CHECK(static_cast<double>(bytes[1] - bytes[0]) == doctest::Approx(patches).epsilon(0.05));
}

TEST_CASE("a run that is stopped while batches are prepared ends saved, and goes on") {
    const Kind kind = kind_named("masked");
    const Place place(kind);
    const std::string train = "\"$LINNET\" --quiet train '" + place.s.path + "/config.json' --data '" +
                              place.data + "' --threads 2 --set train.precision=f32 ";
    const std::string folder = place.s / "out";
    const Outcome stopped = run_shell(
        train + "--out '" + folder + "' --steps 1000000 --set train.eval_every=100000 & p=$!\n" +
        "until ls '" + folder +
        "/checkpoints' 2>/dev/null | grep -q '^step-'; do sleep 0.01; done\nkill -TERM $p; wait $p");
    CHECK(stopped.exit == 143);
    CHECK_MESSAGE(stopped.err.empty(), stopped.err);
    const double reached = static_cast<double>(place.losses("out").size());
    CHECK(reached >= 10);
    const std::string more = std::to_string(static_cast<std::int64_t>(reached) + 7);
    REQUIRE(run_shell(train + "--out '" + folder + "' --resume --steps " + more).exit == 0);
    CHECK(place.losses("out").size() == static_cast<std::size_t>(reached) + 7);
}
