// Manifests that cannot be are refused before anything is believed.
#include "train/checkpoint.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/sha256.h"
#include "support.h"

using namespace linnet;

TEST_CASE("a manifest whose counts or checksums cannot be is refused, and the key is named") {
    test::Scratch scratch;
    test::write_text(scratch / "model.gguf", "weights");
    test::write_text(scratch / "optimizer.bin", "moments");
    const nlohmann::json good = {
        {"step", 3},
        {"data", "sum"},
        {"log_bytes", 12},
        {"seconds", 1.5},
        {"config", {{"train", {{"optimizer", nlohmann::json::object()}}}}},
        {"sha256", {{"model.gguf", sha256("weights")}, {"optimizer.bin", sha256("moments")}}}};
    auto read = [&](const nlohmann::json& changes) {
        nlohmann::json manifest = good;
        manifest.merge_patch(changes);  // a null takes a key away
        test::write_text(scratch / "manifest.json", manifest.dump());
        try {
            return "step " + std::to_string(read_checkpoint(scratch.path).step);
        } catch (const Error& error) {
            CHECK(error.exit() == Exit::input);
            return std::string(error.what()).substr(scratch.path.size() + 1);
        }
    };
    CHECK(read(nlohmann::json::object()) == "step 3");
    CHECK(read({{"config", {{"train", 7}}}}) ==
          "manifest.json: config/train: expected an object, got other JSON");
    CHECK(read({{"config", nlohmann::json::array()}}) ==
          "manifest.json: config: expected an object, got other JSON");
    CHECK(read({{"step", 1e300}}) == "manifest.json: step: expected a count, got 1e+300");
    CHECK(read({{"step", UINT64_MAX}}) == "manifest.json: step: expected a count, got 18446744073709551615");
    CHECK(read({{"step", -1}}) == "manifest.json: step: expected a count, got -1");
    CHECK(read({{"log_bytes", nullptr}}) == "manifest.json: log_bytes: expected a count, got none");
    for (const char* file : {"model.gguf", "optimizer.bin"}) {
        CHECK(read({{"sha256", {{file, nullptr}}}}) ==
              "manifest.json: sha256: expected a checksum of " + std::string(file) + ", got none");
        CHECK(read({{"sha256", {{file, "00"}}}}).ends_with("(the checkpoint is damaged)"));
    }
    test::write_text(scratch / "generator.bin", "guesses");  // only some runs have one
    CHECK(read({{"sha256", {{"generator.bin", sha256("guesses")}}}}) == "step 3");
    CHECK(read({{"sha256", {{"generator.bin", "00"}}}}).ends_with("(the checkpoint is damaged)"));
    CHECK(read({{"sha256", nullptr}}) ==
          "manifest.json: sha256: expected a checksum of model.gguf, got none");
    CHECK(read({{"sha256", {{"other", "00"}}}}).find("expected model.gguf and optimizer.bin, got other") !=
          std::string::npos);
    CHECK(read({{"seconds", "x"}}) == "manifest.json: expected a checkpoint's manifest, got other JSON");
}
