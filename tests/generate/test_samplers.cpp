// Samplers beyond those of test_sampler.cpp, each against its definition written out.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "base/rng.h"
#include "generate/fakes.h"
#include "generate/sampler.h"

using namespace linnet;
using namespace linnet::test;

namespace {

std::set<TokenId> drawn(const SamplerOptions& options, std::span<const float> logits, int n = 3000,
                        std::vector<TokenId> history = {}, const TokenMask* mask = nullptr) {
    Sampler sampler(options);
    std::set<TokenId> ids;
    for (int i = 0; i < n; i++)
        ids.insert(*sampler.pick(logits, history, static_cast<std::uint64_t>(i), mask));
    return ids;
}

TokenId first_choice(SamplerOptions options, std::span<const float> logits, std::vector<TokenId> history) {
    options.temperature = 0;
    return *Sampler(options).pick(logits, history, 0);
}

std::vector<double> softmax(std::span<const float> logits, double temperature = 1) {
    std::vector<double> p;
    double whole = 0;
    for (float x : logits) p.push_back(std::exp(static_cast<double>(x) / temperature)), whole += p.back();
    for (double& x : p) x /= whole;
    return p;
}

const std::vector<float> five{0.f, 3.f, 1.f, 2.f, -4.f};  // shares 0.032 0.643 0.087 0.237 0.0006

}  // namespace

TEST_CASE("every sampler has a name of its own, is in the default order once, and removes no last token") {
    std::set<std::string_view> names;
    for (const SamplerRow& row : samplers()) {
        CHECK(names.insert(row.name).second);
        CHECK(sampler_chain(row.name).at(0) == &row);
    }
    const SamplerChain chain = sampler_chain(default_samplers);
    CHECK(chain.size() == samplers().size());
    for (std::size_t i = 0; i < chain.size(); i++) CHECK(chain[i] == &samplers()[i]);
    SamplerOptions hard;  // as hard as options allow
    hard.top_k = 1, hard.top_p = 0, hard.min_p = 1, hard.typical_p = 0, hard.top_n_sigma = 1e-9;
    hard.xtc_probability = 1, hard.xtc_threshold = 0, hard.dynatemp_range = 5, hard.dry_multiplier = 1e6;
    hard.repeat_penalty = 1000, hard.presence_penalty = 1000, hard.temperature = 1e9;
    const std::vector<TokenId> history{1, 2, 1, 2, 1};
    for (const SamplerRow& first : samplers())
        for (const SamplerRow& second : samplers()) {
            if (&first == &second) continue;
            hard.samplers = std::string(first.name) + ";" + std::string(second.name);
            CAPTURE(hard.samplers);
            for (std::uint64_t step = 0; step < 20; step++)
                CHECK(Sampler(hard).pick(five, history, step).has_value());
        }
    // Logits beyond a float's range stay in it: the likeliest stays so, and no weights are damaged.
    SamplerOptions cold = plain();
    cold.samplers = "temperature;penalties", cold.temperature = 1e-40, cold.repeat_penalty = 1.1;
    const std::optional<TokenId> likeliest = Sampler(cold).pick(five, {}, 0);
    cold.temperature = 1e-30;
    CHECK(likeliest == Sampler(cold).pick(five, {}, 0));
    cold.temperature = 1, cold.repeat_penalty = 1e-3;
    std::vector<float> high(five.begin(), five.end());
    high[2] = 3e38f;
    CHECK(Sampler(cold).pick(high, std::vector<TokenId>{2}, 0) == TokenId{2});
    // A temperature of 1 leaves the logits as they are, and then penalties make another the largest.
    SamplerOptions late = plain();
    late.samplers = "temperature;penalties;min_p", late.presence_penalty = 10, late.min_p = 0.5;
    late.repeat_window = 5;
    for (std::uint64_t step = 0; step < 20; step++)
        CHECK(Sampler(late).pick(five, history, step) == TokenId{3});
}

TEST_CASE("a list of samplers takes llama.cpp's names, and refuses unknown and double ones") {
    CHECK(sampler_chain(default_samplers) ==
          sampler_chain("penalties, dry,top-nsigma,top-k,typ_p,top-p,min-p,xtc,temp"));
    CHECK(sampler_chain(";;").empty());
    CHECK_THROWS_WITH_AS(sampler_chain("top_k;topp", Exit::usage, "f"),
                         doctest::Contains("did you mean top_p?"), Error);
    CHECK_THROWS_WITH_AS(sampler_chain("top_k;top-k", Exit::input, "f"),
                         doctest::Contains("f: samplers: expected each"), Error);
}

TEST_CASE("the order of samplers is the list's") {
    // Top-p of 0.6 keeps {1}; behind a temperature of 10 all five are nearly alike.
    SamplerOptions o = plain();
    o.temperature = 10;
    o.top_p = 0.6;
    CHECK(drawn(o, five) == std::set<TokenId>{1});
    o.samplers = "temperature;top_p";
    CHECK(drawn(o, five) == std::set<TokenId>{1, 2, 3});
    o.samplers = "temperature";
    CHECK(drawn(o, five).size() == 5);
    o.samplers = "";  // the model's own distribution
    o.temperature = 1e-3;
    CHECK(drawn(o, five).size() >= 4);
}

TEST_CASE("a temperature before other samplers is one: the same draws as of divided logits") {
    SamplerOptions first = plain(), scaled = plain();
    first.samplers = "temperature;penalties;top_p;min_p;typical_p";
    first.temperature = 2;
    first.presence_penalty = scaled.presence_penalty = 0.25;
    first.top_p = scaled.top_p = 0.9;
    first.min_p = scaled.min_p = 0.05;
    first.typical_p = scaled.typical_p = 0.95;
    scaled.samplers = "penalties;top_p;min_p;typical_p";
    std::vector<float> half;
    for (float x : five) half.push_back(x / 2);
    const std::vector<TokenId> history{3, 3, 0};
    Sampler a(first), b(scaled);
    for (std::uint64_t step = 0; step < 500; step++)
        CHECK(a.pick(five, history, step) == b.pick(half, history, step));
}

TEST_CASE("presence and frequency penalties are subtracted once, and for every time") {
    SamplerOptions o = plain();
    o.repeat_window = 4;
    const std::vector<float> logits{4, 3.5f, 1};
    CHECK(first_choice(o, logits, {0}) == 0);
    o.presence_penalty = 1;
    CHECK(first_choice(o, logits, {0}) == 1);
    CHECK(first_choice(o, logits, {0, 0, 0, 1}) == 0);  // 3, 2.5: once each
    o.presence_penalty = 0;
    o.frequency_penalty = 1;
    CHECK(first_choice(o, logits, {0, 0, 0, 1}) == 1);              // 1, 2.5
    CHECK(first_choice(o, logits, {0, 0, 0, 1, 2, 2, 2, 2}) == 0);  // none is recent but 2
    o.frequency_penalty = -1;
    CHECK(first_choice(o, logits, {1, 1}) == 1);
}

TEST_CASE("typical-p keeps those whose surprise is nearest the entropy") {
    SamplerOptions o = plain();
    o.typical_p = 0.2;
    const std::vector<double> p = softmax(five);
    double entropy = 0;
    for (double x : p) entropy -= x * std::log(x);
    std::vector<std::pair<double, TokenId>> order;
    for (std::size_t i = 0; i < p.size(); i++)
        order.push_back({std::abs(-std::log(p[i]) - entropy), static_cast<TokenId>(i)});
    std::sort(order.begin(), order.end());
    std::set<TokenId> expected;
    double held = 0;
    for (auto [distance, id] : order) {
        expected.insert(id);
        if ((held += p[static_cast<std::size_t>(id)]) > o.typical_p) break;
    }
    CHECK(drawn(o, five) == expected);
    o.typical_p = 0;
    CHECK(drawn(o, five).size() == 1);
    // A flat choice of ten beside one sure one of 0.2: the sure one is untypical.
    std::vector<float> logits(11, std::log(0.08f));
    logits[10] = std::log(0.2f);
    o.typical_p = 0.7;
    CHECK_FALSE(drawn(o, logits).contains(10));
}

TEST_CASE("top-n-sigma keeps logits near the largest") {
    SamplerOptions o = plain();
    o.top_n_sigma = 1;  // mean 0.4, deviation 2.42: from 0.58 on
    CHECK(drawn(o, five) == std::set<TokenId>{1, 2, 3});
    o.top_n_sigma = 0.5;  // from 1.79 on
    CHECK(drawn(o, five) == std::set<TokenId>{1, 3});
    // A banned token is none of those whose deviation counts, whatever the temperature made of its logit.
    std::vector<float> six(five.begin(), five.end());
    six.push_back(1);
    o.biases = {{5, -std::numeric_limits<float>::infinity()}};
    CHECK(drawn(o, six) == std::set<TokenId>{1, 3});
    o.samplers = "temperature;top_n_sigma";
    o.temperature = 1.0000001;
    CHECK(drawn(o, six) == std::set<TokenId>{1, 3});
}

TEST_CASE("XTC excludes the top choices but the least likely of them, as often as it is told") {
    SamplerOptions o = plain();
    o.xtc_probability = 1;
    o.xtc_threshold = 0.08;  // 1, 3 and 2 reach it
    CHECK(drawn(o, five) == std::set<TokenId>{0, 2, 4});
    o.xtc_threshold = 0.5;  // one alone stays
    CHECK(drawn(o, five).contains(1));
    o.xtc_threshold = 0.6;  // above a half: off
    CHECK(drawn(o, five).contains(1));
    o.xtc_threshold = 0.2;
    o.xtc_probability = 0.25;
    Sampler with(o), without(plain());
    int cut = 0, n = 8000;
    for (int i = 0; i < n; i++) {
        const auto step = static_cast<std::uint64_t>(i);
        cut += *with.pick(five, {}, step) != *without.pick(five, {}, step);
    }
    // Where it cuts, 0.643 of the draws, those of token 1, become others.
    CHECK(cut > 0.643 * 0.25 * n * 0.8);
    CHECK(cut < 0.25 * n);
}

TEST_CASE("a dynamic temperature lies between its limits by the entropy") {
    SamplerOptions o = plain();
    o.temperature = 1;
    o.dynatemp_range = 0.5;
    o.dynatemp_exponent = 2;
    const std::vector<double> p = softmax(five);
    double entropy = 0;
    for (double x : p) entropy -= x * std::log(x);
    const double t = 0.5 + 1.0 * std::pow(entropy / std::log(5.0), 2);
    SamplerOptions fixed = plain();
    fixed.temperature = t;
    Sampler a(o), b(fixed);
    for (std::uint64_t step = 0; step < 2000; step++) CHECK(a.pick(five, {}, step) == b.pick(five, {}, step));
    o.temperature = 0, o.dynatemp_range = 3;  // a range alone is a temperature, too
    CHECK(drawn(o, five).size() > 1);
}

TEST_CASE("Mirostat steers the surprise to its target, and learns from nothing but its picks") {
    std::vector<float> logits;
    for (int i = 0; i < 400; i++) logits.push_back(-1.1f * std::log(static_cast<float>(i + 1)));
    const std::vector<double> p = softmax(logits);
    for (double target : {2.0, 4.0}) {
        SamplerOptions o = plain();
        o.mirostat = 2;
        o.mirostat_ent = target;
        o.top_k = 2;  // passed over
        Sampler sampler(o);
        CHECK(sampler.state().mu == 2 * target);
        double surprise = 0;
        const int n = 4000;
        for (int i = 0; i < n; i++) {
            const Sampler::State before = sampler.state();
            const TokenId id = *sampler.pick(logits, {}, static_cast<std::uint64_t>(i));
            const Sampler::State after = sampler.state();
            double kept = 0;
            for (double x : p)
                if (-std::log2(x) <= before.mu) kept += x;
            kept = std::max(kept, p[0]);
            const double seen = -std::log2(p[static_cast<std::size_t>(id)] / kept);
            CHECK(after.mu == doctest::Approx(before.mu - 0.1 * (seen - target)).epsilon(1e-6));
            surprise += seen / n;
            if (i % 100 == 0) {  // the same state, the same pick
                sampler.set_state(before);
                CHECK(sampler.pick(logits, {}, static_cast<std::uint64_t>(i)) == id);
                CHECK(sampler.state() == after);
            }
        }
        CHECK(surprise == doctest::Approx(target).epsilon(0.05));
    }
}

TEST_CASE("a bias is added before all else, and a ban holds where anything else is left") {
    SamplerOptions o = plain();
    const float infinity = std::numeric_limits<float>::infinity();
    o.biases = {{4, 100}, {1, -infinity}};
    o.temperature = 0;
    CHECK(Sampler(o).pick(five, {}, 0) == 4);
    o.biases = {{1, -infinity}};
    CHECK(Sampler(o).pick(five, {}, 0) == 3);
    o.biases = {{4, 100}, {4, -100}, {1, -infinity}, {1, 100}};  // they add up, and a ban stays one
    CHECK(Sampler(o).pick(five, {}, 0) == 3);
    o = plain();
    o.biases = {{1, -infinity}, {3, -infinity}, {99, 5}};
    CHECK(drawn(o, five) == std::set<TokenId>{0, 2, 4});
    TokenMask mask;
    mask.clear(5);
    mask.set(1);
    mask.finish();
    CHECK(drawn(o, five, 20, {}, &mask) == std::set<TokenId>{1});
    o.repeat_penalty = 1.1;  // of what is banned, too
    CHECK(drawn(o, five, 20, {1, 1}, &mask) == std::set<TokenId>{1});
    o = plain();
    o.biases = {{4, 3e38F}, {4, 3e38F}};
    CHECK(drawn(o, five) == std::set<TokenId>{4});
}

TEST_CASE("nothing is drawn that a mask forbids, few tokens or many, whatever the samplers are") {
    std::vector<float> logits;
    const Rng rng(3, 1);
    for (std::uint64_t i = 0; i < 5000; i++) logits.push_back(static_cast<float>(rng.normal(i)));
    for (std::size_t every : {2, 3, 700, 5000}) {
        TokenMask mask;
        mask.clear(logits.size());
        for (std::size_t i = every - 1; i < logits.size(); i += every) mask.set(i);
        mask.finish();
        CHECK(mask.count() == logits.size() / every);
        CHECK(mask.listed() == (mask.count() <= TokenMask::few));
        std::vector<float> masked = logits;
        for (std::size_t i = 0; i < masked.size(); i++)
            if (!mask.has(i)) masked[i] = -std::numeric_limits<float>::infinity();
        for (int kind = 0; kind < 5; kind++) {
            SamplerOptions o = kind == 0 ? SamplerOptions() : plain();
            if (kind == 1) o.temperature = 0;
            if (kind == 2) o.typical_p = 0.5;
            if (kind == 3) o.repeat_penalty = 1.5, o.top_k = 20;
            if (kind == 4) o.mirostat = 2;
            Sampler with(o), cut(o);
            for (std::uint64_t step = 0; step < 30; step++) {
                const std::optional<TokenId> id = with.pick(logits, std::vector<TokenId>{7, 8}, step, &mask);
                REQUIRE(id);
                CHECK(mask.has(static_cast<std::size_t>(*id)));
                if (kind != 3 || every < 700)  // top-k of fewer tokens keeps the others' order
                    CHECK(id == cut.pick(masked, std::vector<TokenId>{7, 8}, step));
            }
        }
    }
    std::vector<float> damaged = logits;
    damaged[10] = std::numeric_limits<float>::quiet_NaN();
    TokenMask mask;
    mask.clear(logits.size());
    mask.set(3);
    mask.finish();
    CHECK_FALSE(Sampler(plain()).pick(damaged, {}, 0, &mask).has_value());
}

namespace {

/// How much DRY takes from each of `tokens` tokens.
std::vector<double> taken(SamplerOptions o, std::size_t tokens, const std::vector<TokenId>& history,
                          const Tokenizer* tokenizer = nullptr) {
    const std::vector<float> flat(tokens, 0.f);
    Draw draw;
    draw.begin(o, tokenizer, flat, history, 0, nullptr);
    apply_dry(draw);
    std::vector<double> minus;
    for (const TokenCandidate& c : draw.list()) minus.push_back(-static_cast<double>(c.logit));
    return minus;
}

}  // namespace

TEST_CASE("DRY takes multiplier times base to the power of what a repetition has too much") {
    SamplerOptions o = plain();
    o.dry_multiplier = 0.8;
    // … 1 2 3 4 … 1 2 3: the token 4 would make it four; 5 followed a shorter "3" alone.
    const std::vector<TokenId> history{1, 2, 3, 4, 0, 3, 5, 1, 2, 3};
    std::vector<double> minus = taken(o, 7, history);
    CHECK(minus[4] == doctest::Approx(0.8 * 1.75));
    for (std::size_t id : {0, 1, 2, 3, 5, 6}) CHECK(minus[id] == 0);
    o.dry_allowed_length = 1;
    minus = taken(o, 7, history);
    CHECK(minus[4] == doctest::Approx(0.8 * 1.75 * 1.75));
    CHECK(minus[5] == doctest::Approx(0.8));
    o.dry_penalty_last_n = 8;  // the first two tokens are too long ago: only "3" is repeated
    minus = taken(o, 7, history);
    CHECK(minus[4] == doctest::Approx(0.8));
    o.dry_penalty_last_n = -1;
    o.dry_base = 1e3, o.dry_allowed_length = 0;
    CHECK(std::isfinite(taken(o, 2, std::vector<TokenId>(300, 1))[1]));
}

TEST_CASE("DRY's longest repetition is that of a search by hand, for random texts") {
    const Rng rng(8, 2);
    for (std::uint64_t round = 0; round < 200; round++) {
        std::vector<TokenId> history;
        for (std::uint64_t i = 0; i < 4 + round % 40; i++)
            history.push_back(static_cast<TokenId>(rng.below(3, round * 100 + i)));
        SamplerOptions o = plain();
        o.dry_multiplier = 1, o.dry_base = 2, o.dry_allowed_length = 1;
        std::vector<std::size_t> longest(3, 0);
        for (std::size_t at = 0; at + 1 < history.size(); at++) {
            std::size_t n = 0;
            while (n <= at && history[at - n] == history[history.size() - 1 - n]) n++;
            std::size_t& held = longest[static_cast<std::size_t>(history[at + 1])];
            held = std::max(held, n);
        }
        const std::vector<double> minus = taken(o, 3, history);
        for (std::size_t id = 0; id < 3; id++)
            CHECK(minus[id] ==
                  doctest::Approx(longest[id] == 0 ? 0 : std::pow(2, static_cast<double>(longest[id]) - 1)));
    }
}

TEST_CASE("no repetition of DRY reaches across a breaker, in one token or in several") {
    FakeTokenizer tokenizer({"a", "b", "c", "\n", "x:", "(", ")", ""});
    SamplerOptions o = plain();
    o.dry_multiplier = 1, o.dry_base = 2, o.dry_allowed_length = 1;
    const auto minus = [&](const std::vector<TokenId>& history) {
        return taken(o, 8, history, &tokenizer)[2];
    };
    CHECK(minus({0, 1, 0, 1, 2, 0, 1, 0, 1}) == 8);
    CHECK(minus({0, 3, 0, 1, 2, 0, 3, 0, 1}) == 2);  // behind the newline: a b
    CHECK(minus({0, 1, 4, 1, 2, 0, 1, 4, 1}) == 1);
    CHECK(minus({0, 1, 0, 3, 2, 0, 1, 0, 3}) == 0);
    o.dry_breakers = {"()"};
    CHECK(minus({0, 5, 6, 1, 2, 0, 5, 6, 1}) == 1);
    CHECK(minus({0, 5, 7, 6, 1, 2, 0, 5, 7, 6, 1}) == 1);  // a control token between spells nothing
    CHECK(minus({0, 6, 5, 1, 2, 0, 6, 5, 1}) == 8);
    o.dry_breakers = {};
    CHECK(minus({0, 3, 0, 1, 2, 0, 3, 0, 1}) == 8);
}

TEST_CASE("log probabilities are those of the logits, the likeliest first") {
    const TokenLogprobs told = logprobs_of(five, 2, 3);
    const std::vector<double> p = softmax(five);
    CHECK(told.token.id == 2);
    CHECK(told.token.logprob == doctest::Approx(std::log(p[2])));
    REQUIRE(told.top.size() == 3);
    CHECK(told.top[0].id == 1);
    CHECK(told.top[1].id == 3);
    CHECK(told.top[2].logprob == doctest::Approx(std::log(p[2])));
    CHECK(logprobs_of(five, 0, 99).top.size() == 5);
    CHECK(logprobs_of(five, 0, 0).top.empty());
}

TEST_CASE("guesses change nothing where a sampler learns from its picks") {
    const auto told = [](bool guess) {
        FakeTokenizer tokenizer({"a", "b", "c", "ab", ""});
        FakeSource source(200, 5, [](const std::vector<TokenId>& held) {
            return static_cast<TokenId>((held.size() * 5 / 2) % 4);
        });
        MakeDrafter drafter;
        if (guess) drafter = [] { return std::make_unique<LookupDrafter>(); };
        Generator generator(source, tokenizer, drafter);
        Request request;
        request.prompt = {0, 1};
        request.options.tokens = 150;
        request.options.sampler.mirostat = 2;
        request.options.sampler.mirostat_ent = 1;
        request.options.sampler.temperature = 5;
        request.options.sampler.xtc_probability = 0.5;
        request.emit = [](std::optional<TokenId>, std::string_view) {};
        std::vector<TokenId> ids;
        request.done = [&](const Generated& g) { ids = g.ids; };
        generator.run({request});
        if (guess) CHECK(generator.totals().accepted > 0);
        return ids;
    };
    CHECK(told(true) == told(false));
}

TEST_CASE("what a sampler cuts off counts for none of those behind it") {
    SamplerOptions o = plain();
    o.samplers = "xtc;min_p";
    o.xtc_probability = 1, o.xtc_threshold = 0.2;  // 1 goes: 3 is the likeliest then
    o.min_p = 0.3;                                 // of 3's: 2, with 0.37 of it, stays
    CHECK(drawn(o, five) == std::set<TokenId>{3, 2});
    std::vector<float> logits(11, std::log(0.08f));  // ten alike, and an untypical one of 0.2, which goes
    logits[10] = std::log(0.2f);
    o = plain();
    o.samplers = "typical_p;min_p", o.typical_p = 0.7, o.min_p = 0.9;
    CHECK(drawn(o, logits).size() > 1);
    o = plain();
    o.samplers = "top_k;penalties;temperature", o.top_k = 3, o.repeat_penalty = 10;
    CHECK(first_choice(o, five, {1, 1}) == 3);
}

TEST_CASE("a temperature before DRY is one: the same draws as of divided logits") {
    SamplerOptions first = plain(), scaled = plain();
    first.samplers = "temperature;dry", scaled.samplers = "dry";
    first.temperature = 0.25;
    for (SamplerOptions* o : {&first, &scaled})
        o->dry_multiplier = 1, o->dry_base = 1, o->dry_allowed_length = 1;
    std::vector<float> four;
    for (float x : five) four.push_back(x * 4);
    const std::vector<TokenId> history{2, 1, 2};
    Sampler a(first), b(scaled);
    for (std::uint64_t step = 0; step < 3000; step++)
        REQUIRE(a.pick(five, history, step) == b.pick(four, history, step));
}
