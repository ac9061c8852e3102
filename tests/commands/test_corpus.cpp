// linnet corpus and tokenizer train, as a person runs them.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "support.h"

using namespace linnet::test;

namespace {

std::string quoted_lines(int n) {
    std::string lines;
    for (int i = 0; i < n; i++)
        lines += "{\"id\":" + std::to_string(i) + ",\"text\":\"The " +
                 std::to_string(std::int64_t{i} * i % 9001) + "th document says \\\"" +
                 std::string(static_cast<std::size_t>(i % 50), 'x') + " and so on\\\".\"}\n";
    return lines;
}

/// A tokenizer, and documents to use it on, made once for a test.
struct Setting {
    Scratch s;
    Setting() {
        write_text(s / "docs.jsonl", quoted_lines(60000));
        REQUIRE(
            run_linnet({"tokenizer", "train", "--vocab-size", "600", "-o", s / "t.json", s / "docs.jsonl"})
                .exit == 0);
    }
    Outcome corpus(std::vector<std::string> rest) const {
        rest.insert(rest.begin(), {"corpus", "-t", s / "t.json"});
        return run_linnet(rest);
    }
    /// The command that learns two steps from a folder.
    std::vector<std::string> training(const std::string& folder, const std::string& out) const {
        return {"train",          "--data", s / folder,      "--out",          s / out,
                "--steps",        "2",      "--set",         "model.layers=1", "--set",
                "model.width=32", "--set",  "model.heads=2", "--set",          "train.sequence=32"};
    }
};

}  // namespace

TEST_CASE("corpus: one and three threads, a killed run and its continuation, leave the same folder") {
    Setting t;
    CHECK(t.corpus({"-o", t.s / "one", "--threads", "1", "--shard-tokens", "100000", t.s / "docs.jsonl"})
              .exit == 0);
    CHECK(t.corpus({"-o", t.s / "three", "--threads", "3", "--shard-tokens", "100000", t.s / "docs.jsonl"})
              .exit == 0);
    CHECK(run_shell("diff -r " + t.s / "one " + t.s / "three").exit == 0);
    // Killed as soon as a shard stands; a machine too fast for that has finished, which resuming accepts as
    // well.
    std::string command = "corpus -t " + t.s / "t.json" + " --shard-tokens 100000 -o " + t.s / "killed";
    run_shell("\"$LINNET\" " + command + " " + t.s / "docs.jsonl" + " & p=$!; while [ ! -e " +
              t.s / "killed/train_000000.bin" +
              " ] && kill -0 $p 2>/dev/null; do sleep 0.01; done; kill -9 $p; wait $p");
    Outcome resumed = run_shell("\"$LINNET\" " + command + " --resume " + t.s / "docs.jsonl");
    CHECK(resumed.exit == 0);
    CHECK(run_shell("diff -r " + t.s / "one " + t.s / "killed").exit == 0);
}

TEST_CASE("corpus refuses what it cannot read, in one line and by name") {
    Setting t;
    write_text(t.s / "bad.jsonl", quoted_lines(5) + "{\"text\":}\n" + quoted_lines(5));
    write_text(t.s / "wide.txt", std::string("\xFF\xFEh\0i\0", 6));
    write_text(t.s / "cut.gz", "\x1F\x8B\x08");
    write_text(t.s / "blank.txt", "");
    struct Case {
        std::string file, says;
        int exit;
    };
    for (const Case& c :
         {Case{t.s / "bad.jsonl", "bad.jsonl: line 6, byte 9", 3}, Case{t.s / "wide.txt", "UTF-16", 3},
          Case{t.s / "cut.gz", "truncated", 3}, Case{t.s / "absent", "absent", 4},
          Case{t.s / "blank.txt", "at least one document", 3}, Case{"/dev/zero", "a device", 3}}) {
        Outcome outcome = t.corpus({"-o", t.s / "out", c.file});
        CAPTURE(outcome.err);
        CHECK(outcome.exit == c.exit);
        CHECK(has(outcome.err, "linnet: error: "));
        CHECK(has(outcome.err, c.says));
        CHECK(outcome.out.empty());
        CHECK_FALSE(std::filesystem::exists(t.s / "out/index.json"));
    }
    Outcome skipped = t.corpus({"-o", t.s / "out", "--skip-bad", t.s / "bad.jsonl"});
    CHECK(skipped.exit == 0);
    CHECK(has(skipped.out, "1 bad one skipped"));
    CHECK(has(skipped.err, "line 6"));
    std::string bad;
    for (int i = 0; i < 1000; i++) bad += "7\n";
    write_text(t.s / "many.jsonl", quoted_lines(5) + bad);
    Outcome many = t.corpus({"-o", t.s / "many", "--skip-bad", t.s / "many.jsonl"});
    CHECK_MESSAGE(has(many.err, "1 000 bad documents skipped, the first: "), many.err);
    Outcome again = t.corpus({"-o", t.s / "out", t.s / "bad.jsonl"});
    CHECK(again.exit == 2);
    CHECK(has(again.err, "--overwrite"));
}

TEST_CASE("corpus takes several texts and folders, and a line's field wherever it stands") {
    Setting t;
    const std::string long_field(300'000, 'x');
    write_text(t.s / "a.txt", "the first document");
    write_text(t.s / "b.jsonl", "{\"text\":\"a second\",\"note\":\"" + long_field + "\"}\n{\"note\":\"" +
                                    long_field + "\",\"text\":\"a " + long_field + "\\n third\"}\n");
    std::filesystem::create_directory(t.s / "more");
    write_text(t.s / "more/c.txt", "the last");
    Outcome made =
        t.corpus({"-o", t.s / "out", "--validation", "0", t.s / "a.txt", t.s / "b.jsonl", t.s / "more"});
    CHECK(made.exit == 0);
    CHECK(has(made.out + made.err, "documents  4"));
    Outcome text =
        run_linnet({"detokenize", "-m", t.s / "t.json", "-"},
                   run_linnet({"tokenize", "-m", t.s / "t.json", "-"}, "a " + long_field + "\n third").out);
    CHECK(text.out == "a " + long_field + "\n third");
    CHECK(
        has(read_text(t.s / "out/index.json"), "\"bytes\": " + std::to_string(18 + 8 + 2 + 300'000 + 7 + 8)));
}

TEST_CASE("corpus reads stdin, gzip and Zstandard alike") {
    Setting t;
    Outcome made = run_shell("cd " + t.s.path + " && gzip -k docs.jsonl && " +
                             "\"$LINNET\" corpus -t t.json -o plain docs.jsonl && " +
                             "\"$LINNET\" corpus -t t.json -o packed docs.jsonl.gz && " +
                             "\"$LINNET\" corpus -t t.json -o piped --input-format jsonl - <docs.jsonl && " +
                             "diff -r plain packed && diff -r plain piped");
    CAPTURE(made.err);
    CHECK(made.exit == 0);
}

TEST_CASE("train takes a corpus folder, and its tokenizer with it") {
    Setting t;
    REQUIRE(t.corpus({"-o", t.s / "corpus", t.s / "docs.jsonl"}).exit == 0);
    const std::vector<std::string> train = t.training("corpus", "run");
    const Outcome trained = run_linnet(train);
    CAPTURE(trained.err);
    CHECK(trained.exit == 0);
    CHECK(has(trained.err, "the tokenizer is that of the corpus"));
    CHECK(run_linnet({"tokenizer", "verify", t.s / "t.json", t.s / "run/model.gguf", t.s / "docs.jsonl"})
              .exit == 0);

    // Another vocabulary of the same size is not mistaken for it.
    std::filesystem::remove_all(t.s / "run");
    write_text(t.s / "other.txt", "a vocabulary of other words, learned from this line alone\n");
    REQUIRE(run_linnet({"tokenizer", "train", "--vocab-size", "260", "-o", t.s / "corpus/tokenizer.gguf",
                        t.s / "other.txt", "--overwrite"})
                .exit == 0);
    const Outcome other = run_linnet(train);
    CHECK(other.exit == 3);
    CHECK(has(other.err, "sha256"));

    CHECK(t.corpus({"--overwrite", "-o", t.s / "corpus", t.s / "docs.jsonl"}).exit == 0);

    std::filesystem::remove(t.s / "corpus/tokenizer.gguf");
    std::filesystem::remove_all(t.s / "run");
    const Outcome without = run_linnet(train);
    CHECK(without.exit == 3);
    CHECK(has(without.err, "tokenizer.gguf"));
}

TEST_CASE("train takes a folder as llm.c's scripts leave it: tokens and checkpoints without an index") {
    Setting t;
    REQUIRE(t.corpus({"-o", t.s / "tokens", t.s / "docs.jsonl"}).exit == 0);
    std::filesystem::remove(t.s / "tokens/index.json");
    const std::int32_t header[256] = {20240326, 3, 32, 600, 1, 2, 32, 640};
    write_text(t.s / "tokens/gpt2_124M.bin",
               std::string(reinterpret_cast<const char*>(header), sizeof header) + std::string(4096, '\1'));
    const Outcome beside = run_linnet(t.training("tokens", "beside"));
    CHECK_MESSAGE(beside.exit == 0, beside.err);
    CHECK(has(beside.err, "tokens in the layout of llmc"));
    std::filesystem::rename(t.s / "tokens/tokenizer.gguf", t.s / "t.gguf");
    const Outcome none = run_linnet(t.training("tokens", "none"));
    CHECK(none.exit == 3);
    CHECK(has(none.err, "tokens: expected the tokenizer that the corpus was made with, got nothing"));
    std::vector<std::string> named = t.training("tokens", "named");
    for (const std::string& setting : {std::string("kind=file"), "file=" + (t.s / "t.gguf")})
        named.insert(named.end(), {"--set", "tokenizer." + setting});
    const Outcome with = run_linnet(named);
    CHECK_MESSAGE(with.exit == 0, with.err);
}

TEST_CASE("corpus --format writes what nanoGPT and Megatron-LM read, and train reads it") {
    Setting t;
    for (const std::string format : {"nanogpt", "megatron"}) {
        CAPTURE(format);
        const std::string folder = t.s / format;
        const std::string command = "corpus -t " + t.s / "t.json" + " --format " + format + " -o ";
        REQUIRE(t.corpus({"--format", format, "-o", folder, t.s / "docs.jsonl"}).exit == 0);
        CHECK_FALSE(std::filesystem::exists(folder + "/train_000000.bin"));
        CHECK_FALSE(std::filesystem::exists(folder + "/train_text_document.starts"));
        // Killed when some of it is written, and gone on with: the same files.
        run_shell("\"$LINNET\" " + command + t.s / "killed" + " " + t.s / "docs.jsonl" +
                  " & p=$!; while [ ! -e " + t.s / "killed/progress.json" +
                  " ] && kill -0 $p 2>/dev/null; do sleep 0.01; done; sleep 0.05; kill -9 $p; wait $p");
        CHECK(run_shell("\"$LINNET\" " + command + t.s / "killed" + " --resume " + t.s / "docs.jsonl").exit ==
              0);
        CHECK(run_shell("diff -r " + folder + " " + t.s / "killed").exit == 0);
        std::filesystem::remove_all(t.s / "killed");

        const std::vector<std::string> train = t.training(format, "run-" + format);
        const Outcome ours = run_linnet(train);
        CAPTURE(ours.err);
        CHECK(ours.exit == 0);
        // Without index.json they are another program's; their tokenizer lies beside them.
        std::filesystem::remove(folder + "/index.json");
        std::filesystem::remove_all(t.s / ("run-" + format));
        const Outcome others = run_linnet(train);
        CHECK(others.exit == 0);
        CHECK(has(others.err, "tokens in the layout of " + format));
        std::filesystem::remove(folder + "/tokenizer.gguf");
        std::filesystem::remove_all(t.s / ("run-" + format));
        const Outcome none = run_linnet(train);
        CHECK(none.exit == 3);
        CHECK(has(none.err, "expected the tokenizer that the corpus was made with"));
    }
    write_text(t.s / "one.txt", std::string(5000, 'a') + std::string(5000, 'b'));
    REQUIRE(t.corpus({"--format", "nanogpt", "--no-end-tokens", "-o", t.s / "one", t.s / "one.txt"}).exit ==
            0);
    const auto train = std::filesystem::file_size(t.s / "one/train.bin"),
               validation = std::filesystem::file_size(t.s / "one/val.bin");
    CHECK(validation == (train + validation) / 2 / 10 * 2);
    CHECK(has(read_text(t.s / "one/index.json"), "\"bytes\": 10000"));
    CHECK(run_linnet({"train", "--data", t.s / "one", "--verify", "--out", t.s / "run", "--steps", "1",
                      "--set", "model.layers=1", "--set", "model.width=32", "--set", "model.heads=2", "--set",
                      "train.sequence=32"})
              .exit == 0);
}

TEST_CASE("tokenizer train: the same file for any threads and memory; a signal leaves nothing") {
    Setting t;
    for (std::string options : {"--threads 1", "--threads 3", "--mem 42M"}) {
        std::string out = t.s / "again.json";
        CHECK(run_shell("\"$LINNET\" tokenizer train --overwrite --vocab-size 600 " + options + " -o " + out +
                        " " + t.s / "docs.jsonl")
                  .exit == 0);
        CHECK(read_text(out) == read_text(t.s / "t.json"));
    }
    Outcome stopped = run_shell(
        "mkfifo " + t.s / "pipe" + "; \"$LINNET\" tokenizer train --vocab-size 600 -o " + t.s / "never.json" +
        " - <" + t.s / "pipe" + " & p=$!; exec 9>" + t.s / "pipe" +
        "; yes 'some text to learn from' | head -c 30000000 >&9; kill -TERM $p; exec 9>&-; wait $p");
    CHECK(stopped.exit == 143);
    CHECK_FALSE(std::filesystem::exists(t.s / "never.json"));
}
