#include "generate/draft.h"

#include <doctest/doctest.h>

#include <csignal>

#include "base/signals.h"
#include "model/small_models.h"
#include "model/trace/trace.h"
#include "random_values.h"
#include "support.h"

using namespace linnet;

TEST_CASE("a signal while a draft model reads means no guesses, and the next ones are as without it") {
    install_stop_signals();
    const TokenizerPtr tokenizer = train_tokenizer("byte", "text", 256, 1);
    const ModelConfig config =
        test::config_with(tokenizer->size(), {test::small_model, {{"model.context", 64}}});
    const TracedModel traced = trace(config, false);
    std::vector<std::vector<float>> values = test::random_values(traced.graph, 5, 0.2);
    const std::vector<Tensor> parameters = test::tensors_of(traced.graph, values);
    EngineOptions options;
    options.threads = 1, options.sequences = 2;
    Engine engine(Model::view(config, tokenizer, parameters), options);
    GenerateOptions greedy;
    greedy.tokens = 20;
    greedy.sampler.temperature = 0;
    std::vector<TokenId> prompt;
    for (int i = 0; i < 30; i++) prompt.push_back((i * 31 + 7) % 256);
    const Continuation text(*tokenizer, prompt, greedy, [](std::optional<TokenId>, std::string_view) {});
    const auto guesses = [&](ModelDrafter& drafter) {
        std::vector<TokenId> ids;
        drafter.draft(text, 4, ids);
        return ids;
    };
    ModelDrafter undisturbed(engine), stopped(engine);
    const std::vector<TokenId> expected = guesses(undisturbed);
    CHECK(expected.size() == 4);
    std::raise(SIGINT);
    CHECK(guesses(stopped).empty());
    forget_interrupt();
    CHECK(guesses(stopped) == expected);
}
