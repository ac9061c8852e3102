// Windows of two texts, of which the second may follow the first.
#include <doctest/doctest.h>

#include <algorithm>

#include "model/encode/encoder_text.h"
#include "model/trace/trace.h"
#include "support.h"
#include "text/train/make.h"
#include "train/task/task.h"

using namespace linnet;

namespace {

constexpr std::int64_t length = 24;

/// A vocabulary of bytes with the marks that masks need.
TokenizerPtr vocabulary() {
    return made_tokenizer("bpe", "abc", 270, false, {"<|endoftext|>", "[CLS]", "[SEP]", "[MASK]"}, 1);
}

/// A text in which every place says where it is.
std::string text_of(std::size_t bytes) {
    std::string text;
    while (text.size() < bytes)
        text += {static_cast<char>('!' + text.size() / 90), static_cast<char>('!' + text.size() % 90)};
    return text;
}

/// Windows of it.
std::unique_ptr<Task> task_of(const TokenizerPtr& tokenizer, std::uint64_t seed, bool next,
                              std::size_t bytes = 4000) {
    RunConfig config;
    config.model.kind = "encoder", config.model.segments = 2, config.model.head.next = next;
    config.train.objective = "masked", config.train.sequence = length;
    config.train.seed = static_cast<std::int64_t>(seed);
    config.train.masked.share = 0.1;
    const std::string text = text_of(bytes);
    TextSplit split;
    const std::string_view all(text);
    split.train = {all.substr(0, bytes * 3 / 4)}, split.validation = {all.substr(bytes * 3 / 4)};
    return window_task(config,
                       WindowSampler(TokenSource::from_documents(split, false, *tokenizer, 1), seed, length),
                       tokenizer, "v");
}

struct Pair {
    std::vector<std::int32_t> ids, first, second;  // ids: with what was masked put back
    std::int32_t label;
};

Pair pair_of(const Task& task, const EncoderMarks& marks, DataSplit split, std::uint64_t index) {
    Batch batch;
    task.add(split, index, batch);
    Pair pair;
    pair.ids = batch.tokens;
    for (std::size_t i = 0; i < batch.outputs.size(); i++)
        pair.ids[static_cast<std::size_t>(batch.outputs[i])] = batch.targets[i];
    REQUIRE(pair.ids.size() == length);
    CHECK(pair.ids.front() == *marks.first);
    CHECK(pair.ids.back() == *marks.separator);
    CHECK(std::count(pair.ids.begin(), pair.ids.end(), *marks.separator) == 2);
    const auto middle = std::find(pair.ids.begin(), pair.ids.end(), *marks.separator);
    pair.first.assign(pair.ids.begin() + 1, middle);
    pair.second.assign(middle + 1, pair.ids.end() - 1);
    const std::vector<std::int32_t>& segments = *batch.find_stream("segments");
    for (std::size_t i = 0; i < segments.size(); i++)
        CHECK(segments[i] == (i > pair.first.size() + 1 ? 1 : 0));
    REQUIRE(batch.find_stream("next")->size() == 1);
    pair.label = batch.find_stream("next")->front();
    return pair;
}

}  // namespace

TEST_CASE("of two texts the second follows the first half of the time, else it is from elsewhere") {
    const TokenizerPtr tokenizer = vocabulary();
    const EncoderMarks marks(*tokenizer);
    const std::string text = text_of(4000);
    const auto task = task_of(tokenizer, 7, true), other = task_of(tokenizer, 8, true);
    for (const DataSplit split : {DataSplit::train, DataSplit::validation}) {
        const std::uint64_t count = split == DataSplit::train ? 400 : task->held_out();
        std::uint64_t following = 0, same = 0;
        std::vector<std::size_t> lengths;
        for (std::uint64_t i = 0; i < count; i++) {
            const Pair pair = pair_of(*task, marks, split, i);
            const std::string first = tokenizer->decode(pair.first), second = tokenizer->decode(pair.second);
            CHECK(test::has(text, first));
            CHECK(test::has(text, second));
            CHECK(test::has(text, first + second) == (pair.label == next_follows));
            following += pair.label == next_follows;
            lengths.push_back(pair.first.size());
            const Pair again = pair_of(*task, marks, split, i), theirs = pair_of(*other, marks, split, i);
            CHECK(again.ids == pair.ids);
            same += theirs.ids == pair.ids && theirs.label == pair.label;
        }
        CHECK(following > count * 2 / 5 - 5);
        CHECK(following < count * 3 / 5 + 5);
        CHECK(*std::ranges::min_element(lengths) >= (length - 3) / 4);
        CHECK(*std::ranges::max_element(lengths) <= length - 3 - (length - 3) / 4);
        if (split == DataSplit::validation)
            CHECK(same == count);  // held out ones are alike in every run
        else
            CHECK(same < count / 4);
    }
}

TEST_CASE("a text of one window has nothing from elsewhere, and windows without pairs are as they were") {
    const TokenizerPtr tokenizer = vocabulary();
    const EncoderMarks marks(*tokenizer);
    const auto small = task_of(tokenizer, 7, true, 40);
    for (std::uint64_t i = 0; i < 20; i++)
        CHECK(pair_of(*small, marks, DataSplit::train, i).label == next_follows);
    Batch batch;
    task_of(tokenizer, 7, false)->add(DataSplit::train, 0, batch);
    CHECK(batch.find_stream("next") == nullptr);
    CHECK(std::count(batch.tokens.begin(), batch.tokens.end(), *marks.separator) == 1);
    const TokenizerPtr bare = made_tokenizer("bpe", "abc", 270, false, {"<|endoftext|>", "[MASK]"}, 1);
    const std::string line = test::refusal([&] { task_of(bare, 7, true); });
    CHECK(line == "v: vocabulary: expected [CLS] and [SEP], as model.head.next is true, got none of them");
}
