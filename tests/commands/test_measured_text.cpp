// What eval, quantize --check and --importance measure on: the texts that train reads, and nothing else.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;
using nlohmann::json;

namespace {

/// A folder in which $M is a model and `text` is also there in gzip and as JSON Lines.
struct Texts : Workplace {
    Texts() : Workplace("M='" + tiny_model() + "'") {
        write_text(s / "text.jsonl", json{{"text", counting_text()}}.dump() + "\n");
        REQUIRE((*this)("gzip -k text text.jsonl").exit == 0);
    }
    std::string eval(const std::string& arguments) const {
        const Outcome outcome = (*this)("$LINNET eval -m $M --windows 8 " + arguments);
        CHECK_MESSAGE(outcome.exit == 0, outcome.err);
        return outcome.out;
    }
    void refused(const std::string& line, const std::string& why) const {
        const Outcome outcome = (*this)("$LINNET --quiet " + line);
        CHECK(outcome.exit == 3);
        CHECK(is_one_error_line(outcome.err));
        CHECK_MESSAGE(has(outcome.err, why), outcome.err);
    }
};

}  // namespace

TEST_CASE("eval and quantize measure on gzip and JSON Lines as on the texts in them") {
    const Texts texts;
    const std::string plain = texts.eval("-f text");
    for (const char* same : {"-f text.gz", "-f text.jsonl", "-f text.jsonl.gz", "-f - < text.gz",
                             "--input-format jsonl -f - < text.jsonl"}) {
        CAPTURE(same);
        CHECK(texts.eval(same) == plain);
    }
    write_text(texts.s / "other.jsonl", json{{"body", counting_text()}}.dump() + "\n");
    CHECK(texts.eval("-f other.jsonl --field body") == plain);
    write_text(texts.s / "marked.txt", "\xEF\xBB\xBF" + counting_text());
    CHECK(texts.eval("-f marked.txt") == plain);

    auto quantize = [&](const std::string& options) {
        const Outcome outcome =
            texts("$LINNET --quiet quantize $M q.gguf --type q8_0 --overwrite --windows 8 --json " + options);
        CHECK_MESSAGE(outcome.exit == 0, outcome.err);
        return outcome.out;
    };
    CHECK(quantize("--check text.gz --importance text.jsonl") == quantize("--check text --importance text"));
}

TEST_CASE(
    "documents of JSON Lines are measured one after another, bad ones skipped where that is asked for") {
    const Texts texts;
    std::string lines;
    for (int i = 0; i < 80; i++) lines += json{{"text", counting_text().substr(0, 147)}}.dump() + "\n";
    write_text(texts.s / "many.jsonl", lines);
    CHECK(has(texts.eval("-f many.jsonl"), "tokens 248"));  // 8 windows of 32, the first token given
    write_text(texts.s / "bad.jsonl", "{\"text\": 5}\n" + lines);
    texts.refused("eval -m $M -f bad.jsonl", "bad.jsonl: line 1");
    const Outcome skipped = texts("$LINNET eval -m $M --windows 8 --skip-bad -f bad.jsonl");
    CHECK(skipped.exit == 0);
    CHECK_MESSAGE(has(skipped.err, "1 bad document skipped: bad.jsonl: line 1"), skipped.err);
    CHECK(skipped.out == texts.eval("-f many.jsonl"));
    write_text(texts.s / "bad.jsonl", "{\"text\": 5}\n{\"text\": 6}\n" + lines);
    CHECK(has(texts("$LINNET eval -m $M --windows 8 --skip-bad -f bad.jsonl").err,
              "2 bad documents skipped, the first: bad.jsonl: line 1"));
}

TEST_CASE("a text that is shorter than the model's context is one window, in whatever file it stands") {
    const Texts texts;
    write_text(texts.s / "short", "one two three");
    write_text(texts.s / "short.jsonl", json{{"text", "one two three"}}.dump() + "\n");
    const std::string told = texts.eval("-f short");
    CHECK(has(told, "tokens 12\n"));  // of 13 characters all but the first
    CHECK(texts.eval("-f short.jsonl") == told);
    CHECK(texts.eval("-f short --ctx 13") == told);
    CHECK(has(texts.eval("-f short --against $M"), "same top token 100.00 %"));
    CHECK(
        has(texts("$LINNET quantize $M half.gguf --type f16 --check short").out, "same top token 100.00 %"));
    // A window that was asked for is kept to.
    for (const char* file : {"short", "short.jsonl"})
        texts.refused(std::string("eval -m $M --ctx 14 -f ") + file,
                      "expected a text of at least one window, 14 tokens, got 13 tokens (--ctx makes");
    write_text(texts.s / "letter", "o");
    const Outcome letter = texts("$LINNET eval -m $M -f letter");
    CHECK(letter.exit == 3);
    CHECK_MESSAGE(letter.err.ends_with("expected a text of at least one window, 2 tokens, got 1 token\n"),
                  letter.err);
}

TEST_CASE("what is no text is not measured on but refused by its kind") {
    const Texts texts;
    write_text(
        texts.s / "chat.jsonl",
        R"({"messages": [{"role": "user", "content": "one"}, {"role": "assistant", "content": "two"}]})"
        "\n");
    write_text(texts.s / "pairs.jsonl", "{\"prompt\": \"one\", \"completion\": \"two\"}\n");
    const std::string quantize = "quantize $M q.gguf --type q8_0 ";
    for (const std::string& command :
         {std::string("eval -m $M -f "), quantize + "--check ", quantize + "--importance "}) {
        texts.refused(command + "$M", "expected UTF-8 text, got a GGUF model file");
        texts.refused(command + "chat.jsonl",
                      "expected texts, got conversations, or prompts with completions");
        texts.refused(command + "pairs.jsonl", "finetune reports the loss of their answers");
    }
    CHECK(texts("test -e q.gguf").exit != 0);
    texts.refused("tokenize -t $M text.gz", "text.gz: expected a text, got a compressed file by its name");
    texts.refused("bench tokenize -t $M text.gz", "`linnet corpus` reads it as it is");
}

TEST_CASE("options that say how texts are read are refused where there is none to read") {
    const Texts texts;
    const Outcome unused = texts("$LINNET quantize $M q.gguf --type q8_0 --field body");
    CHECK(unused.exit == 2);
    CHECK_MESSAGE(has(unused.err, "--field: expected --check or --importance as well, got neither"),
                  unused.err);
}

TEST_CASE("a pipe that a shell puts in a file's place is read as stdin is") {
    const Texts texts;
    const Outcome measured = texts("$LINNET eval -m $M --windows 8 -f <(cat text)");
    CHECK_MESSAGE(measured.out == texts.eval("-f text"), measured.err);
    CHECK(texts("$LINNET tokenize -t $M <(cat text)").out == texts("$LINNET tokenize -t $M text").out);
    const std::string generate = "$LINNET generate -m $M -n 5 --temp 0 -f ";
    CHECK(texts(generate + "<(echo one two)").out == texts("echo one two > p; " + generate + "p").out);
    const Outcome empty = texts("$LINNET tokenize -t $M <(true)");
    CHECK(empty.exit == 3);
    CHECK_MESSAGE(has(empty.err, "got a FIFO without one (pipe into stdin and name it -)"), empty.err);
}

TEST_CASE("eval names the same limits of --ctx below and above") {
    const Texts texts;
    const Outcome longer = texts("$LINNET eval -m $M -f text --ctx 64");
    CHECK(longer.exit == 2);
    CHECK_MESSAGE(has(longer.err, "--ctx: expected 2 to 32, the model's, got 64"), longer.err);
    // Of the two models that are compared the smaller context is that of the other.
    write_text(texts.s / "config", tiny_config());
    const Outcome made = texts(
        "$LINNET --quiet train config --data text --out short --steps 1 --threads 1 --set model.context=16");
    REQUIRE_MESSAGE(made.exit == 0, made.err);
    const Outcome against = texts("$LINNET eval -m $M -f text --ctx 24 --against short");
    CHECK(against.exit == 2);
    CHECK_MESSAGE(has(against.err, "--ctx: expected 2 to 16, as --against's model has it, got 24"),
                  against.err);
}

TEST_CASE("an empty input has no vector and no prediction") {
    const Workplace place;
    write_text(place.s / "config", tiny_config());
    const Outcome made = place(
        "$LINNET --quiet train config --data text --out enc --steps 1 --threads 1 --set model.kind=encoder "
        "--set tokenizer.kind=wordpiece --set tokenizer.vocab_size=300");
    REQUIRE_MESSAGE(made.exit == 0, made.err);
    for (const char* command : {"embed -m enc -f nothing", "predict -m enc -f nothing", "embed -m enc -p ''",
                                "embed -m enc -f nothing -o v.npy"}) {
        CAPTURE(command);
        const Outcome refused = place(std::string("touch nothing; $LINNET ") + command);
        CHECK(refused.exit == 3);
        CHECK(refused.out.empty());
        CHECK_MESSAGE(has(refused.err, ": expected a text, got none"), refused.err);
    }
}

TEST_CASE("merge says of --lora that it goes into the weights") {
    const std::string help = run_linnet({"merge", "--help"}).out;
    CHECK(has(help, "adapter to merge into the weights"));
    CHECK(has(run_linnet({"eval", "--help"}).out, "adapter to run beside the weights"));
}
