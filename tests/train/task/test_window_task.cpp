// What a window of text becomes where replaced tokens are to be told.
#include <doctest/doctest.h>

#include <algorithm>

#include "commands/tiny.h"
#include "model/encode/encoder_text.h"
#include "text/train/make.h"
#include "train/task/task.h"

using namespace linnet;

namespace {

struct Windows {
    TokenizerPtr tokenizer = made_tokenizer("char", test::counting_text(), 0, false,
                                            {"<|endoftext|>", "[CLS]", "[SEP]", "[MASK]"}, 1);
    std::unique_ptr<Task> task(const std::string& objective, std::int64_t seed) const {
        RunConfig config = read_run_config(
            {{"model", {{"kind", "encoder"}, {"context", 24}, {"width", 8}, {"layers", 1}, {"heads", 2}}},
             {"train", {{"objective", objective}, {"seed", seed}}}},
            "c", {});
        TextSplit split;
        static const std::string kept = test::counting_text();
        split.train = {std::string_view(kept).substr(0, kept.size() / 2)};
        split.validation = {std::string_view(kept).substr(kept.size() / 2)};
        return window_task(config,
                           WindowSampler(TokenSource::from_documents(split, false, *tokenizer, 1),
                                         static_cast<std::uint64_t>(seed), 24),
                           tokenizer, "t");
    }
};

}  // namespace

TEST_CASE(
    "a window of replaced tokens: all chosen ones masked, all rows told, the generator's streams apart") {
    const Windows windows;
    const TokenId mask = *EncoderMarks(*windows.tokenizer).mask;
    const auto replaced = windows.task("replaced", 1), masked = windows.task("masked", 1),
               other = windows.task("replaced", 2);
    Batch batch, theirs;
    for (std::uint64_t i = 0; i < 5; i++) {
        replaced->add(DataSplit::train, i, batch);
        masked->add(DataSplit::train, i, theirs);
    }
    auto of = [&](const char* stream) { return *batch.find_stream(stream); };
    const std::vector<std::int32_t> masks = of("masks"), given = of("given"), labels = of("labels"),
                                    draws = of("draws");
    CHECK(masks == theirs.outputs);  // the same tokens are chosen
    CHECK(of("originals") == theirs.targets);
    CHECK(masks.size() == 5 * 3);  // of 22 between marks
    REQUIRE(given.size() == 5 * 24);
    REQUIRE(labels.size() == given.size());
    CHECK(batch.outputs.size() == given.size());
    CHECK(target_count(batch) == 5 * 24);
    CHECK(replaced->targets(0, 12) == 12 * 24);
    std::size_t k = 0;
    for (std::size_t row = 0; row < given.size(); row++) {
        CHECK(batch.outputs[row] == static_cast<std::int32_t>(row));
        const bool chosen = k < masks.size() && masks[k] == static_cast<std::int32_t>(row);
        if (chosen) k++;
        CHECK((batch.tokens[row] == mask) == chosen);
        CHECK(given[row] == (chosen ? -static_cast<std::int32_t>(k) : batch.tokens[row]));
        CHECK(labels[row] == (chosen ? -static_cast<std::int32_t>(k) : 0));
    }
    CHECK(*std::min_element(draws.begin(), draws.end()) >= 0);
    CHECK(*std::max_element(draws.begin(), draws.end()) > 1 << 30);
    std::vector<std::int32_t> once = draws;
    std::sort(once.begin(), once.end());
    CHECK(std::unique(once.begin(), once.end()) == once.end());
    // Held-out windows are the same in every run, those to train on are not.
    for (const DataSplit split : {DataSplit::train, DataSplit::validation}) {
        Batch one, two;
        replaced->add(split, 3, one), other->add(split, 3, two);
        CHECK((one.stream("draws") == two.stream("draws")) == (split == DataSplit::validation));
        CHECK((one.stream("given") == two.stream("given")) == (split == DataSplit::validation));
    }
}
