#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "generate/fakes.h"
#include "generate/sampler.h"

using namespace linnet;
using namespace linnet::test;

namespace {

std::map<TokenId, int> draws(const SamplerOptions& options, std::span<const float> logits, int n,
                             std::vector<TokenId> history = {}) {
    Sampler sampler(options);
    std::map<TokenId, int> counts;
    for (int i = 0; i < n; i++) counts[*sampler.pick(logits, history, static_cast<std::uint64_t>(i))]++;
    return counts;
}

std::vector<TokenId> ids(const std::map<TokenId, int>& counts) {
    std::vector<TokenId> out;
    for (auto [id, n] : counts) out.push_back(id);
    return out;
}

const std::vector<float> five{0.f, 3.f, 1.f, 2.f, -4.f};  // shares 0.032 0.643 0.087 0.237 0.0006

}  // namespace

TEST_CASE("temperature 0 takes the likeliest token, the lowest id on ties") {
    SamplerOptions options;
    options.temperature = 0;
    Sampler sampler(options);
    CHECK(sampler.pick(std::vector<float>{1, 5, 2, 5}, {}, 0) == 1);
    CHECK(sampler.pick(std::vector<float>{-1, -5}, {}, 3) == 0);
}

TEST_CASE("tokens are drawn with the probability of their softmax") {
    const int n = 40000;
    for (double temperature : {0.5, 1.0, 2.0}) {
        SamplerOptions options = plain();
        options.temperature = temperature;
        auto counts = draws(options, five, n);
        double whole = 0;
        for (float logit : five) whole += std::exp(logit / temperature);
        for (std::size_t i = 0; i < five.size(); i++) {
            double p = std::exp(five[i] / temperature) / whole, sigma = std::sqrt(p * (1 - p) / n);
            CHECK(counts[static_cast<TokenId>(i)] / double(n) ==
                  doctest::Approx(p).scale(1).epsilon(5 * sigma + 1e-9));
        }
    }
}

TEST_CASE("top-k keeps the k likeliest, top-p the fewest that reach p, min-p those near the likeliest") {
    SamplerOptions options = plain();
    options.top_k = 2;
    CHECK(ids(draws(options, five, 3000)) == std::vector<TokenId>{1, 3});
    options = plain();
    options.top_p = 0.6;
    CHECK(ids(draws(options, five, 3000)) == std::vector<TokenId>{1});
    options.top_p = 0.9;
    CHECK(ids(draws(options, five, 3000)) == std::vector<TokenId>{1, 2, 3});
    options = plain();
    options.min_p = 0.1;  // 0.0643: 0.087 stays, 0.032 goes
    CHECK(ids(draws(options, five, 3000)) == std::vector<TokenId>{1, 2, 3});
    options = plain();
    options.top_k = 3;
    options.top_p = 0.8;  // of the three kept: 0.665, 0.245, 0.090
    CHECK(ids(draws(options, five, 3000)) == std::vector<TokenId>{1, 3});
}

TEST_CASE("of equally likely tokens at the border of top-k the lower ids stay") {
    std::vector<float> logits(1000, 1.f);
    logits[700] = 2.f;
    SamplerOptions options = plain();
    options.top_k = 4;
    CHECK(ids(draws(options, logits, 3000)) == std::vector<TokenId>{0, 1, 2, 700});
}

TEST_CASE("filters choose as a plain sort would, for vocabularies of many sizes") {
    std::mt19937 random(3);
    for (int size : {1, 2, 63, 64, 65, 500, 5000}) {
        std::vector<float> logits(static_cast<std::size_t>(size));
        for (float& x : logits) x = static_cast<float>(random() % 200) / 40.f;  // many ties
        for (double top_p : {0.1, 0.5, 0.99}) {
            for (std::int64_t top_k : {std::int64_t{0}, std::int64_t{7}, std::int64_t{100}}) {
                SamplerOptions options = plain();
                options.top_p = top_p;
                options.top_k = top_k;
                std::vector<TokenId> order(logits.size());
                for (std::size_t i = 0; i < order.size(); i++) order[i] = static_cast<TokenId>(i);
                std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
                    return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
                });
                if (top_k && top_k < size) order.resize(static_cast<std::size_t>(top_k));
                double whole = 0, held = 0;
                for (TokenId id : order) whole += std::exp(double(logits[static_cast<std::size_t>(id)]));
                std::size_t kept = 0;
                while (held < top_p * whole * (1 - 1e-9))
                    held += std::exp(double(logits[static_cast<std::size_t>(order[kept++])]));
                order.resize(kept);
                Sampler sampler(options);
                for (std::uint64_t step = 0; step < 50; step++)
                    CHECK(std::find(order.begin(), order.end(), *sampler.pick(logits, {}, step)) !=
                          order.end());
            }
        }
    }
}

TEST_CASE("the repetition penalty lowers tokens of its window, once each, whatever their sign") {
    SamplerOptions options = plain();
    options.temperature = 0;
    options.repeat_penalty = 2;
    options.repeat_window = 3;
    Sampler sampler(options);
    std::vector<float> logits{4, 3, -1};
    CHECK(sampler.pick(logits, {}, 0) == 0);
    CHECK(sampler.pick(logits, std::vector<TokenId>{0}, 0) == 1);           // 2, 3, -1
    CHECK(sampler.pick(logits, std::vector<TokenId>{0, 0, 1}, 0) == 0);     // 2, 1.5, -1: once, not twice
    CHECK(sampler.pick(logits, std::vector<TokenId>{0, 1, 1, 1}, 0) == 0);  // 0 has left the window
    CHECK(sampler.pick(std::vector<float>{-1, -1.5f}, std::vector<TokenId>{0}, 0) == 1);  // -2, -1.5
}

TEST_CASE("a seed and a step give the same token, whatever was drawn before; other seeds differ") {
    SamplerOptions options = plain();
    std::vector<float> flat(1000, 0.f);
    options.seed = 5;
    Sampler a(options), b(options);
    for (std::uint64_t step = 0; step < 20; step++) a.pick(flat, {}, step);
    CHECK(a.pick(flat, {}, 100) == b.pick(flat, {}, 100));
    options.seed = 6;
    Sampler c(options);
    int same = 0;
    for (std::uint64_t step = 0; step < 50; step++) same += a.pick(flat, {}, step) == c.pick(flat, {}, step);
    CHECK(same < 5);
}

TEST_CASE("logits that are not numbers give no token") {
    float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
    for (double temperature : {0.0, 1.0}) {
        SamplerOptions options = plain();
        options.temperature = temperature;
        Sampler sampler(options);
        CHECK_FALSE(sampler.pick(std::vector<float>{1, nan, 2}, {}, 0).has_value());
        CHECK_FALSE(sampler.pick(std::vector<float>{1, infinity}, {}, 0).has_value());
        CHECK_FALSE(sampler.pick(std::vector<float>{-infinity, -infinity}, {}, 0).has_value());
        CHECK(sampler.pick(std::vector<float>{-infinity, 2}, {}, 0) == 1);
    }
}

TEST_CASE("a tiny temperature stays a temperature") {
    SamplerOptions options = plain();
    options.temperature = 1e-300;
    CHECK(ids(draws(options, five, 100)) == std::vector<TokenId>{1});
}
