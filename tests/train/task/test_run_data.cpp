// What a run's data are, and what is made of them: texts, documents, prompts, a corpus.
#include "train/task/run_data.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "commands/tiny.h"
#include "support.h"
#include "train/task/config.h"
#include "train/task/run_texts.h"

using namespace linnet;
using test::counting_text;
using test::has;
using test::refusal;
using test::Scratch;
using test::write_text;

TEST_CASE("texts, documents and prompts are described, made a vocabulary of and packed, each in its way") {
    Scratch s;
    std::string lines;
    for (int i = 0; i < 60; i++) lines += R"({"said": "one two three )" + std::to_string(i % 10) + "\"}\n";
    write_text(s / "docs.jsonl", lines + "{\"said\": 7}\n");
    write_text(s / "one", counting_text());
    write_text(s / "prompt.jsonl", R"({"prompt": "ab", "completion": "cdefghijklmnop"})");
    RunConfig config =
        read_run_config({{"model", {{"context", 16}, {"width", 8}, {"layers", 1}, {"heads", 2}}}}, "c", {});
    auto open = [&](const std::string& name, const std::string& field = "text") {
        DataOptions options;
        options.inputs = {s / name};
        if (field != "text")
            options.read.field = field, options.read.skip_bad = true, options.read.format = "jsonl";
        return RunData(options);
    };
    const TokenizerPtr bytes = train_tokenizer("byte", "", 0, 1);
    for (const std::string kind : {"bpe", "char", "byte"}) {
        config.tokenizer.kind = kind, config.tokenizer.vocab_size = 257;
        CHECK(open("docs.jsonl", "said").tokenizer(config, 1)->kind() == kind);
        CHECK(open("one").tokenizer(config, 1)->kind() == kind);
    }
    RunData docs = open("docs.jsonl", "said"), one = open("one"), prompt = open("prompt.jsonl");
    CHECK(has(docs.description(), "60 documents of the field said, "));
    CHECK(has(docs.description(), "; 1 bad one skipped: "));
    CHECK(has(one.description(), "one document, "));
    CHECK(has(prompt.description(), "1 prompt with completions, "));
    CHECK(docs.is_packable());
    CHECK(!one.is_packable());
    CHECK(prompt.is_packable());
    for (RunData* data : {&docs, &one, &prompt}) CHECK(data->first_chat().empty());
    const PackedTexts packed = docs.packed(*bytes, nullptr, 0.1, 1, 16, 2);
    // Each one's tail is held out, and what a part begins with is not learned: 15 bytes, less two.
    CHECK(packed.bytes(DataSplit::train) + packed.bytes(DataSplit::validation) == 60 * 13);
    CHECK(packed.size(DataSplit::validation) > 0);
    CHECK(packed.shortened() == 0);
    CHECK(prompt.packed(*bytes, nullptr, 0.1, 1, 8, 1).shortened() == 1);
    // A corpus is data alone.
    std::filesystem::create_directories(s / "tokens");
    write_text(s / "tokens/train.bin", "abcd");
    DataOptions two;
    two.inputs = {s / "one", s / "tokens"};
    CHECK(refusal([&] { RunData data(two); }) ==
          (s / "tokens") + ": expected texts, or one corpus alone, got a corpus among 2 inputs");
}

TEST_CASE("examples are packed, documents where that is asked and they are one text; what is lost is noted") {
    Scratch s;
    std::string lines;
    for (int i = 0; i < 9; i++) lines += "{\"text\": \"one two three\"}\n";
    write_text(s / "docs.jsonl", lines);
    write_text(s / "one", counting_text());
    write_text(s / "pairs.jsonl", R"({"prompt": "ab", "completion": "cdefghijklmnop"})"
                                  "\n"
                                  R"({"prompt": "abcdefghijkl", "completion": "m"})"
                                  "\n"
                                  R"({"prompt": "ab", "completion": "c"})");
    const TokenizerPtr bytes = train_tokenizer("byte", "", 0, 1);
    const auto made = [&](const std::vector<std::string>& names, bool pack_documents,
                          std::vector<std::string>* notes = nullptr) {
        DataOptions options;
        for (const std::string& name : names) options.inputs.push_back(s / name);
        if (names.size() > 1) options.weights.assign(names.size(), 1);
        RunTexts texts(options);
        std::vector<bool> packed;
        for (const TokenSource& source : texts.tokens(*bytes, nullptr, pack_documents, 0, 1, 8, 1))
            packed.push_back(source.packed() != nullptr);
        if (notes) *notes = texts.notes();
        return packed;
    };
    using Packed = std::vector<bool>;
    CHECK(made({"docs.jsonl"}, false) == Packed{false});
    CHECK(made({"docs.jsonl"}, true) == Packed{true});
    CHECK(made({"one"}, true) == Packed{false});
    CHECK(made({"docs.jsonl", "one"}, true) == Packed{false, false});
    std::vector<std::string> notes;
    CHECK(made({"one", "pairs.jsonl"}, false, &notes) == Packed{false, true});
    const std::string begin = s / "pairs.jsonl: ",
                      longer = " of 3 examples are longer than train.sequence (8 tokens) and ";
    CHECK(notes ==
          std::vector<std::string>{
              begin + "1" + longer + "lose their ends",
              begin + "1" + longer + "are left out, as their answers begin behind it",
              begin + "the vocabulary has no end token, so nothing is learned that ends a completion"});
}
