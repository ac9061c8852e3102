// What a run's data are, and what is made of them: texts, documents, prompts, a corpus.
#include "train/task/run_data.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "commands/tiny.h"
#include "support.h"
#include "train/task/config.h"

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
