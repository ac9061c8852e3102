// Encoders that tell masked and replaced tokens, classes and tags, as a user trains and uses them.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/sha256.h"
#include "commands/records.h"
#include "formats/gguf.h"
#include "support.h"
#include "train/kinds.h"

using namespace linnet;
using namespace linnet::test;

TEST_CASE("encoders fill masks, name classes and tags, and make vectors") {
    Place masked(kind_named("masked")), classes(kind_named("classes")), tags(kind_named("tags"));
    REQUIRE(masked.train("m", 60).exit == 0);
    const std::string m = masked.s / "m";
    CHECK(has(run_linnet({"inspect", m + "/model.gguf"}).out, "bert"));
    Outcome filled = run_linnet({"predict", "-m", m, "-p", "one two [MASK]. three", "--top", "2"});
    REQUIRE_MESSAGE(filled.exit == 0, filled.err);
    CHECK(std::count(filled.out.begin(), filled.out.end(), '\n') == 1);
    auto record = nlohmann::json::parse(run_linnet({"predict", "-m", m, "-p", "[MASK] two", "--json"}).out);
    CHECK(record["masks"][0]["top"].size() == 5);
    CHECK(has(run_linnet({"predict", "-m", m, "-p", "one two"}).err, "line 1: expected a text with [MASK]"));
    CHECK(has(run_linnet({"eval", "-m", m, "--file", masked.data}).out, "accuracy"));
    Outcome vectors = run_linnet({"embed", "-m", m, "-p", "one two\nthree"});
    REQUIRE_MESSAGE(vectors.exit == 0, vectors.err);
    std::istringstream numbers(vectors.out);
    double square = 0, x = 0;
    for (int i = 0; i < 32 && numbers >> x; i++) square += x * x;
    CHECK(square == doctest::Approx(1).epsilon(1e-3));
    CHECK(run_linnet({"embed", "-m", m, "-p", "one", "-o", masked.s / "v.npy"}).exit == 0);
    const std::string npy = read_text(masked.s / "v.npy");
    CHECK(npy.starts_with("\x93NUMPY"));
    CHECK(npy.size() == 128 + 32 * 4);
    CHECK(has(npy, "'shape': (1, 32)"));
    CHECK(has(run_linnet({"embed", "-m", m, "-p", std::string(400, 'x') + " one two three"}).out +
                  run_linnet({"embed", "-m", m, "-p",
                              "one two three four five six seven eight nine one two three "
                              "four five six seven eight nine one two three four five six "
                              "seven eight nine one two three four five six"})
                      .err,
              "--truncate"));

    REQUIRE(classes.train("m", 20).exit == 0);
    auto named = nlohmann::json::parse(
        run_linnet({"predict", "-m", classes.s / "m", "-p", "one five", "--top", "2", "--json"}).out);
    CHECK(named["top"].size() == 2);
    CHECK(named["top"][0]["probability"].get<double>() + named["top"][1]["probability"].get<double>() ==
          doctest::Approx(1));
    CHECK((named["top"][0]["label"] == "odd" || named["top"][0]["label"] == "even"));
    CHECK(has(run_linnet({"eval", "-m", classes.s / "m", "--file", classes.data}).out, "examples 1000"));
    write_text(classes.s / "bad.tsv", "one\tneither\n");
    CHECK(has(run_linnet({"eval", "-m", classes.s / "m", "--file", classes.s / "bad.tsv"}).err,
              "line 1: label: expected one of the model's classes, got 'neither'"));

    REQUIRE(tags.train("m", 80).exit == 0);
    const std::string tagged = run_linnet({"predict", "-m", tags.s / "m", "-p", "seven two three"}).out;
    CHECK(has(tagged, "seven/"));
    CHECK(has(tagged, " three/"));
    const std::string more =
        run_linnet({"predict", "-m", tags.s / "m", "-p", "seven two three", "--top", "2"}).out;
    CHECK(more.starts_with("seven  "));
    CHECK(has(more, "\ntwo  "));
    CHECK(std::count(more.begin(), more.end(), '\n') == 3);
    CHECK(has(run_linnet({"eval", "-m", tags.s / "m", "--file", tags.data}).out, "accuracy"));
}

TEST_CASE("an encoder under projected keys is trained, measured, quantized and asked as any other") {
    Place place(kind_named("masked under projected keys"));
    const Outcome trained = place.train("m", 20);
    REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    const std::string m = place.s / "m", small = place.s / "q.gguf";
    CHECK(has(run_linnet({"inspect", m + "/model.gguf"}).out, "architecture linnet"));
    CHECK(has(run_linnet({"inspect", m + "/model.gguf", "--check"}).out, "all weights are finite"));
    CHECK(has(run_linnet({"inspect", "graph", "-m", m}).out, "blk.1.attn.v.projected"));
    CHECK(has(run_linnet({"eval", "-m", m, "--file", place.data}).out, "accuracy"));
    CHECK(run_linnet({"predict", "-m", m, "-p", "one two [MASK]. three"}).exit == 0);
    CHECK(run_linnet({"quantize", m + "/model.gguf", small, "--type", "q8_0"}).exit == 0);
    const Outcome both = run_linnet({"embed", "-m", small, "-p", "one two three four five six\nseven"}),
                  one = run_linnet({"embed", "-m", small, "-p", "seven"});
    REQUIRE_MESSAGE(both.exit == 0, both.err);
    CHECK(both.out.ends_with("\n" + one.out));
    // Its matrices are unpacked in training, too.
    const Outcome adapted =
        run_linnet({"finetune", "-m", small, "--data", place.data, "--out", place.s / "adapted", "--lora",
                    "2", "--steps", "3", "--set", "train.batch=4"});
    CHECK_MESSAGE(adapted.exit == 0, adapted.err);
    CHECK(run_linnet({"inspect", place.s / "adapted/adapter.gguf", "--check"}).exit == 0);
    const Outcome maps = run_linnet({"inspect", "attention", "-m", m, "-p", "one two"});
    CHECK(maps.exit == 3);
    CHECK_MESSAGE(has(maps.err, "expected a model with attention between tokens"), maps.err);
    // With a generator, which has matrices of its own.
    Place replaced(kind_named("replaced"));
    const Outcome beside = replaced.train("m", 4, set({"model.attention.projected=8"}));
    CHECK_MESSAGE(beside.exit == 0, beside.err);
}

TEST_CASE("in bf16 an encoder under projected keys is the same file for any number of threads") {
    Place place(kind_named("masked under projected keys"));
    for (const char* threads : {"1", "3"}) {
        const Outcome trained =
            place.train(threads, 12, {"--threads", threads, "--set", "train.precision=bf16"});
        REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    }
    CHECK(place.hash("1") == place.hash("3"));
    CHECK(place.losses("1") == place.losses("3"));
    CHECK(place.losses("1").back() < place.losses("1").front());
}

TEST_CASE("inspect attention says how many layers of projected keys it leaves out") {
    Place masked(kind_named("masked")), pairs(kind_named("pairs"));
    std::vector<std::string> one = set({"model.layers=3"}), none = one;
    one.insert(one.end(), {"--set", "model.attention.projected=[0,8,0]"});
    none.insert(none.end(), {"--set", "model.mixer=[\"attention\",\"lstm\",\"attention\"]", "--set",
                             "model.attention.projected=[0,8,0]"});
    const std::string left = "left out, as their keys are projected (model.attention.projected): ";
    auto looked = [](const Place& place, const std::string& out, const std::vector<std::string>& more) {
        const Outcome trained = place.train(out, 1, more);
        REQUIRE_MESSAGE(trained.exit == 0, trained.err);
        return run_linnet({"inspect", "attention", "-m", place.s / out, "-p", "1"});
    };
    const Outcome some = looked(masked, "some", one);
    CHECK(some.exit == 0);
    CHECK(has(some.out, "blk.0.attn"));
    CHECK_FALSE(has(some.out, "blk.1.attn"));
    CHECK_MESSAGE(has(some.err, left + "1 of 3 layers\n"), some.err);
    // Of an LSTM the key says nothing.
    const Outcome all = looked(masked, "all", none);
    CHECK(all.exit == 0);
    CHECK_FALSE(has(all.err, left));
    const Outcome side = looked(pairs, "side", set({"model.attention.projected=4"}));
    CHECK_MESSAGE(has(side.err, left + "2 of 2 layers of the encoder\n"), side.err);
}

TEST_CASE("an encoder-decoder's encoder may project its keys, and answers are written") {
    Place place(kind_named("pairs"));
    const Outcome trained = place.train("m", 10, set({"model.attention.projected=4"}));
    REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    const Outcome told = run_linnet({"generate", "-m", place.s / "m", "-p", "421", "-n", "20"});
    CHECK_MESSAGE(told.exit == 0, told.err);
}

TEST_CASE("replaced tokens are told beside a generator that the model's file knows nothing of") {
    const Kind kind = kind_named("replaced");
    Place place(kind);
    const Outcome trained = place.train("m", 60, {"--threads", "1"});
    REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    const std::vector<double> losses = place.losses("m");
    CHECK(losses.back() < 0.8 * losses.front());
    const std::string log = read_text(place.s / "m/log.jsonl");
    std::vector<double> guessing;
    for (const nlohmann::json& step : records(log, "step")) guessing.push_back(step["generator_loss"]);
    CHECK(guessing.back() < 0.9 * guessing.front());
    const nlohmann::json eval = records(log, "eval").back(), told = records(log, "confusion").back();
    CHECK(eval["generator_loss"].get<double>() < guessing.front());
    CHECK(has(trained.err, "step 60 of 60"));
    CHECK_FALSE(has(trained.err, "; model.gguf is of step"));  // the newest
    CHECK(told["labels"] == nlohmann::json{"original", "replaced"});
    std::int64_t rows = 0, replaced = 0;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            const auto count =
                told["counts"][static_cast<std::size_t>(i)][static_cast<std::size_t>(k)].get<std::int64_t>();
            rows += count, replaced += i * count;
        }
    CHECK(rows == eval["tokens"]);
    CHECK(replaced > 0);
    CHECK(replaced < rows * 15 / 100);  // what was drawn is sometimes what stood there
    CHECK(has(read_text(place.s / "m/report.html"), "Loss of the generator"));

    const std::string m = place.s / "m";
    CHECK_FALSE(has(run_linnet({"inspect", m + "/model.gguf"}).out, "gen."));
    const Outcome named = run_linnet({"predict", "-m", m, "-p", "one two nine"});
    REQUIRE_MESSAGE(named.exit == 0, named.err);
    CHECK((has(named.out, "one/original/") || has(named.out, "one/replaced/")));
    CHECK(run_linnet({"embed", "-m", m, "-p", "one two"}).exit == 0);
    // Computed again for backward, it is the same.
    REQUIRE(place.train("again", 60, {"--set", "train.recompute=blocks", "--threads", "3"}).exit == 0);
    CHECK(place.losses("again") == losses);
    // A checkpoint has the generator, and a resume keeps it.
    const std::string kept = place.s / "m/checkpoints/step-00000060/";
    CHECK(std::filesystem::file_size(kept + "generator.bin") > 0);
    const Outcome wider = place.train("m", 80, {"--resume", "--set", "train.replaced.generator=0.5"});
    CHECK(wider.exit == 5);
    CHECK(has(wider.err, "train.replaced: expected null, got {\"generator\":0.5}"));
    CHECK(place.train("m", 62, {"--resume"}).exit == 0);
    // And a run may begin from the model: the generator is new.
    write_text(place.s / "from.json", R"({"train": {"objective": "replaced", "batch": 8, "steps": 5,
        "eval_batches": 2, "schedule": {"warmup": 1}}})");
    const Outcome from = run_linnet(
        {"train", place.s / "from.json", "--from", m, "--data", place.data, "--out", place.s / "from"});
    REQUIRE_MESSAGE(from.exit == 0, from.err);
    CHECK(place.losses("from").front() < 0.8 * losses.front());
    CHECK(run_linnet({"predict", "-m", place.s / "from", "-p", "one two"}).exit == 0);
}

TEST_CASE("a model that was told what follows goes on in every way that one of masks does") {
    Place place(kind_named("masked with pairs"));
    const Outcome trained = place.train("m", 30);
    REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    CHECK_FALSE(has(trained.err, "GGUF has no name"));
    const std::string log = read_text(place.s / "m/log.jsonl"), m = place.s / "m";
    for (const nlohmann::json& step : records(log, "step")) {
        CHECK(step["next_loss"].get<double>() > 0);
        CHECK(step["next_loss"].get<double>() < 5);
    }
    const double accuracy = records(log, "eval").back()["next_accuracy"];
    CHECK(accuracy >= 0);
    CHECK(accuracy <= 1);
    const auto told =
        nlohmann::json::parse(run_linnet({"eval", "-m", m, "--file", place.data, "--json"}).out);
    CHECK(told["next_accuracy"].get<double>() > 0.2);
    CHECK(run_linnet({"eval", "-m", m, "--file", place.data, "--ctx", "4"}).exit == 2);
    CHECK(run_linnet({"predict", "-m", m, "-p", "one two [MASK]. three"}).exit == 0);
    CHECK(run_linnet({"embed", "-m", m, "-p", "one two"}).exit == 0);
    CHECK(run_linnet({"inspect", "graph", "-m", m}).exit == 0);
    CHECK(run_linnet({"inspect", "graph", "-m", m, "--training"}).exit == 0);
    CHECK(run_linnet({"quantize", m + "/model.gguf", place.s / "q.gguf", "--type", "q8_0"}).exit == 0);
    CHECK(run_linnet({"predict", "-m", place.s / "q.gguf", "-p", "one two [MASK]. three"}).exit == 0);
    // Further training has the form of the model.
    write_text(place.s / "more.json",
               R"({"train": {"batch": 4, "steps": 3, "eval_every": 0, "sequence": 16}})");
    auto from = [&](const std::string& out, std::vector<std::string> more) {
        std::vector<std::string> line{"train", place.s / "more.json", "--from", m, "--data", place.data,
                                      "--out", place.s / out};
        line.insert(line.end(), more.begin(), more.end());
        return run_linnet(line);
    };
    const Outcome further = from("further", {});
    REQUIRE_MESSAGE(further.exit == 0, further.err);
    CHECK(has(read_text(place.s / "further/log.jsonl"), "next_accuracy"));
    CHECK(from("adapted", {"--set", "finetune.lora.rank=2"}).exit == 0);
    CHECK(from("last", {"--set", "finetune.layers=1"}).exit == 0);
    CHECK(has(from("none", {"--set", "model.head.next=false"}).err, "model.head.next: expected true, as "));
}

TEST_CASE("whether a text follows another is learned where stretches of it differ") {
    Scratch s;
    std::string text;
    for (int stretch = 0; stretch < 500; stretch++)  // each of three words that others have not
        for (int i = 0; i < 100; i++)
            text += words_of_number((stretch * 7 % 3 * 3 + (i * i + stretch) % 3) % 9) + " ";
    write_text(s / "data.txt", text);
    write_text(
        s / "config.json",
        R"({"model": {"kind": "encoder", "context": 24, "width": 32, "layers": 1, "heads": 4, "segments": 2, "head": {"next": true}},
        "tokenizer": {"kind": "wordpiece", "vocab_size": 300},
        "train": {"batch": 16, "steps": 300, "eval_every": 300, "precision": "f32", "optimizer": {"lr": 5e-3}, "schedule": {"warmup": 20}}})");
    const Outcome trained =
        run_linnet({"train", s / "config.json", "--data", s / "data.txt", "--out", s / "m"});
    REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    // A third of the stretches from elsewhere are of the same words.
    CHECK(records(read_text(s / "m/log.jsonl"), "eval").back()["next_accuracy"].get<double>() > 0.7);
}

TEST_CASE("an encoder of masked tokens starts taggers and classifiers") {
    Place masked(kind_named("masked with pairs")), classes(kind_named("classes")), tags(kind_named("tags"));
    const Scratch& s = masked.s;
    REQUIRE(masked.train("m", 20).exit == 0);
    auto start = [&](const std::string& objective, const std::string& out, std::vector<std::string> more,
                     bool tagged = true) {
        write_text(s / (out + ".json"),
                   R"({"train": {"batch": 8, "steps": 20, "checkpoint_every": 8, "objective": ")" +
                       objective + R"("}})");
        std::vector<std::string> line{"train",  s / (out + ".json"),
                                      "--from", s / "m",
                                      "--data", tagged ? tags.data : classes.data,
                                      "--out",  s / out};
        line.insert(line.end(), more.begin(), more.end());
        return run_linnet(line);
    };
    auto tensors = [&](const std::string& file) {
        std::map<std::string, std::string> all;
        const Gguf gguf(s / file);
        for (const GgufTensor& t : gguf.tensors())
            all[std::string(t.name)] =
                sha256({reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size()});
        return all;
    };
    const auto base = tensors("m/model.gguf");

    Outcome whole = start("tags", "whole", {});
    REQUIRE_MESSAGE(whole.exit == 0, whole.err);
    CHECK(has(run_linnet({"predict", "-m", s / "whole", "-p", "seven two three"}).out, "seven/"));
    CHECK(has(run_linnet({"eval", "-m", s / "whole", "--file", tags.data}).out, "accuracy"));
    CHECK(tensors("whole/last.gguf").at("token_embd.weight") != base.at("token_embd.weight"));
    // A run that was broken off ends as this one, from checkpoints that stand beside no base's file.
    std::filesystem::copy(s / "whole", s / "part", std::filesystem::copy_options::recursive);
    std::filesystem::remove(s / "part/last.gguf");
    std::filesystem::path newest;
    for (const auto& entry : std::filesystem::directory_iterator(s / "part/checkpoints"))
        newest = std::max(newest, entry.path());
    std::filesystem::remove_all(newest);
    write_text(s / "part.json", read_text(s / "whole.json"));
    Outcome rest = start("tags", "part", {"--resume"});
    REQUIRE_MESSAGE(rest.exit == 0, rest.err);
    CHECK(tensors("part/last.gguf") == tensors("whole/last.gguf"));

    // Only the head: all else is as it was, bit by bit; the layer that told pairs begins the classes' own.
    Outcome head = start("classes", "head",
                         {"--set", "finetune.head=true", "--set", "model.head.transform=true"}, false);
    REQUIRE_MESSAGE(head.exit == 0, head.err);
    const auto of_head = tensors("head/last.gguf");
    std::set<std::string>
        contents;  // bert's names of norms are others than those of a file that tells classes
    for (const auto& [name, hash] : base) contents.insert(hash);
    for (const auto& [name, hash] : of_head)
        if (!name.starts_with("cls")) CHECK_MESSAGE(contents.contains(hash), name);
    CHECK(of_head.size() > 20);
    CHECK(of_head.contains("cls.weight"));
    CHECK(of_head.at("cls.output.weight") != base.at("cls.output.weight"));
    CHECK(has(run_linnet({"predict", "-m", s / "head", "-p", "one five"}).out, "odd") !=
          has(run_linnet({"predict", "-m", s / "head", "-p", "one five"}).out, "even"));

    Outcome last = start("tags", "last", {"--set", "finetune.layers=1", "--set", "finetune.reset_layers=1"});
    REQUIRE_MESSAGE(last.exit == 0, last.err);
    const auto of_last = tensors("last/last.gguf");
    CHECK(of_last.at("blk.0.attn_q.weight") == base.at("blk.0.attn_q.weight"));
    CHECK(of_last.at("blk.1.attn_q.weight") != base.at("blk.1.attn_q.weight"));

    const std::pair<std::vector<std::string>, std::string> refusals[] = {
        {{"finetune.lora.rank=2"},
         "finetune.lora.rank: expected 0, as an adapter cannot hold the new head, got 2"},
        {{"finetune.head=true", "finetune.layers=1"},
         "finetune.layers: expected 0, as finetune.head is true, got 1"},
        {{"model.width=64"}, "model.width: expected 32, as "},
        {{"model.head.classes=2"}, "labels: expected 2, model.head.classes"},
    };
    for (const auto& [settings, says] : refusals) {
        std::vector<std::string> more;
        for (const std::string& setting : settings) more.insert(more.end(), {"--set", setting});
        const Outcome refused = start("tags", "refused", more);
        CHECK(refused.exit == 3);
        CHECK_MESSAGE(has(refused.err, says), refused.err);
        CHECK_FALSE(std::filesystem::exists(s / "refused/model.gguf"));
    }
}

TEST_CASE("a schedule is chosen for a masked encoder from steps on its own data") {
    const Kind kind = kind_named("masked");
    Place place(kind);
    const Outcome made = place.train("base", 1);
    REQUIRE_MESSAGE(made.exit == 0, made.err);
    const Outcome tuned = run_linnet({"finetune", "-m", place.s / "base", "--data", place.data, "--out",
                                      place.s / "tuned", "--time", "1s", "--dry-run"});
    CHECK_MESSAGE(tuned.exit == 0, tuned.err);
}
