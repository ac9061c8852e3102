// Encoders, encoder–decoders and pictures, as a user trains and uses them.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/sha256.h"
#include "commands/records.h"
#include "commands/text_input.h"
#include "data/labelled/lines.h"
#include "data/labelled/png_made.h"
#include "support.h"
#include "train/kinds.h"

using namespace linnet;
using namespace linnet::test;

TEST_CASE("experts stand on both sides of an encoder-decoder, and Muon takes the matrices of both") {
    const Kind kind = kind_named("pairs");
    Place place(kind);
    const std::vector<std::string> more{"--set", "model.experts.count=4",    "--set", "model.experts.used=2",
                                        "--set", "model.ffn.gated=true",     "--set", "model.ffn.bias=false",
                                        "--set", "train.optimizer.kind=muon"};
    auto with = [&](const char* threads) {
        std::vector<std::string> all = more;
        all.insert(all.end(), {"--threads", threads});
        return all;
    };
    const Outcome one = place.train("one", 10, with("1"));
    REQUIRE_MESSAGE(one.exit == 0, one.err);
    CHECK(place.train("three", 10, with("3")).exit == 0);
    CHECK(place.hash("one") == place.hash("three"));
    CHECK(run_linnet({"generate", "-m", place.s / "one", "-p", "421", "-n", "20"}).exit == 0);
    const auto blocks = records(read_text(place.s / "one/log.jsonl"), "blocks").at(0)["names"];
    CHECK(std::count(blocks.begin(), blocks.end(), "enc.blk.0") == 1);
    CHECK(std::count(blocks.begin(), blocks.end(), "dec.blk.0") == 1);
}

TEST_CASE("every kind learns, and its run is the same for any number of threads and when it was broken off" *
          doctest::test_suite("long")) {
    for (const Kind& kind : kinds()) {
        CAPTURE(kind.name);
        Place place(kind);
        Outcome whole = place.train("whole", kind.steps, {"--threads", "1"});
        REQUIRE_MESSAGE(whole.exit == 0, whole.err);
        const std::vector<double> losses = place.losses("whole");
        double first = 0, last = 0;
        for (std::size_t i = 0; i < 5; i++) first += losses[i], last += losses[losses.size() - 1 - i];
        CHECK(last < 0.9 * first);
        // A step depends on how many there will be: the schedule's end. So the run is stopped, not shortened.
        REQUIRE(place.train("other", kind.steps, {"--threads", "3"}).exit == 0);
        CHECK(place.hash("other") == place.hash("whole"));
        namespace fs = std::filesystem;
        fs::copy(place.s / "whole", place.s / "cut", fs::copy_options::recursive);
        std::vector<fs::path> checkpoints;
        for (const auto& entry : fs::directory_iterator(place.s / "cut/checkpoints"))
            checkpoints.push_back(entry.path());
        std::sort(checkpoints.begin(), checkpoints.end());
        REQUIRE(checkpoints.size() == 2);
        fs::remove_all(checkpoints.back());
        fs::remove(place.s / "cut/last.gguf");
        Outcome resumed = place.train("cut", kind.steps, {"--resume"});
        REQUIRE_MESSAGE(resumed.exit == 0, resumed.err);
        CHECK(place.hash("cut") == place.hash("whole"));
        CHECK(place.losses("cut") == losses);
    }
}

TEST_CASE("bench train times the steps of every kind on its data, and says which kinds need some") {
    for (const Kind& kind : kinds()) {
        CAPTURE(kind.name);
        Place place(kind);
        const std::string config = place.s / "config.json";
        const Outcome timed = run_linnet({"bench", "train", config, "--data", place.data, "--steps", "1",
                                          "--threads", "1", "--profile", "--json", "--quiet"});
        REQUIRE_MESSAGE(timed.exit == 0, timed.err);
        const auto record = nlohmann::json::parse(timed.out);
        CHECK(record["tokens_per_s"] > 0);
        CHECK(record["flops_per_s"] > 0);
        CHECK(record["profile"].size() > 4);
        if (!has(kind.config, "encoder")) continue;
        const Outcome bare = run_linnet({"bench", "train", config, "--steps", "1"});
        CHECK(bare.exit == 3);
        CHECK(has(bare.err, "--data"));
        CHECK(run_linnet({"bench", "train", config, "--data", place.data, "--vocabulary", "9"}).exit == 2);
    }
}

TEST_CASE("a model of pairs answers its sources, many together as one by one, and by beams") {
    const Kind kind = kind_named("pairs");
    Place place(kind);
    REQUIRE(place.train("m", 300, {"--set", "model.dropout=0"}).exit == 0);
    write_text(place.s / "sources", "17\n421\n9\n88\n305\n");
    const std::string m = place.s / "m", sources = place.s / "sources";
    Outcome all = run_linnet({"generate", "-m", m, "-f", sources, "--temp", "0", "--parallel", "3"});
    REQUIRE_MESSAGE(all.exit == 0, all.err);
    CHECK(std::count(all.out.begin(), all.out.end(), '\n') == 5);
    CHECK(run_linnet({"generate", "-m", m, "-p", "421", "--temp", "0"}).out + "nine\n" !=
          all.out);  // one line alone
    std::istringstream lines(all.out);
    std::string line;
    for (const char* source : {"17", "421", "9", "88", "305"}) {
        std::getline(lines, line);
        CHECK(run_linnet({"generate", "-m", m, "-p", source, "--temp", "0"}).out == line + "\n");
    }
    Outcome beams = run_linnet({"generate", "-m", m, "-f", sources, "--beams", "4", "--json"});
    REQUIRE_MESSAGE(beams.exit == 0, beams.err);
    auto first = nlohmann::json::parse(beams.out.substr(0, beams.out.find('\n')));
    CHECK(first["source"] == "17");
    CHECK(first["score"].get<double>() < 0);
    CHECK(run_linnet({"generate", "-m", m, "-f", sources, "--beams", "4", "--json", "--threads", "1"}).out ==
          beams.out);
    CHECK(run_linnet({"generate", "-m", m, "-f", sources, "--samples", "2", "--seed", "3"}).exit == 0);
    Outcome score = run_linnet({"eval", "-m", m, "--file", place.data, "--windows", "50", "--json"});
    REQUIRE_MESSAGE(score.exit == 0, score.err);
    auto told = nlohmann::json::parse(score.out);
    CHECK(told["sources"] == 50);
    CHECK(told["char_error"].get<double>() < 1);
    CHECK(told["exact"].get<double>() <= 1);
    // All answers of a source are accepted, however few sources are asked for; other lines may lie between.
    const std::string answer(lines_of(all.out)[0]);
    write_text(place.s / "two.tsv", "17\tno\n9\tnine\n17\t" + answer + "\n");
    told = nlohmann::json::parse(
        run_linnet({"eval", "-m", m, "--file", place.s / "two.tsv", "--windows", "1", "--json"}).out);
    CHECK(told["exact"] == 1);
    // Samples of a source read it once, and are what they are alone.
    const std::vector<std::string> sampled{"generate",  "-m", m,        "-f", sources,
                                           "--samples", "3",  "--seed", "5"};
    auto one_by_one = sampled;
    one_by_one.insert(one_by_one.end(), {"--parallel", "1"});
    CHECK(run_linnet(sampled).out == run_linnet(one_by_one).out);
    CHECK(run_linnet({"generate", "-m", m, "-p", "1", "--echo"}).exit == 2);
    CHECK(run_linnet({"quantize", m + "/model.gguf", place.s / "q.gguf", "--type", "q8_0", "--pure",
                      "--importance", sources, "--ctx", "8"})
              .exit == 0);
    const Outcome looked = run_linnet({"inspect", "attention", "-m", m, "-p", "421", "--json"});
    REQUIRE_MESSAGE(looked.exit == 0, looked.err);
    CHECK(has(looked.out, R"("path":"enc.blk.0.attn")"));
    CHECK(has(looked.out, R"("path":"dec.blk.0.cross")"));
    REQUIRE(run_linnet({"inspect", "attention", "-m", m, "-p", "421", "--html", place.s / "a.html"}).exit ==
            0);
    for (const char* title :
         {"Encoder, layer 1<", "Decoder, layer 1<", "Decoder, layer 1, looking at the source<"})
        CHECK_MESSAGE(has(read_text(place.s / "a.html"), title), title);
    write_text(place.s / "long", std::string(40, '1') + "\n");
    Outcome longer = run_linnet({"generate", "-m", m, "-f", place.s / "long"});
    CHECK(longer.exit == 3);
    CHECK(has(longer.err, "long: line 1: expected 1 to 32 tokens, the model's context, got 40"));
    CHECK(run_linnet({"generate", "-m", m, "-p", "1", "--beams", "2", "--samples", "2"}).exit == 2);
    CHECK(has(run_linnet({"inspect", "logits", "-m", m, "-p", "1"}).err, "its answers need a source"));
    CHECK(run_linnet({"inspect", "graph", "-m", m}).exit == 0);
    CHECK(run_linnet({"inspect", "graph", "-m", m, "--check", "-p", "12"}).exit == 0);
}

TEST_CASE("an LSTM answers its sources through additive attention, many together as one by one") {
    const Kind kind = kind_named("answers of an LSTM that looks at its source");
    Place place(kind);
    REQUIRE(place.train("m", 150, {"--set", "model.dropout=0", "--set", "train.optimizer.lr=1e-2"}).exit ==
            0);
    const std::string m = place.s / "m", sources = place.s / "sources";
    write_text(sources, "17\n421\n9\n88\n305\n");
    const Outcome all = run_linnet({"generate", "-m", m, "-f", sources, "--temp", "0", "--parallel", "3"});
    REQUIRE_MESSAGE(all.exit == 0, all.err);
    CHECK_MESSAGE(has(all.out, "four two one\n"), all.out);
    std::istringstream lines(all.out);
    std::string line;
    for (const char* source : {"17", "421", "9", "88", "305"}) {
        std::getline(lines, line);
        CHECK(run_linnet({"generate", "-m", m, "-p", source, "--temp", "0"}).out == line + "\n");
    }
    CHECK(run_linnet({"generate", "-m", m, "-f", sources, "--beams", "3"}).exit == 0);
    const Outcome looked = run_linnet({"inspect", "attention", "-m", m, "-p", "421", "--json"});
    CHECK(has(looked.out, R"("path":"dec.blk.1.cross")"));
    CHECK(run_linnet({"inspect", "graph", "-m", m, "--check", "-p", "12"}).exit == 0);
}

TEST_CASE("an evaluation tells what each class and tag was taken for, and as often rightly as eval finds") {
    for (const Kind& kind : {kind_named("classes"), kind_named("tags")}) {
        CAPTURE(kind.name);
        Place place(kind);
        const Outcome trained = place.train(
            "m", 20, {"--set", "train.eval_batches=1000", "--set", "train.validation_fraction=0.2"});
        REQUIRE_MESSAGE(trained.exit == 0, trained.err);
        CHECK(has(trained.err, ", accuracy "));
        const std::string log = read_text(place.s / "m/log.jsonl");
        const nlohmann::json eval = records(log, "eval").back(), told = records(log, "confusion").back();
        CHECK(told["step"] == eval["step"]);
        REQUIRE(told["counts"].size() == told["labels"].size());
        std::int64_t right = 0, rows = 0;
        for (std::size_t i = 0; i < told["counts"].size(); i++) {
            REQUIRE(told["counts"][i].size() == told["labels"].size());
            right += told["counts"][i][i].get<std::int64_t>();
            for (const nlohmann::json& count : told["counts"][i]) rows += count.get<std::int64_t>();
        }
        CHECK(rows == eval["tokens"]);
        const double accuracy = static_cast<double>(right) / static_cast<double>(rows);
        CHECK(eval["accuracy"].get<double>() == doctest::Approx(accuracy).epsilon(1e-5));
        std::string held;
        for (const std::string_view line : lines_of(kind.data))
            if (held_out({std::string(line.substr(0, line.find('\t'))), {}, {}}, 0.2))
                held += std::string(line) + "\n";
        write_text(place.s / "held.tsv", held);
        const auto found = nlohmann::json::parse(
            run_linnet({"eval", "-m", place.s / "m/last.gguf", "--file", place.s / "held.tsv", "--json"})
                .out);
        CHECK(found["accuracy"].get<double>() == doctest::Approx(accuracy).epsilon(1e-5));
        CHECK(has(read_text(place.s / "m/report.html"), "What was taken for what"));
    }
    Place masked(kind_named("masked"));
    REQUIRE(masked.train("m", 2).exit == 0);
    CHECK_FALSE(has(read_text(masked.s / "m/log.jsonl"), "accuracy"));
}

TEST_CASE("pictures are learned from IDX files and named from PGM files") {
    Scratch s;
    std::string pictures = big_endian(0x803) + big_endian(300) + big_endian(8) + big_endian(8),
                labels = big_endian(0x801) + big_endian(300);
    for (int i = 0; i < 300; i++) {  // a bright quarter, by its place
        for (int p = 0; p < 64; p++) {
            const bool here = (p / 8 < 4) == (i % 4 < 2) && (p % 8 < 4) == (i % 2 == 0);
            pictures += static_cast<char>((here ? 150 : 20) + (p * 7 + i * 13) % 50);
        }
        labels += static_cast<char>(i % 4);
    }
    write_text(s / "a-images-idx3-ubyte", pictures);
    write_text(s / "a-labels-idx1-ubyte", labels);
    write_text(
        s / "config.json",
        R"({"model": {"kind": "encoder", "init_std": 0.2, "width": 16, "layers": 1, "heads": 2, "pooling": "first",
        "head": {"kind": "classes"}, "ffn": {"width": 32}, "image": {"width": 8, "height": 8, "patch": 4}},
        "train": {"batch": 16, "steps": 300, "eval_every": 150, "augment": "none", "optimizer": {"lr": 1e-2}, "schedule": {"warmup": 10}}})");
    const std::string data = s / "a-images-idx3-ubyte", m = s / "m";
    Outcome trained = run_linnet({"train", s / "config.json", "--data", data, "--out", m});
    REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    auto told = nlohmann::json::parse(run_linnet({"eval", "-m", m, "--file", data, "--json"}).out);
    CHECK(told["accuracy"].get<double>() > 0.9);
    CHECK(told["pictures"] == 300);
    write_text(s / "p.pgm", "P5 8 8 255 " + pictures.substr(16 + 64 * 2, 64));
    Outcome named = run_linnet({"predict", "-m", m, "-f", s / "p.pgm"});
    CHECK_MESSAGE(named.out.starts_with("2 "), named.out << named.err);
    write_text(s / "p.pgm", "P5 4 4 255 " + pictures.substr(16, 16));
    CHECK(run_linnet({"predict", "-m", m, "-f", s / "p.pgm"}).exit == 3);
    CHECK(run_linnet({"predict", "-m", m, "-f", s / "p.pgm", "--resize"}).exit == 0);
    CHECK(has(run_linnet({"embed", "-m", m, "-p", "a"}).err, "linnet predict serves pictures"));
    CHECK(has(run_linnet(
                  {"train", s / "config.json", "--data", data, "--out", s / "n", "--set", "train.sequence=2"})
                  .err,
              "train.sequence: expected 0, as a picture is read whole"));
    // In shifted windows, with merged patches (Swin): the same bits for any number of threads.
    const std::vector<std::string> swin{
        "train", s / "config.json",           "--data",  data,
        "--set", "model.image.patch=1",       "--set",   "model.layers=3",
        "--set", "model.image.window=4",      "--set",   "model.image.shift=[0,2,0]",
        "--set", "model.image.merge=[0,0,1]", "--set",   "model.head_width=8",
        "--set", "model.pooling=mean",        "--steps", "120"};
    for (const char* threads : {"1", "3"}) {
        std::vector<std::string> all = swin;
        all.insert(all.end(), {"--out", s / (std::string("swin") + threads), "--threads", threads});
        const Outcome windows = run_linnet(all);
        REQUIRE_MESSAGE(windows.exit == 0, windows.err);
    }
    CHECK(sha256(read_text(s / "swin1/last.gguf")) == sha256(read_text(s / "swin3/last.gguf")));
    told = nlohmann::json::parse(run_linnet({"eval", "-m", s / "swin1", "--file", data, "--json"}).out);
    CHECK(told["accuracy"].get<double>() > 0.9);
    // A class of which there was no picture has a name, too.
    CHECK(run_linnet({"train", s / "config.json", "--data", data, "--out", s / "five", "--steps", "2",
                      "--set", "model.head.classes=5"})
              .exit == 0);
    const auto five = nlohmann::json::parse(
        run_linnet({"predict", "-m", s / "five", "-f", s / "p.pgm", "--resize", "--top", "5", "--json"}).out);
    CHECK(five["top"].size() == 5);
    for (const char* way : {"shift", "flip", "shift-flip"})
        CHECK(run_linnet({"train", s / "config.json", "--data", data, "--out", m, "--overwrite", "--steps",
                          "3", "--set", std::string("train.augment=") + way})
                  .exit == 0);
    write_text(s / "b-images-idx3-ubyte", pictures);
    write_text(s / "b-labels-idx1-ubyte", labels);
    auto both = [&] {
        return run_linnet({"train", s / "config.json", "--data", data, "--data", s / "b-images-idx3-ubyte",
                           "--out", s / "n", "--dry-run"});
    };
    CHECK(both().exit == 0);
    write_text(s / "b-images-idx3-ubyte",
               big_endian(0x803) + big_endian(300) + big_endian(4) + big_endian(16) + pictures.substr(16));
    CHECK(has(both().err,
              "b-images-idx3-ubyte: size: expected that of the first file's pictures, got another"));
    CHECK(has(run_linnet({"train", s / "config.json", "--data", data, "--out", s / "n", "--set",
                          "model.image.width=12"})
                  .err,
              "size: expected 12 x 8, model.image's, got 8 x 8"));
    write_text(s / "a-labels-idx1-ubyte", big_endian(0x801) + big_endian(2) + "ab");
    CHECK(has(run_linnet({"train", s / "config.json", "--data", data, "--out", s / "n"}).err,
              "count: expected 300, as there are pictures, got 2"));
}

TEST_CASE("configs and data that contradict a kind are refused by name, and nothing is written") {
    auto refused = [](const Kind& kind, const std::string& setting, const std::string& part) {
        Place place(kind);
        Outcome outcome = place.train("m", 2, {"--set", setting});
        CHECK_MESSAGE(outcome.exit == 3, setting);
        CHECK_MESSAGE(has(outcome.err, part), outcome.err);
        CHECK_FALSE(std::filesystem::exists(place.s / "m/model.gguf"));
    };
    refused(kind_named("masked"), "train.objective=pairs",
            "train.objective: expected masked, as model.kind is encoder");
    refused(kind_named("masked"), "model.decoder_layers=4",
            "model.decoder_layers: expected 0, as model.kind is encoder");
    refused(kind_named("masked"), "tokenizer.kind=byte", "vocabulary: expected a mask token");
    refused(kind_named("pairs"), "model.segments=2",
            "model.segments: expected 0, as model.kind is encoder-decoder");
    refused(kind_named("pairs"), "model.residual.kind=parallel", "model.residual.kind: expected sequential");
    refused(kind_named("pairs"), "tokenizer.kind=byte", "vocabulary: expected an end token");
    refused(kind_named("pairs"), "model.start_token=999", "model.start_token: expected an id below");
    refused(kind_named("pairs"), "train.sequence=4", "data.tsv: line");
    refused(kind_named("masked"), "train.sequence=2",
            "train.sequence: expected at least 3, as train.objective is masked");
    refused(kind_named("spans"), "train.sequence=2",
            "train.sequence: expected at least 3, as train.objective is spans");
    refused(kind_named("replaced"), "tokenizer.kind=byte",
            "a mask token, [MASK] or <mask>, for train.objective replaced, got none");
    refused(kind_named("replaced"), "train.sequence=2",
            "train.sequence: expected at least 3, as train.objective is replaced");
    refused(kind_named("replaced"), "model.head.classes=3",
            "model.head.classes: expected 2, as train.objective is replaced, got 3");
    refused(kind_named("replaced"), "train.replaced.generator=0", "train.replaced.generator: expected");
    refused(kind_named("replaced"), "train.replaced.generator=1.5", "train.replaced.generator: expected");
    refused(kind_named("masked with pairs"), "model.segments=1",
            "model.segments: expected at least 2, as model.head.next is true");
    refused(kind_named("masked with pairs"), "train.sequence=4",
            "train.sequence: expected at least 5, as model.head.next is true");
    refused(kind_named("tags"), "model.head.classes=2", "labels: expected 2, model.head.classes");
    refused(kind_named("classes"), "model.image.width=8", "model.image.patch: expected a positive number");
    Kind bad = kind_named("pairs");
    bad.data += "no tab here\n";
    Place place(bad);
    CHECK(has(place.train("m", 2).err, "line 1001: expected a source, a tab, a target, got no tab"));
    Outcome skipped = place.train("m", 2, {"--skip-bad"});
    CHECK(skipped.exit == 0);
    CHECK(has(skipped.err, "1 bad one skipped"));
    Outcome longer = place.train("n", 2, {"--skip-bad", "--set", "train.sequence=16"});
    CHECK(longer.exit == 0);
    CHECK(has(longer.err, " left out: longer than train.sequence (16 tokens), or empty; the first: "));
    CHECK(has(place.train("o", 2, {"--skip-bad", "--set", "train.sequence=3"}).err,
              "expected an example of at most train.sequence tokens, all in the vocabulary, got none"));
    Kind one = kind_named("pairs");
    one.data = "1\tone\n";
    CHECK(has(Place(one).train("m", 2, {"--set", "train.validation_fraction=0.9"}).err,
              "expected an example to train on, got all of them held out"));
    // Fields decide what is learned: a resumed run keeps them.
    const std::string both = R"({"source": "1", "target": "one", "other": "un"})";
    std::string lines;
    for (int i = 0; i < 50; i++) lines += both + "\n";
    write_text(place.s / "d.jsonl", lines);
    auto fields = [&](const std::string& names, const std::string& resume) {
        return run_linnet({"train", place.s / "config.json", "--data", place.s / "d.jsonl", "--fields", names,
                           "--out", place.s / "f", "--steps", "4", "--set", "train.checkpoint_every=2",
                           resume});
    };
    CHECK(fields("source,other", "--overwrite").exit == 0);
    CHECK(fields("source,target", "--resume").exit == 5);
    CHECK(fields("source,other", "--resume").exit == 0);
}
