// Texts of any lengths in bins, and examples whose answers are learned.
#include "data/packing.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "base/error.h"
#include "data/examples.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// A text of `length` ids, which are `first`, first + 1, …
PackedText text(TokenId first, std::size_t length) {
    PackedText t;
    for (std::size_t i = 0; i < length; i++) t.ids.push_back(first + static_cast<TokenId>(i));
    t.scored.assign(length, 1);
    return t;
}

TokenizerPtr bytes() {
    return train_tokenizer("byte", "", 256, 1);
}

/// The ids that count, spelled; those that do not as dots.
std::string marked(const Tokenizer& tokenizer, const PackedText& text) {
    std::string out;
    for (std::size_t i = 0; i < text.ids.size(); i++) {
        std::string piece;
        tokenizer.decode(text.ids[i], false, piece);
        out += text.scored[i] ? piece : std::string(piece.size(), '.');
    }
    return out;
}

std::string refusal(const std::string& path) {
    return test::refusal([&] { read_examples({path}, {}); });
}

}  // namespace

TEST_CASE("packed texts fill bins without padding; each is a segment that begins at position 0") {
    std::vector<PackedText> texts[2];
    const std::size_t lengths[] = {9, 4, 6, 3, 5, 2, 21, 1};  // 21: three pieces of 8, 8 and 4 rows
    TokenId first = 0;
    for (std::size_t length : lengths) texts[0].push_back(text(first, length)), first += 25;
    const PackedTexts packed(texts, true, *bytes(), 7, 8, "test");
    CHECK(packed.size(DataSplit::train) == 8 + 3 + 5 + 2 + 4 + 1 + 20);
    CHECK(packed.bins(DataSplit::train) == 6);  // 8, 8, 8, 5 + 3, 4 + 4, 2 + 1
    CHECK(packed.bins(DataSplit::validation) == 0);
    std::map<std::int32_t, int> seen;
    for (std::uint64_t bin = 0; bin < 6; bin++) {
        Batch batch;
        packed.add(DataSplit::train, bin, batch);
        CHECK(batch.rows.count <= 8);
        CHECK(batch.targets.size() == batch.tokens.size());
        CHECK(packed.targets(DataSplit::train, bin) == batch.rows.count);
        for (const Segment& s : batch.rows.segments) {
            CHECK(s.position == 0);
            CHECK(batch.rows.positions[static_cast<std::size_t>(s.first)] == 0);
        }
        for (std::size_t i = 0; i < batch.tokens.size(); i++) {
            CHECK(batch.targets[i] == batch.tokens[i] + 1);
            seen[batch.targets[i]]++;
        }
    }
    CHECK(seen.size() == 43);
    for (const auto& [id, times] : seen) CHECK(times == 1);
    for (std::uint64_t epoch = 0; epoch < 3; epoch++) {  // every bin once in each
        std::set<std::uint64_t> drawn;
        for (std::uint64_t i = 0; i < 6; i++) drawn.insert(packed.train_bin(6 * epoch + i));
        CHECK(drawn.size() == 6);
    }
}

TEST_CASE("bins come in another order in every epoch") {
    std::vector<PackedText> texts[2];
    for (int i = 0; i < 12; i++) texts[0].push_back(text(20 * i, 9));
    const PackedTexts packed(texts, true, *bytes(), 7, 8, "test");
    std::vector<std::uint64_t> orders[2];
    for (std::uint64_t i = 0; i < 24; i++) orders[i / 12].push_back(packed.train_bin(i));
    CHECK(orders[0] != orders[1]);
}

TEST_CASE("examples longer than a bin lose their ends, and what is left without an answer is left out") {
    std::vector<PackedText> texts[2];
    texts[0] = {text(0, 12), text(50, 4), text(100, 12)};
    std::fill_n(texts[0][0].scored.begin(), 5, 0);
    std::fill_n(texts[0][2].scored.begin(), 10, 0);  // its answer lies behind the bin's end
    const PackedTexts packed(texts, false, *bytes(), 7, 8, "test");
    CHECK(packed.shortened() == 1);
    CHECK(packed.left_out() == 1);
    CHECK(packed.size(DataSplit::train) == 4 + 3);
    Batch batch;
    packed.add(DataSplit::train, 0, batch);
    CHECK(batch.targets == std::vector<std::int32_t>{-1, -1, -1, -1, 5, 6, 7, 8});
    std::vector<PackedText> nothing[2];
    nothing[0] = {texts[0][2]};
    CHECK_THROWS_AS(PackedTexts(nothing, false, *bytes(), 7, 8, "test"), Error);
}

TEST_CASE("a completion and an answer are learned with what ends them, prompts are not") {
    const TokenizerPtr tokenizer = bytes();
    Example pair;
    pair.prompt = "2 + 2 = ", pair.completion = "4.";
    CHECK(marked(*tokenizer, encode_example(*tokenizer, pair, nullptr)) == "........4.");
    Example talk;
    talk.messages = {{"system", "Brief."}, {"user", "Hi"},       {"assistant", "Yes?"},
                     {"user", "Bye"},      {"assistant", "So."}, {"user", "Unanswered"}};
    const ChatTemplate form = open_chat_template("chatml", "test");
    CHECK(
        marked(*tokenizer, encode_example(*tokenizer, talk, &form)) ==
        std::string(std::string("<|im_start|>system\nBrief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_"
                                "start|>assistant\n")
                        .size(),
                    '.') +
            "Yes?<|im_end|>\n" +
            std::string(std::string("<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n").size(), '.') +
            "So.<|im_end|>\n");
}

TEST_CASE("a completion without a prompt begins as a text does") {
    const auto path = shared_data("data/vocab/ggml-vocab-llama-spm.gguf");
    if (!path) return;
    const TokenizerPtr tokenizer = load_tokenizer(*path);
    Example alone;
    alone.completion = "one two";
    CHECK(encode_example(*tokenizer, alone, nullptr).ids == encode_whole(*tokenizer, "one two").ids);
}

TEST_CASE("bad lines are counted where that is asked for; lines too long for examples may be documents") {
    Scratch scratch;
    ReadOptions read;
    write_text(scratch / "a.jsonl", R"({"prompt": "a", "completion": "b"}
{"prompt": "a"}
no JSON
{"messages": [{"role": "user", "content": "u"}, {"role": "assistant", "content": "a"}]}
{"prompt": "c", "completion": "d"})");
    CHECK(are_examples({scratch / "a.jsonl"}, read));
    CHECK(has(refusal(scratch / "a.jsonl"), "line 2, completion: expected a string"));
    read.skip_bad = true;
    const Examples examples = read_examples({scratch / "a.jsonl"}, read);
    CHECK(examples.list.size() == 2);
    CHECK(examples.skipped == 3);
    CHECK(has(examples.first_skipped, "line 2, completion: expected a string"));
    write_text(scratch / "bad.jsonl", "{\"prompt\": 1}\n");
    CHECK(has(refusal([&] { read_examples({scratch / "bad.jsonl"}, read); }),
              "bad.jsonl: expected at least one example, got bad ones alone: "));
    write_text(scratch / "book.jsonl",
               "{\"text\": \"" + std::string(std::size_t{3} << 20, 'x') + "\", \"prompt\": 1}\n");
    CHECK_FALSE(are_examples({scratch / "book.jsonl"}, read));
}

TEST_CASE("examples that cannot be are refused, and file and line are named") {
    Scratch scratch;
    auto read = [&](const std::string& second) {
        write_text(scratch / "a.jsonl", "{\"prompt\": \"a\", \"completion\": \"b\"}\n\n" + second + "\n");
        const std::string said = refusal(scratch / "a.jsonl");
        return said == "accepted" ? said : said.substr(said.find("a.jsonl"));
    };
    CHECK(read(R"({"prompt": "x", "completion": "y", "more": 1})") == "accepted");
    CHECK(has(read(R"({"prompt": "x"})"), "a.jsonl: line 3, completion: expected a string, got nothing"));
    CHECK(has(read(R"({"prompt": "x", "completion": 3})"),
              "line 3, completion: expected a string, got number"));
    CHECK(has(read(R"({"prompt": "x", "completion": ""})"), "line 3, completion: expected a text"));
    CHECK(has(read("[1]"), "line 3: expected a JSON object, got array"));
    CHECK(has(read("{\"prompt\": "), "a.jsonl: line 3"));
    write_text(scratch / "a.jsonl", R"({"prompt": "a", "prompt": "b", "completion": "c"})");
    CHECK(has(refusal(scratch / "a.jsonl"), "a.jsonl: line 1: prompt: expected each key once"));
    const std::string user = R"({"role": "user", "content": "u"})",
                      answer = R"({"role": "assistant", "content": "a"})";
    CHECK(has(read("{\"messages\": [" + user + ", " + answer + "]}"),
              "line 3: expected prompt and completion, as"));
    CHECK(has(read("{\"messages\": [" + answer + "]}"), "line 3, messages[0].role: expected system or user"));
    CHECK(
        has(read("{\"messages\": [" + user + "]}"), "line 3, messages: expected an answer of the assistant"));
    CHECK(has(read(R"({"messages": [{"role": "user"}]})"),
              "line 3, messages[0].content: expected a string, got nothing"));
}
