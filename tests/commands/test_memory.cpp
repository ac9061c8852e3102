// Memory that cannot be had: one line, the code of the operating system's refusals, and nothing half made.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "commands/tiny.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

// Sanitizers map terabytes, and a program that counts what ran (make coverage) writes that at its end.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(LINNET_COUNTED)

TEST_CASE("a command that cannot have its memory says so in one line, and leaves nothing half made") {
    Workplace place;
    write_text(place.s / "config", tiny_config());
    std::filesystem::copy_file(tiny_model(), place.s / "m.gguf");
    REQUIRE(place("$LINNET tokenizer train --vocab-size 270 -o t.json text").exit == 0);
    const char* const lines[] = {"corpus -t t.json --threads 2 --overwrite -o out/c text",
                                 "train config --data text --steps 1 --threads 2 --overwrite --out out/r",
                                 "tokenizer train --vocab-size 270 --overwrite -o out/x.json text",
                                 "tokenize -t t.json text",
                                 "generate -m m.gguf -p one -n 2 --threads 2",
                                 "convert m.gguf out/hf --overwrite",
                                 "quantize m.gguf out/x.gguf --type q8_0 --overwrite"};
    for (const char* line : lines) {
        int done = 0;
        for (int kib : {20'000, 28'000, 36'000, 44'000, 52'000, 60'000, 250'000}) {
            INFO(std::string(line));
            CAPTURE(kib);
            const Outcome outcome = place("ulimit -v " + std::to_string(kib) + "; $LINNET --quiet " + line);
            if (outcome.exit == 127) continue;  // not even the libraries had room
            if (outcome.exit == 0) {
                done++;
                continue;
            }
            CHECK(outcome.exit == 4);
            CHECK_MESSAGE(is_one_error_line(outcome.err), outcome.err);
            CHECK_MESSAGE((has(outcome.err, "memory") || has(outcome.err, "thread")), outcome.err);
        }
        INFO(std::string(line));
        CHECK(done > 0);
    }
}

TEST_CASE("training that has too little memory says what for, and how much it needs in all") {
    Workplace place;
    write_text(place.s / "config", tiny_config());
    const Outcome outcome = place(
        "ulimit -v 1000000; $LINNET --quiet train config --data text --steps 1 --threads 1 --out out "
        "--set model.width=4096 --set model.heads=32 --set model.layers=8");
    CHECK(outcome.exit == 4);
    CHECK_MESSAGE(is_one_error_line(outcome.err), outcome.err);
    CHECK_MESSAGE(has(outcome.err, "memory: weights and gradients: expected "), outcome.err);
    CHECK_MESSAGE(has(outcome.err, "the task needs about "), outcome.err);
}

TEST_CASE("tokenize reads stdin in parts: the tokens of the whole, and memory that does not grow") {
    Workplace place;
    REQUIRE(place("$LINNET tokenizer train --vocab-size 270 -o t.json text").exit == 0);
    // 24 MB in 52 MB of addresses, of which the program and its libraries take a half.
    place("yes 'one two three four five' | head -c 24000000 > much");
    for (const char* format : {"ids", "jsonl"}) {
        INFO(std::string(format));
        const std::string line = std::string("$LINNET tokenize -t t.json --threads 1 --format ") + format;
        const std::string sum = " | sed 's/\"file\":\"[^\"]*\"//' | sha256sum";
        const Outcome parts = place("(ulimit -v 52000; " + line + " - < much)" + sum);
        CHECK_MESSAGE(parts.err.empty(), parts.err);
        CHECK(parts.out == place(line + " much" + sum).out);
    }
}

#endif
