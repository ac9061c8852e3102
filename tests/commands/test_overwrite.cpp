// Every command that writes, against everything that may stand where it writes.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "commands/commands.h"
#include "commands/tiny.h"
#include "model/family_files.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

namespace fs = std::filesystem;

/// A command that writes: its line but for where to, and the file that it leaves there.
struct Writer {
    const char* command;  // as in the table of commands
    const char* line;     // $OUT is what it writes
    const char* suffix;   // of $OUT; empty: a folder
    const char* leaves;   // below $OUT; empty: $OUT itself
};

constexpr Writer writers[] = {
    {"tokenizer train", "tokenizer train --vocab-size 270 -o $OUT text", ".json", ""},
    {"tokenizer train", "tokenizer train --kind char -o $OUT text", ".gguf", ""},
    {"tokenizer convert", "tokenizer convert t.json $OUT", ".gguf", ""},
    {"tokenizer convert", "tokenizer convert t.json $OUT", ".json", ""},
    {"tokenize", "tokenize -m t.json --html $OUT text", ".html", ""},
    {"inspect attention", "inspect attention -m m.gguf -p one --html $OUT", ".html", ""},
    {"corpus", "corpus -t t.json -o $OUT text", "", "/index.json"},
    {"corpus", "corpus -t t.json --format nanogpt --no-end-tokens -o $OUT text", "", "/train.bin"},
    {"corpus", "corpus -t t.json --format megatron -o $OUT text", "", "/train_text_document.bin"},
    {"quantize", "quantize m.gguf $OUT --type q8_0", ".gguf", ""},
    {"embed", "embed -m e/model.gguf --truncate -f text -o $OUT", ".npy", ""},
    {"convert", "convert m.gguf $OUT", "", "/config.json"},
    {"convert", "convert c/c.bin $OUT", ".gguf", ""},
    {"convert", "convert c/c.bin $OUT", ".bin", ""},    // llama2.c's
    {"convert", "convert gpt2.gguf $OUT", ".bin", ""},  // llm.c's
    {"convert", "convert a.gguf $OUT --base m.gguf", "", "/adapter_config.json"},
    {"finetune", "finetune -m m.gguf --data text --steps 2 --threads 1 --set train.sequence=16 --out $OUT",
     "", "/model.gguf"},
    {"merge", "merge -m m.gguf --lora a.gguf -o $OUT", ".gguf", ""},
    {"report", "report log.jsonl -o $OUT", ".html", ""},
    {"train", "train config --data text --steps 2 --threads 1 --save hf --out $OUT", "", "/hf/config.json"},
    {"train", "train config --data text --steps 2 --threads 1 --out $OUT", "", "/model.gguf"},
};

/// llama2.c's checkpoint of a model of 8 tokens, all of zeros.
void write_checkpoint(const std::string& path, const std::string& tokenizer) {
    const std::int32_t header[] = {8, 16, 1, 2,
                                   2, 8,  4};  // width, ffn, layers, heads, kv heads, tokens, context
    const std::size_t floats = 8 * 8 + 8 + 4 * 64 + 8 + 3 * 8 * 16 + 8 + 4 * 4;
    write_text(path, std::string(reinterpret_cast<const char*>(header), sizeof header) +
                         std::string(4 * floats, '\0'));
    std::string pieces(4, '\1');
    for (char token = 0; token < 8; token++)
        pieces += std::string(4, '\0') + std::string("\1\0\0\0", 4) + static_cast<char>('a' + token);
    write_text(tokenizer, pieces);
}

struct Place : Workplace {
    Place() {
        write_text(s / "config", tiny_config());
        write_text(s / "log.jsonl", R"({"event":"step","step":1,"loss":2})");
        fs::copy_file(tiny_model(), s / "m.gguf");
        REQUIRE(run_linnet({"finetune", "-m", s / "m.gguf", "--data", s / "text", "--lora", "1", "--steps",
                            "1", "--threads", "1", "--set", "train.sequence=16", "--out", s / "adapted"})
                    .exit == 0);
        fs::rename(s / "adapted/adapter.gguf", s / "a.gguf");
        fs::remove_all(s / "adapted");
        fs::create_directory(s / "c");
        write_checkpoint(s / "c/c.bin", s / "c/tokenizer.bin");
        FamilyFile gpt2 = family_file("gpt2-tied");
        gpt2.ffn = 4 * gpt2.width;
        write_family_file(gpt2, s / "gpt2.gguf");
        REQUIRE(run_linnet({"train", s / "config", "--data", s / "text", "--out", s / "e", "--steps", "1",
                            "--set", "model.kind=encoder", "--set", "tokenizer.kind=wordpiece", "--set",
                            "tokenizer.vocab_size=300"})
                    .exit == 0);
        REQUIRE(
            run_linnet({"tokenizer", "train", "--vocab-size", "270", "-o", s / "t.json", s / "text"}).exit ==
            0);
    }
    using Workplace::operator();
    Outcome operator()(const Writer& writer, const std::string& out, const std::string& more = "") const {
        return (*this)("OUT='" + out + "'; $LINNET " + writer.line + " " + more);
    }
    /// Names, kinds and contents of all that is below `name`.
    std::string state(const std::string& name) const {
        return (*this)("find '" + name + "' | sort; find '" + name + "' -type f | sort | xargs -r sha256sum")
            .out;
    }
};

}  // namespace

TEST_CASE("every option that names something to write has --overwrite beside it, and a row in this test") {
    for (const Command& command : commands()) {
        if (!command.add) continue;
        INFO(std::string(command.name));
        const std::string help = run_shell(std::string("$LINNET ") + command.name + " --help").out;
        const bool writes = has(help, "--out") || has(help, "OUT") || has(help, "--html");
        CHECK(has(help, "--overwrite") == writes);
        bool row = false;
        for (const Writer& writer : writers) row |= std::string(writer.command) == command.name;
        CHECK(row == writes);
    }
}

TEST_CASE("every command that writes has a row in the harness of faults") {
    const fs::path root = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
    std::istringstream lines(read_text((root / "tests/faults/run.sh").string()));
    std::vector<std::string> rows;
    for (std::string line; std::getline(lines, line);)
        if (line.starts_with("    \"")) rows.push_back(line.substr(5));
    const auto has_row = [&](const std::string& name) {
        return std::ranges::any_of(rows, [&](const std::string& row) {
            return row.starts_with(name) && std::string(" ,@").find(row[name.size()]) != std::string::npos;
        });
    };
    for (const Writer& writer : writers) CHECK_MESSAGE(has_row(writer.command), writer.command);
    CHECK(has_row("generate --prompt-cache"));
    CHECK_FALSE(has_row("generate --output"));
}

TEST_CASE("what is written is said in one line, and folders on the way are made") {
    Place place;
    for (const Writer& writer : writers) {
        INFO(std::string(writer.line));
        const std::string out = std::string("a/b/c/out") + writer.suffix;
        const Outcome made = place(writer, out);
        CHECK_MESSAGE(made.exit == 0, made.err);
        CHECK_MESSAGE(has(made.err, "wrote " + out), made.err);
        CHECK_MESSAGE(has(made.err.substr(made.err.rfind("wrote ")), "B\n"), made.err);  // a size
        CHECK(fs::exists(place.s / (out + writer.leaves)));
        CHECK(run_shell("ls -A '" + place.s.path + "/a/b/c' | grep -c '^\\.'").out == "0\n");
        CHECK_FALSE(fs::exists(place.s / (out + "/.linnet.lock")));
        CHECK(has(place(writer, "quiet" + out, "--quiet").err, "wrote") == false);
        fs::remove_all(place.s / "a");
        fs::remove_all(place.s / "quieta");
    }
}

TEST_CASE("no command replaces what it finds, unless --overwrite is given" * doctest::test_suite("long")) {
    Place place;
    for (const Writer& writer : writers) {
        INFO(std::string(writer.line));
        const bool folder = !*writer.suffix;
        const std::string out = std::string("out") + writer.suffix;
        struct Found {
            const char *what, *make;
            int exit, over;  // without and with --overwrite
        };
        const Found file_found[] = {{"a file", "echo mine > $OUT", 2, 0},
                                    {"a link to a file", "echo mine > real; ln -s real $OUT", 2, 0},
                                    {"a link to nowhere", "ln -s nowhere $OUT", 2, 0},
                                    {"a model", "cp \"$MODEL\" $OUT", 2, 0},
                                    {"a folder", "mkdir $OUT", 4, 4},
                                    {"a FIFO", "mkfifo $OUT", 4, 4},
                                    {"what it wrote", "$LINNET $LINE", 2, 0}};
        const Found folder_found[] = {
            {"a file", "echo mine > $OUT", 4, 4},
            {"what it wrote", "$LINNET $LINE", 2, 0},
            {"a link to what it wrote", "$LINNET $LINE; mv $OUT real; ln -s real $OUT", 2, 0}};
        const Found run_found[] = {
            {"a model", "mkdir $OUT; cp \"$MODEL\" $OUT/mine.gguf", 2, 0},
            {"a run's model", "mkdir $OUT; cp \"$MODEL\" $OUT/model.gguf", 2, 0},
            {"a log", "mkdir $OUT; echo '{}' > $OUT/log.jsonl", 2, 0},
            {"a checkpoint",
             "mkdir -p $OUT/checkpoints/step-00000001; echo > $OUT/checkpoints/step-00000001/x", 2, 0},
            {"a report", "mkdir $OUT; echo mine > $OUT/report.html", 2, 0}};
        std::vector<Found> all;
        if (folder)
            all.assign(std::begin(folder_found), std::end(folder_found));
        else
            all.assign(std::begin(file_found), std::end(file_found));
        if (writer.command == std::string("train"))
            all.insert(all.end(), std::begin(run_found), std::end(run_found));
        for (const Found& found : all) {
            INFO(std::string(found.what));
            place("OUT='" + out + "' MODEL='" + tiny_model() + "'; LINE=\"" + writer.line + "\"; " +
                  found.make);
            const std::string before = place.state(out) + place.state("real");
            const Outcome refused = place(writer, out);
            CHECK(refused.exit == found.exit);
            CHECK_MESSAGE(is_one_error_line(refused.err), refused.err);
            CHECK(has(refused.err, "--overwrite") == (found.exit == 2));
            CHECK(place.state(out) + place.state("real") == before);
            const Outcome replaced = place(writer, out, "--overwrite");
            CHECK_MESSAGE(replaced.exit == found.over, replaced.err);
            if (found.over == 0) {
                CHECK(has(replaced.err, "wrote " + out));
                CHECK(fs::exists(place.s / (out + writer.leaves)));
            }
            place("rm -rf out* real nowhere .out* tokenizer.bin");
        }
    }
}

TEST_CASE("convert and corpus keep whatever has a name that they would write") {
    Place place;
    struct Kept {
        const char *line, *name;
    };
    const char *folder = "convert m.gguf out", *adapter = "convert a.gguf out --base m.gguf",
               *corpus = "corpus -t t.json -o out text", *resumed = "corpus -t t.json -o out text --resume";
    const Kept all[] = {{folder, "config.json"},
                        {folder, "tokenizer.json"},
                        {folder, "tokenizer_config.json"},
                        {folder, "generation_config.json"},
                        {folder, "modules.json"},
                        {folder, "1_Pooling"},
                        {folder, "model.safetensors"},
                        {folder, "model-x.safetensors"},
                        {folder, "model.safetensors.index.json"},
                        {adapter, "adapter_config.json"},
                        {adapter, "adapter_model.safetensors"},
                        {"convert c/c.bin out/m.bin", "tokenizer.bin"},
                        {corpus, "train_000000.bin"},
                        {resumed, "train_000000.bin"},
                        {corpus, "tokenizer.gguf"},
                        {resumed, "tokenizer.gguf"}};
    for (const Kept& kept : all)
        for (const char* make : {"echo mine > ", "ln -s nowhere ", "mkdir "}) {
            const std::string name = kept.name;
            if (name == "tokenizer.gguf" && make[0] != 'e')
                continue;  // looked into: the corpus's own may be there
            if (name == "tokenizer.bin" && make[0] == 'm') continue;
            CAPTURE(kept.line);
            CAPTURE(make + name);
            place("mkdir out; " + (make + ("out/" + name)));
            const std::string before = place.state("out");
            const Outcome refused = place(std::string("$LINNET ") + kept.line);
            CHECK(refused.exit == 2);
            CHECK_MESSAGE(is_one_error_line(refused.err), refused.err);
            CHECK(place.state("out") == before);
            place("rm -rf out .out*");
        }
    // Onto a run's folder.
    const Writer& train = writers[std::size(writers) - 1];
    REQUIRE(place(train, "out").exit == 0);
    const std::string before = place.state("out");
    for (const char* line : {folder, "convert out out"}) {
        const Outcome refused = place(std::string("$LINNET ") + line);
        CHECK(refused.exit == 2);
        CHECK_MESSAGE(has(refused.err, "out: expected a folder without config.json"), refused.err);
        CHECK(place.state("out") == before);
    }
}

TEST_CASE("a prompt cache never replaces a file, and makes the folders of its own") {
    Place place;
    const std::string line = "$LINNET generate -m m.gguf -p 'one two' -n 2 --prompt-cache ";
    const Outcome made = place(line + "a/b/cache");
    CHECK_MESSAGE(made.exit == 0, made.err);
    CHECK_MESSAGE(has(made.err, "wrote a/b/cache, "), made.err);
    const std::string before = place.state("text");
    CHECK(place(line + "text").exit == 3);
    CHECK(place(line + "text/cache").exit == 4);
    CHECK(place.state("text") == before);
}

TEST_CASE("- names no file to write, and is refused before the work") {
    Place place;
    auto refuses = [&](const Outcome& refused, const std::string& line) {
        INFO(line);
        CHECK(refused.exit == 2);
        CHECK_MESSAGE(is_one_error_line(refused.err), refused.err);
        CHECK_MESSAGE(has(refused.err, "files do not go to stdout"), refused.err);
        CHECK_FALSE(fs::exists(place.s / "-"));
    };
    for (const Writer& writer : writers) refuses(place(writer, "-"), writer.line);
    refuses(place("$LINNET generate -m m.gguf -p one --prompt-cache -"), "--prompt-cache");
    refuses(place("$LINNET quantize -m m.gguf --type q8_0 -o -"), "a hidden name");
}

TEST_CASE("a place that cannot be written to is an I/O error, before the work") {
    Place place;
    for (const Writer& writer : writers) {
        INFO(std::string(writer.line));
        for (const std::string where : {"text/out", "/proc/self/out", "/sys/out"}) {
            CAPTURE(where);
            const Outcome outcome = place(writer, where + writer.suffix);
            CHECK(outcome.exit == 4);
            CHECK_MESSAGE(is_one_error_line(outcome.err), outcome.err);
        }
    }
}

TEST_CASE("a folder that another process writes into is refused at once, by that process's number") {
    Place place;
    for (const Writer& writer : writers) {
        if (*writer.suffix) continue;
        INFO(std::string(writer.line));
        // A corpus from a pipe that nobody writes to holds its folder for as long as we like.
        const Outcome outcome = place(
            "OUT=out; mkfifo pipe; $LINNET corpus -t t.json -o out - < pipe 2>/dev/null &\n"
            "holder=$!; exec 9> pipe; until [ -e out/.linnet.lock ]; do sleep 0.01; done\n"
            "$LINNET " +
            std::string(writer.line) +
            " 2> err; code=$?; grep -q \"process $holder \" err || code=98\n"
            "$LINNET " +
            writer.line +
            " --overwrite 2>> err || code=$((code * 100 + $?))\n"
            "kill -9 $holder; wait $holder 2>/dev/null; exec 9>&-\n"
            // What the dead process left does not keep the next one out.
            "$LINNET " +
            writer.line + " --overwrite 2>> err || code=97; cat err; rm -rf out pipe; exit $((code - 340))");
        CHECK_MESSAGE(outcome.exit == 64, outcome.out);
    }
}

TEST_CASE(
    "train --resume without a checkpoint is refused; --overwrite keeps the old run until the new one has "
    "one") {
    Place place;
    const Writer& train = writers[std::size(writers) - 1];
    fs::create_directory(place.s / "out");
    for (const char* out : {"out", "none"}) {
        const Outcome outcome = place(train, out, "--resume");
        CHECK(outcome.exit == 5);
        CHECK_MESSAGE(is_one_error_line(outcome.err), outcome.err);
    }
    CHECK(place(train, "out", "--resume --overwrite").exit == 2);
    REQUIRE(place(train, "out").exit == 0);
    write_text(place.s / "out/notes", "mine");
    const std::string before = place.state("out");
    // Refused for what it is asked to learn: the old run was not touched.
    CHECK(place(train, "out", "--overwrite --set model.width=7").exit == 2 + 1);
    CHECK(place.state("out") == before);
    // Killed after its first steps: --resume finds the old run again.
    place(
        "$LINNET train config --data text --out out --overwrite --set train.steps=1000000 "
        "--set train.checkpoint_every=0 2>/dev/null & p=$!; until [ -e out/.replaced/report.html ] && "
        "[ -e out/log.jsonl ]; do sleep 0.01; done; kill -9 $p; wait $p 2>/dev/null");
    // Who asks for a model meanwhile gets the old run's.
    const Outcome old = place("$LINNET generate -m out -p one -n 2");
    CHECK_MESSAGE(old.exit == 0, old.err);
    CHECK_MESSAGE(has(old.err, "out/.replaced/model.gguf is of the one that it is to replace"), old.err);
    const Outcome resumed = place(train, "out", "--resume");
    CHECK_MESSAGE(resumed.exit == 0, resumed.err);
    CHECK(has(resumed.err, "put back"));
    CHECK(read_text(place.s / "out/notes") == "mine");
    // With a checkpoint the new one stands, and the old one is gone.
    CHECK(place(train, "out", "--overwrite --set train.optimizer.lr=0.02").exit == 0);
    CHECK_FALSE(fs::exists(place.s / "out/.replaced"));
    CHECK(read_text(place.s / "out/notes") == "mine");
    CHECK(place.state("out") != before);
}
