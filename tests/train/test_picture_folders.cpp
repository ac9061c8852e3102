// One's own pictures, from a folder to a name.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "data/labelled/png_made.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// 8 x 8 pixels in colours: the left half bright, or the right one.
std::string half(bool left, int number) {
    std::vector<std::uint8_t> pixels;
    for (int p = 0; p < 64; p++)
        for (int c = 0; c < 3; c++)
            pixels.push_back(
                static_cast<std::uint8_t>(((p % 8 < 4) == left ? 180 : 20) + (p * 7 + number * 13 + c) % 50));
    return png_of({8, 8, PNG_COLOR_TYPE_RGB, 8}, pixels);
}

}  // namespace

TEST_CASE("pictures are learned from a folder for each class, and PNG files named by the folders' names") {
    Scratch s;
    for (const bool left : {true, false}) {
        const std::string folder = s / (left ? "own/west \xE2\x86\x90" : "own/east");
        std::filesystem::create_directories(folder);
        for (int i = 0; i < 40; i++) write_text(folder + "/" + std::to_string(i) + ".png", half(left, i));
    }
    write_text(s / "config.json",
               R"({"model": {"kind": "encoder", "init_std": 0.2, "width": 16, "layers": 1, "heads": 2,
        "head": {"kind": "classes"}, "ffn": {"width": 32}, "image": {"width": 8, "height": 8, "channels": 3, "patch": 4}},
        "train": {"batch": 16, "steps": 60, "eval_every": 30, "checkpoint_every": 30, "optimizer": {"lr": 1e-2}, "schedule": {"warmup": 5}}})");
    const std::string own = s / "own", m = s / "m";
    auto train = [&](const std::string& out, const std::string& data, std::vector<std::string> more) {
        std::vector<std::string> all{"train", s / "config.json", "--data", data, "--out", out};
        all.insert(all.end(), more.begin(), more.end());
        return run_linnet(all);
    };
    const Outcome trained = train(m, own, {});
    REQUIRE_MESSAGE(trained.exit == 0, trained.err);
    CHECK(has(trained.err, "own: 80 pictures of 2 classes"));
    write_text(s / "new.png", half(true, 99));
    const Outcome named = run_linnet({"predict", "-m", m, "-f", s / "new.png", "--top", "2", "--json"});
    REQUIRE_MESSAGE(named.exit == 0, named.err);
    const auto top = nlohmann::json::parse(named.out)["top"];
    CHECK(top[0]["label"] == "west \xE2\x86\x90");
    CHECK(top[1]["label"] == "east");
    const auto told = nlohmann::json::parse(run_linnet({"eval", "-m", m, "--file", own, "--json"}).out);
    CHECK(told["pictures"] == 80);
    CHECK(told["accuracy"].get<double>() > 0.9);

    // A run goes on with its folder, which must hold the same pictures.
    CHECK(train(m, own, {"--resume", "--steps", "62"}).exit == 0);
    write_text(s / "own/east/one-more.png", half(false, 77));
    CHECK(train(m, own, {"--resume", "--steps", "64"}).exit == 5);
    // Those of another size are refused, made as large, or left out; a resumed run does what the first did.
    write_text(s / "own/east/small.png", png_of({1, 1, PNG_COLOR_TYPE_GRAY, 8}, {3}));
    const Outcome refused = train(s / "n", own, {});
    CHECK(refused.exit == 3);
    CHECK(has(refused.err,
              "own/east/small.png: size: expected 8 x 8 pixels of 3 channels, got 1 x 1 pixels of 3 "
              "channels (--resize changes it)"));
    CHECK(has(train(s / "n", own, {"--skip-bad", "--steps", "2"}).err, "1 bad one skipped: "));
    CHECK(train(s / "o", own, {"--resize", "--steps", "2"}).exit == 0);
    CHECK(run_linnet({"train", "--out", s / "o", "--resume", "--steps", "3"}).exit == 0);
    CHECK(run_linnet({"eval", "-m", m, "--file", own}).exit == 3);
    CHECK(run_linnet({"eval", "-m", m, "--file", own, "--resize"}).exit == 0);
    // The classes that a config names in number are as many as there are folders.
    CHECK(has(train(s / "q", own, {"--resize", "--set", "model.head.classes=3"}).err,
              "labels: expected 3, model.head.classes, got 2"));
    std::filesystem::create_directories(s / "other/north");
    write_text(s / "other/north/1.png", half(true, 1));
    CHECK(has(run_linnet({"eval", "-m", m, "--file", s / "other"}).err,
              "north: expected one of the model's classes"));
}
