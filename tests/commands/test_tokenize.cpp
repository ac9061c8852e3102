// linnet tokenize, detokenize, tokenizer convert and verify, as a person runs them.
#include <doctest/doctest.h>

#include <algorithm>

#include "commands/tiny.h"
#include "support.h"

using namespace linnet::test;

namespace {

/// A vocabulary of 300 tokens and texts to use it on.
struct Setting {
    Scratch s;
    std::string json = s / "t.json", text = s / "text.txt";
    Setting() {
        write_text(text, "the cat sat on the mat; the cat said caf\xC3\xA9 <|endoftext|>\n");
        REQUIRE(run_linnet(
                    {"tokenizer", "train", "--vocab-size", "300", "--min-frequency", "1", "-o", json, text})
                    .exit == 0);
    }
    Outcome tokenize(std::vector<std::string> rest, const std::string& input = {}) const {
        rest.insert(rest.begin(), {"tokenize", "-m", json});
        return run_linnet(rest, input);
    }
};

}  // namespace

TEST_CASE("tokenize and detokenize are each other's inverse, for files and stdin, any bytes") {
    Setting t;
    const std::string bytes = "caf\xC3\xA9\r\n\xFF\xC0 \t" + std::string(1, '\0') + "end";
    for (const std::string& text : {read_text(t.text), bytes, std::string()}) {
        const Outcome ids = t.tokenize({"-"}, text);
        CHECK(ids.exit == 0);
        const Outcome back = run_linnet({"detokenize", "-m", t.json}, ids.out);
        CHECK(back.exit == 0);
        CHECK(back.out == text);
    }
    CHECK(t.tokenize({t.text}).out == t.tokenize({}, read_text(t.text)).out);
}

TEST_CASE("tokenize prints ids, counts, pieces or JSON") {
    Setting t;
    const std::string ids = t.tokenize({t.text}).out;
    const auto count = std::count(ids.begin(), ids.end(), ' ') + 1;
    CHECK(t.tokenize({"--format", "count", t.text}).out == std::to_string(count) + "\n");
    CHECK(has(t.tokenize({"--format", "count", t.text, t.text}).out,
              std::to_string(count) + " " + t.text + "\n"));
    const Outcome jsonl = t.tokenize({"--format", "jsonl", t.text});
    CHECK(has(jsonl.out, "{\"file\":\"" + t.text + "\",\"ids\":["));
    CHECK(has(t.tokenize({"--format", "pieces", t.text}).out, "the"));
    CHECK(t.tokenize({"--html", t.s / "page.html", t.text}).exit == 0);
    CHECK(has(read_text(t.s / "page.html"), "<html"));
    const Outcome wrong = t.tokenize({"--format", "idz", t.text});
    CHECK(wrong.exit == 2);
    CHECK(has(wrong.err, "ids"));
}

TEST_CASE("a spelling of a special token is text unless --special is given") {
    Setting t;
    const Outcome plain = t.tokenize({"--format", "count", "-"}, "<|endoftext|>"),
                  special = t.tokenize({"--special", "--format", "count", "-"}, "<|endoftext|>");
    CHECK(std::stoi(plain.out) > 1);
    CHECK(special.out == "1\n");
}

TEST_CASE("bytes that are no UTF-8 are kept, replaced or refused, as --invalid says") {
    Setting t;
    const std::string bad = "cat \xFFsat", mended = "cat \xEF\xBF\xBDsat";
    CHECK(t.tokenize({"--invalid", "replace", "-"}, bad).out == t.tokenize({"-"}, mended).out);
    CHECK(t.tokenize({"--invalid", "keep", "-"}, bad).out == t.tokenize({"-"}, bad).out);
    CHECK(t.tokenize({"-"}, bad).out != t.tokenize({"-"}, mended).out);
    const Outcome refused = t.tokenize({"--invalid", "error", "-"}, bad);
    CHECK(refused.exit == 3);
    CHECK(refused.out.empty());
    CHECK(has(refused.err, "stdin: byte 4: expected UTF-8, got byte 0xFF"));
    CHECK(t.tokenize({"--invalid", "error", "-"}, mended).exit == 0);
    for (const std::string& wide :
         {std::string("\xFF\xFEh\0i\0", 6), std::string("c\0a\0t\0s\0a\0t\0", 12)}) {
        const Outcome named = t.tokenize({"-"}, wide);  // whatever --invalid says
        CHECK(named.exit == 3);
        CHECK(has(named.err, "stdin: expected UTF-8 text, got UTF-16 (little-endian"));
    }
}

TEST_CASE("tokenizer convert keeps every id, and verify says so") {
    Setting t;
    const std::string gguf = t.s / "t.gguf", again = t.s / "again.json";
    REQUIRE(run_linnet({"tokenizer", "convert", t.json, gguf}).exit == 0);
    REQUIRE(run_linnet({"tokenizer", "convert", gguf, again}).exit == 0);
    CHECK(run_linnet({"tokenizer", "verify", t.json, gguf, t.text}).exit == 0);
    CHECK(run_linnet({"tokenize", "-m", again, t.text}).out == t.tokenize({t.text}).out);

    const std::string other = t.s / "other.json";
    REQUIRE(
        run_linnet({"tokenizer", "train", "--vocab-size", "270", "--min-frequency", "1", "-o", other, t.text})
            .exit == 0);
    const Outcome differ = run_linnet({"tokenizer", "verify", t.json, other, t.text});
    CHECK(differ.exit != 0);
    CHECK(has(differ.out + differ.err, t.text));
}

TEST_CASE("a text that a vocabulary cannot spell is named, with the byte, by whatever command encodes it") {
    Workplace at;
    std::string many;
    for (int i = 0; i < 540; i++) many += counting_text();  // stdin comes in parts of 2 MiB, a corpus in less
    REQUIRE(many.size() > (5u << 20));
    write_text(at.s / "many.txt", many + "Q");
    write_text(at.s / "q.txt", "one two Q\n");
    write_text(at.s / "q.jsonl", "{\"text\": \"one\"}\n{\"text\": \"two Q\"}\n");
    write_text(at.s / "bad.jsonl", "{\"text\": \"one\"}\n7\n{\"text\": \"two Q\"}\n");
    const std::string tail = counting_text();  // the end of a text is held out
    write_text(at.s / "tail.txt", tail + "Q");
    write_text(at.s / "config.json", tiny_config());
    const std::string train =
        "train config.json --set tokenizer.kind=file --set tokenizer.file=\"$M\" --quiet --out run --data ";
    const std::string end = "many.txt: byte " + std::to_string(many.size());
    const std::string corpus = "corpus --no-end-tokens -t $M -o ", file = "q.txt: byte 8";
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"tokenize -t $M q.txt", file},
        {"tokenize -t $M --format count --threads 3 many.txt", end},
        {"tokenize -t $M --format count <many.txt", "stdin: byte " + std::to_string(many.size())},
        {"tokenizer verify $M $M text q.txt", file},
        {"tokenizer verify $M $M many.txt", end},
        {"bench tokenize -t $M -r 1 q.txt", file},
        {corpus + "a q.txt", file},
        {corpus + "b --threads 3 many.txt", end},
        {corpus + "c q.jsonl", "q.jsonl: document 2: byte 4"},
        {corpus + "f --skip-bad bad.jsonl", "bad.jsonl: document 3: byte 4"},
        {train + "tail.txt", "tail.txt: byte " + std::to_string(tail.size())},
        {train + "q.jsonl", "q.jsonl: document 2: byte 4"},
        {train + "bad.jsonl --skip-bad", "bad.jsonl: document 3: byte 4"},
        {train + "text --data q.txt", "text and 1 more: document 2: byte 8"},
        {"finetune -m $M --set train.sequence=32 --quiet --out tuned --data q.jsonl",
         "q.jsonl: document 2: byte 4"},
        {corpus + "d text q.txt", "text and 1 more: document 2: byte 8"},
        {corpus + "e - <q.txt", "stdin: byte 8"},
        {"inspect logits -m $M -f q.txt", "q.txt: byte 8"},
        {"inspect logits -m $M -p 'one Q'", "--prompt: byte 4"},
        {"inspect attention -m $M -f q.txt", "q.txt: byte 8"},
        {"inspect attention -m $M -p 'one Q'", "--prompt: byte 4"},
        {"inspect graph -m $M --check -f q.txt", "q.txt: byte 8"},
        {"inspect graph -m $M --check -p 'one Q'", "--prompt: byte 4"},
    };
    for (const auto& [line, place] : cases) {
        const Outcome refused = at("M='" + tiny_model() + "'; \"$LINNET\" " + line);
        CAPTURE(refused.err);
        CHECK(refused.exit == 3);
        CHECK(has(refused.err,
                  "linnet: error: " + place + ": expected a character of the vocabulary, got 'Q' ("));
    }
    write_text(at.s / "bad.txt", "ab\xFF");
    const Outcome none = at("\"$LINNET\" tokenizer train --kind char -o t.json bad.txt");
    CHECK(none.exit == 3);
    CHECK(has(none.err, "linnet: error: bad.txt: byte 2: expected UTF-8, got <0xFF>"));
}
