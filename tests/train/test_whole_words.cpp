// Whole words that are masked, by how a vocabulary marks where they begin.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>

#include "support.h"
#include "text/train/make.h"
#include "train/task/task.h"

using namespace linnet;

namespace {

std::string sentences() {
    constexpr std::array<const char*, 6> syllables{"ki", "lo", "ma", "tu", "re", "na"};
    constexpr std::array<const char*, 6> ends{" ", " ", ", ", ". ", "! ", "? "};
    std::string text;
    std::uint32_t random = 1;
    auto below = [&](std::uint32_t n) { return (random = random * 1664525 + 1013904223) / 65536 % n; };
    for (int word = 0; word < 3000; word++) {
        for (std::uint32_t i = 0, n = 1 + below(4); i < n; i++) text += syllables[below(6)];
        text += ends[below(6)];
    }
    return text;
}

std::unique_ptr<Task> masked_words(const std::string& text, const TokenizerPtr& tokenizer) {
    const RunConfig config = read_run_config(
        {{"model", {{"kind", "encoder"}, {"context", 24}, {"width", 8}, {"layers", 1}, {"heads", 2}}},
         {"train", {{"objective", "masked"}, {"masked", {{"words", true}, {"share", 0.3}}}}}},
        "c", {});
    TextSplit split;
    split.train = {std::string_view(text).substr(0, text.size() / 2)};
    split.validation = {std::string_view(text).substr(text.size() / 2)};
    return window_task(config, WindowSampler(TokenSource::from_documents(split, false, *tokenizer, 1), 1, 24),
                       tokenizer, "t");
}

}  // namespace

TEST_CASE("masked words are whole, and punctuation is a word of its own, however WordPiece spells it") {
    const test::Scratch s;
    const std::string text = sentences();
    const TokenizerPtr made = made_tokenizer("wordpiece", text, 60, true, {}, 1);
    test::write_text(s / "t.gguf", tokenizer_to_gguf(*made));
    // In files words are marked where they begin, in made vocabularies where they go on.
    const TokenizerPtr read = load_tokenizer(s / "t.gguf");
    const auto task = masked_words(text, made), other = masked_words(text, read);
    int joined = 0, apart = 0;
    for (std::uint64_t index = 0; index < 60; index++) {
        Batch batch, same;
        task->add(DataSplit::train, index, batch);
        other->add(DataSplit::train, index, same);
        CHECK(batch.outputs == same.outputs);
        CHECK(batch.tokens == same.tokens);
        std::vector<TokenId> ids(batch.tokens.begin(), batch.tokens.end());
        std::vector<bool> chosen(ids.size());
        for (std::size_t k = 0; k < batch.outputs.size(); k++) {
            const auto row = static_cast<std::size_t>(batch.outputs[k]);
            ids[row] = batch.targets[k], chosen[row] = true;
        }
        for (std::size_t row = 1; row < ids.size(); row++) {
            if (made->is_control(ids[row]) || made->is_control(ids[row - 1])) continue;
            const std::string_view piece = made->piece(ids[row]);
            if (piece.starts_with("##")) {
                CHECK(chosen[row] == chosen[row - 1]);
                joined += chosen[row];
            } else if (piece.find_first_of(",.!?") != piece.npos) {
                apart += chosen[row] != chosen[row - 1];
            }
        }
    }
    CHECK(joined > 0);
    CHECK(apart > 0);
}
