#include "generate/draft.h"

#include <doctest/doctest.h>

#include <array>
#include <csignal>

#include "base/signals.h"
#include "generate/fakes.h"
#include "model/small_models.h"
#include "model/trace/trace.h"
#include "random_values.h"
#include "support.h"

using namespace linnet;

namespace {

/// A small draft model of bytes, with random weights and a context of 64 tokens.
struct DraftModel {
    TokenizerPtr tokenizer = train_tokenizer("byte", "text", 256, 1);
    ModelConfig config = test::config_with(tokenizer->size(), {test::small_model, {{"model.context", 64}}});
    TracedModel traced = trace(config, false);
    std::vector<std::vector<float>> values = test::random_values(traced.graph, 5, 0.2);
    std::vector<Tensor> parameters = test::tensors_of(traced.graph, values);
    EngineOptions options{.threads = 1, .sequences = 2};
    Engine engine{Model::view(config, tokenizer, parameters), options};
};

Continuation text_of(const Tokenizer& tokenizer, std::vector<TokenId> tokens) {
    GenerateOptions greedy;
    greedy.tokens = -1;
    greedy.ignore_end = true;
    greedy.sampler.temperature = 0;
    return {tokenizer, std::move(tokens), greedy, [](std::optional<TokenId>, std::string_view) {}};
}

std::vector<TokenId> some_text(int size) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < size; i++) tokens.push_back((i * 31 + i / 7 + 7) % 256);
    return tokens;
}

std::vector<TokenId> guesses(Drafter& drafter, const Continuation& text) {
    std::vector<TokenId> ids;
    drafter.draft(text, 4, ids);
    return ids;
}

}  // namespace

TEST_CASE("a signal while a draft model reads means no guesses, and the next ones are as without it") {
    install_stop_signals();
    DraftModel small;
    const Continuation text = text_of(*small.tokenizer, some_text(30));
    ModelDrafter undisturbed(small.engine), stopped(small.engine);
    const std::vector<TokenId> expected = guesses(undisturbed, text);
    CHECK(expected.size() == 4);
    std::raise(SIGINT);
    CHECK(guesses(stopped, text).empty());
    forget_interrupt();
    CHECK(guesses(stopped, text) == expected);
}

TEST_CASE("of a text longer than its context a draft model reads the newest half, and then goes on") {
    DraftModel small;
    ModelDrafter drafter(small.engine);
    std::vector<TokenId> tokens = some_text(200);
    Continuation text = text_of(*small.tokenizer, tokens);
    std::vector<float> logits(256);
    for (int step = 0; step < 80; step++) {
        CAPTURE(step);
        // 32 tokens, then up to 64, which leave no room for a guess, and 32 again.
        const std::size_t read = 32 + static_cast<std::size_t>(step) % 33;
        const std::vector<TokenId> newest(text.text().end() - static_cast<std::ptrdiff_t>(read),
                                          text.text().end());
        ModelDrafter other(small.engine);  // which holds nothing yet
        const std::vector<TokenId> expected = guesses(other, text_of(*small.tokenizer, newest));
        CHECK(expected.size() == std::min<std::size_t>(4, 64 - read));
        CHECK(guesses(drafter, text) == expected);
        std::ranges::fill(logits, 0.0F);
        logits[static_cast<std::size_t>(step * 37 % 256)] = 9;
        REQUIRE(text.take(logits));
        if (step == 40) text.forget(1, 100);  // what the drafter holds stays what it is
    }
}

TEST_CASE("guesses from a text of which the oldest part is forgotten stay right") {
    const test::FakeTokenizer tokenizer({"a", "b", "c", "d"});
    const auto at = [](int i) {
        return std::array<TokenId, 6>{0, 0, 1, 3, 1, 0}[static_cast<std::size_t>(i % 6)];
    };
    const int size = 10000, rounds = 2000;
    std::vector<TokenId> tokens;
    for (int i = 0; i < size; i++) tokens.push_back(at(i));
    Continuation text = text_of(tokenizer, tokens);
    LookupDrafter drafter;
    int right = 0;
    for (int i = size; i < size + rounds; i++) {
        std::vector<float> logits(4);
        logits[static_cast<std::size_t>(at(i))] = 9;
        REQUIRE(text.take(logits));
        text.forget(2, size - 1000);
        const std::vector<TokenId> ids = guesses(drafter, text);
        right += !ids.empty() && ids[0] == at(i + 1);
    }
    CHECK(text.forgotten() > rounds);
    CHECK(right == rounds);
}
