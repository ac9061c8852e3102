// linnet merge: what it may not write over; what is said of an adapter that spoils a model.
#include <doctest/doctest.h>

#include <filesystem>

#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;

namespace {

namespace fs = std::filesystem;

/// m.gguf, and the folders of an adapter of it: a run's (a), PEFT's (a/hf).
struct Adapted : Workplace {
    Adapted() {
        fs::copy_file(tiny_model(), s / "m.gguf");
        const Outcome made = (*this)(
            "$LINNET finetune -m m.gguf --data text --lora 2 --steps 2 --threads 1 --save hf --out a");
        REQUIRE_MESSAGE(made.exit == 0, made.err);
    }
};

}  // namespace

TEST_CASE("merge writes over neither the adapters that it reads nor their model") {
    const Adapted place;
    place("ln -s m.gguf link.gguf");
    const std::string state = "find . -type f | sort | xargs sha256sum";
    const std::string before = place(state).out;
    for (const char* line : {"--lora a -o m.gguf", "--lora a -o link.gguf", "--lora a -o a/adapter.gguf",
                             "--lora a/adapter.gguf=0.5 -o ./a/../a/adapter.gguf",
                             "--lora a --lora a/hf -o a/hf/adapter_model.safetensors"}) {
        CAPTURE(line);
        const Outcome refused = place("$LINNET merge -m m.gguf --overwrite " + std::string(line));
        CHECK(refused.exit == 2);
        CHECK_MESSAGE(is_one_error_line(refused.err), refused.err);
        CHECK_MESSAGE(
            has(refused.err, "--out: expected another file than those of the model and its adapters, got"),
            refused.err);
        CHECK(place(state).out == before);
    }
    CHECK(place("$LINNET merge -m m.gguf --lora a -o a/merged.gguf").exit == 0);
    CHECK(place("$LINNET merge -m m.gguf --lora a -o a/merged.gguf --overwrite").exit == 0);
}

TEST_CASE("predictions that an adapter spoils are not laid at the model's weights alone") {
    const Adapted place;
    const Outcome spoiled = place("$LINNET eval -m m.gguf --lora a=1e9 --lora a=1e9 --file text --windows 2");
    CHECK(spoiled.exit == 3);
    CHECK_MESSAGE(is_one_error_line(spoiled.err), spoiled.err);
    CHECK_MESSAGE(has(spoiled.err,
                      "m.gguf with a/adapter.gguf and a/adapter.gguf: expected finite predictions, got some "
                      "that are not (an adapter's scale is too large"),
                  spoiled.err);
}
