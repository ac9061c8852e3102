#include "data/mixture.h"

#include <doctest/doctest.h>

#include <cmath>

#include "text/train/make.h"

using namespace linnet;

namespace {

/// A text of one letter, so that a window tells where it is from.
TokenSource source_of(const Tokenizer& tokenizer, char letter, std::size_t size) {
    static std::vector<std::string> texts;
    const std::string& text = texts.emplace_back(size, letter);
    return TokenSource::from_documents({{text}, {text}}, false, tokenizer, 1, std::string(1, letter));
}

}  // namespace

TEST_CASE("texts are mixed by their weights, evenly, each read on from where it was") {
    TokenizerPtr tokenizer = byte_tokenizer();
    for (const std::vector<double>& weights :
         {std::vector<double>{2, 1}, {1, 1, 1}, {0.5, 3, 0.25}, {1, 1e-3}, {7, 2, 1, 5}}) {
        std::vector<TokenSource> sources;
        double all = 0;
        for (std::size_t i = 0; i < weights.size(); i++) {
            sources.push_back(source_of(*tokenizer, static_cast<char>('a' + i), 100 + 10 * i));
            all += weights[i];
        }
        WindowMixture mixture(std::move(sources), weights, 7, 4);
        std::vector<std::uint64_t> counts(weights.size(), 0);
        std::vector<std::int32_t> inputs(4), targets(4);
        for (std::uint64_t index = 0; index < 1000; index++) {
            for (std::size_t i = 0; i < weights.size(); i++) {
                REQUIRE(mixture.drawn(i, index) == counts[i]);
                const double due = static_cast<double>(index) * weights[i] / all;
                REQUIRE(std::fabs(static_cast<double>(counts[i]) - due) <
                        static_cast<double>(weights.size()));
            }
            const WindowMixture::Place place = mixture.place(index);
            REQUIRE(place.index == counts[place.part]++);
            if (index >= 50) continue;
            mixture.train_window(index, inputs, targets);
            CHECK(inputs[0] == static_cast<std::int32_t>('a' + place.part));
        }
    }
}

TEST_CASE("one text is read as it is without weights") {
    TokenizerPtr tokenizer = byte_tokenizer();
    std::string text;
    for (int i = 0; i < 500; i++) text += static_cast<char>('a' + i * i % 23);
    TokenSource source = TokenSource::from_documents({{text}, {}}, false, *tokenizer, 1);
    WindowSampler plain(source, 5, 8);
    WindowMixture mixture({source}, {}, 5, 8);
    std::vector<std::int32_t> a(8), b(8), targets(8);
    for (std::uint64_t i = 0; i < 200; i++) {
        plain.train_window(i, a, targets);
        mixture.train_window(i, b, targets);
        REQUIRE(a == b);
    }
    CHECK(mixture.drawn(0, 77) == 77);
}

TEST_CASE("texts that are alike give windows that are not") {
    TokenizerPtr tokenizer = byte_tokenizer();
    std::string text;
    for (int i = 0; i < 500; i++) text += static_cast<char>('a' + i * i % 23);
    const TokenSource source = TokenSource::from_documents({{text}, {}}, false, *tokenizer, 1);
    const WindowMixture mixture({source, source}, {1, 1}, 5, 8);
    std::vector<std::int32_t> a(8), b(8), targets(8);
    int same = 0;
    for (std::uint64_t i = 0; i < 100; i += 2) {
        mixture.train_window(i, a, targets);
        mixture.train_window(i + 1, b, targets);
        same += a == b;
    }
    CHECK(same < 25);
}
