#include "generate/beam.h"

#include <doctest/doctest.h>

#include "base/log_sum.h"
#include "model/encode/encoder_text.h"
#include "support.h"
#include "train/kinds.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// What a model answers by always taking the likeliest token, and the log probability of that.
struct Greedy {
    std::vector<TokenId> ids;
    double logprob = 0;
};
Greedy greedy(Engine& engine, std::span<const TokenId> source, TokenId start, std::size_t most) {
    Sequence sequence = engine.start();
    sequence.encode(source);
    Greedy answer;
    std::span<const float> logits = sequence.append({&start, 1}, Phase::read);
    while (answer.ids.size() < most) {
        const auto best = static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin());
        answer.logprob += static_cast<double>(logits[best]) - log_sum(logits);
        answer.ids.push_back(static_cast<TokenId>(best));
        if (engine.model().tokenizer().is_end(answer.ids.back())) break;
        logits = sequence.append({&answer.ids.back(), 1}, Phase::write);
    }
    return answer;
}

}  // namespace

TEST_CASE("unlikely answers that end early do not end a search, nor stand in the way of likely ones") {
    BeamAnswers answers(2);
    CHECK_FALSE(answers.settled(-1));
    answers.add({{1}, -9, true});
    answers.add({{2}, -8, true});
    CHECK(answers.full());
    CHECK_FALSE(answers.settled(-1));  // what goes on is likelier than both
    answers.add({{3, 4}, -1.5, true});
    CHECK_FALSE(answers.settled(-7));
    CHECK(answers.settled(-8));
    CHECK(answers.settled(-20));
    CHECK(answers.best().ids == std::vector<TokenId>{3, 4});
    answers.add({{5}, -1.5, true});  // as good: the older stays first
    CHECK(answers.best().ids == std::vector<TokenId>{3, 4});
    CHECK(answers.settled(-2));
}

TEST_CASE("beams find answers at least as likely as greedy ones, and one beam finds those") {
    Place place(kind_named("pairs"));
    REQUIRE(place.train("m", 40, {"--quiet"}).exit == 0);  // so few that much seems possible
    const auto model = Model::open(place.s / "m/last.gguf");
    EngineOptions options;
    options.threads = 1;
    Engine engine(model, options);
    const TokenId start = answer_marks(model->tokenizer(), model->config(), "").start;
    constexpr std::int64_t most = 30;
    BeamSearch one(model, options, {1, 0, most}), four(model, options, {4, 0, most}),
        many(model, options, {16, 0, most});
    int better = 0;
    for (int n = 0; n < 1000; n += 61) {
        CAPTURE(n);
        const std::vector<TokenId> source = text_input(model->tokenizer(), std::to_string(n), false).tokens;
        const Greedy first = greedy(engine, source, start, most);
        const BeamAnswer same = one.run(source, {&start, 1});
        CHECK(same.ids == first.ids);
        CHECK(same.score == doctest::Approx(first.logprob).epsilon(1e-4));
        const BeamAnswer found = four.run(source, {&start, 1}), wide = many.run(source, {&start, 1});
        CHECK(found.score >= first.logprob - 1e-3);
        CHECK(wide.score >= found.score - 1e-3);
        better += found.ids != first.ids;
    }
    CHECK(better > 0);  // else the model says nothing of beams
}

TEST_CASE("a search whose beams can hold every beginning finds the likeliest of all answers") {
    Place place(kind_named("pairs"));
    REQUIRE(place.train("m", 10, {"--quiet"}).exit == 0);
    const auto model = Model::open(place.s / "m/last.gguf");
    EngineOptions options;
    options.threads = 1;
    Engine engine(model, options);
    const TokenId start = answer_marks(model->tokenizer(), model->config(), "").start;
    const std::vector<TokenId> source = text_input(model->tokenizer(), "42", false).tokens;
    const auto vocabulary = static_cast<TokenId>(model->tokenizer().size());
    REQUIRE(vocabulary < 64);
    for (const double penalty : {0.0, 1.0, 3.0}) {
        CAPTURE(penalty);
        // All answers of at most two tokens.
        BeamAnswer best{{}, -INFINITY, false};
        auto consider = [&](std::vector<TokenId> ids, double logprob) {
            const double score = logprob / std::pow(static_cast<double>(ids.size()), penalty);
            if (score > best.score) best = {std::move(ids), score, false};
        };
        auto logprobs = [&](Sequence& sequence, TokenId id, Phase phase) {
            const std::span<const float> logits = sequence.append({&id, 1}, phase);
            std::vector<double> all;
            for (float logit : logits) all.push_back(static_cast<double>(logit) - log_sum(logits));
            return all;
        };
        Sequence sequence = engine.start();
        sequence.encode(source);
        const std::vector<double> first = logprobs(sequence, start, Phase::read);
        for (TokenId a = 0; a < vocabulary; a++) {
            const double before = first[static_cast<std::size_t>(a)];
            if (model->tokenizer().is_end(a)) {
                consider({a}, before);
                continue;
            }
            const std::vector<double> second = logprobs(sequence, a, Phase::write);
            for (TokenId b = 0; b < vocabulary; b++)
                consider({a, b}, before + second[static_cast<std::size_t>(b)]);
            sequence.rewind(1);
        }
        const BeamAnswer found = BeamSearch(model, options, {64, penalty, 2}).run(source, {&start, 1});
        CHECK(found.ids == best.ids);
        CHECK(found.score == doctest::Approx(best.score).epsilon(1e-4));
    }
}
