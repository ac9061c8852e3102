#include "data/mixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "data/packing.h"
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
            Batch batch;
            mixture.add(index, batch);
            CHECK(batch.tokens[0] == static_cast<std::int32_t>('a' + place.part));
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
    std::vector<std::int32_t> inputs(8), targets(8);
    for (std::uint64_t i = 0; i < 200; i++) {
        plain.train_window(i, inputs, targets);
        Batch batch;
        mixture.add(i, batch);
        REQUIRE(batch.tokens == inputs);
        REQUIRE(batch.targets == targets);
    }
    CHECK(mixture.targets(3, 10) == 7 * 8);
    CHECK(mixture.epoch_rows() == 500);
    CHECK(mixture.drawn(0, 77) == 77);
}

TEST_CASE("texts that are alike give windows that are not") {
    TokenizerPtr tokenizer = byte_tokenizer();
    std::string text;
    for (int i = 0; i < 500; i++) text += static_cast<char>('a' + i * i % 23);
    const TokenSource source = TokenSource::from_documents({{text}, {}}, false, *tokenizer, 1);
    const WindowMixture mixture({source, source}, {1, 1}, 5, 8);
    int same = 0;
    for (std::uint64_t i = 0; i < 100; i += 2) {
        Batch a, b;
        mixture.add(i, a);
        mixture.add(i + 1, b);
        same += a.tokens == b.tokens;
    }
    CHECK(same < 25);
}

TEST_CASE("packed examples are drawn by their weight beside a stream, and their answers alone are learned") {
    const TokenizerPtr tokenizer = byte_tokenizer();
    std::vector<PackedText> texts[2];
    for (int i = 0; i < 6; i++) {  // a bin each: 8 rows, the last three of which are learned
        PackedText& text = texts[0].emplace_back();
        text.ids.assign(9, static_cast<TokenId>('A' + i));
        text.scored.assign(9, 0);
        std::fill_n(text.scored.end() - 3, 3, 1);
    }
    texts[1] = {texts[0][0]};
    const TokenSource examples =
        TokenSource::from_packed(PackedTexts(texts, false, *tokenizer, 7, 8, "examples"), "examples");
    CHECK(examples.name() == "examples");
    CHECK(examples.in_memory());
    CHECK(examples.bytes(DataSplit::train) == 18);
    const WindowMixture mixture({source_of(*tokenizer, 'z', 100), examples}, {1, 1}, 7, 8);
    CHECK(mixture.size(DataSplit::train) == 100 + 18);
    CHECK(mixture.size(DataSplit::validation) == 100 + 3);
    CHECK(mixture.epoch_rows() == 100 + 6 * 8);
    std::map<std::int32_t, int> seen;
    std::int64_t learned = 0;
    for (std::uint64_t index = 0; index < 24; index++) {
        Batch batch;
        mixture.add(index, batch);
        REQUIRE(batch.rows.count == 8);
        const std::int32_t letter = batch.tokens[0];
        const bool stream = mixture.place(index).part == 0;
        CHECK((letter == 'z') == stream);
        std::vector<std::int32_t> wanted(8, letter);
        if (!stream) std::fill_n(wanted.begin(), 5, -1);
        CHECK(batch.targets == wanted);
        learned += stream ? 8 : 3;
        CHECK(mixture.targets(0, index + 1) == learned);
        seen[letter]++;
    }
    CHECK(seen['z'] == 12);
    for (int i = 0; i < 6; i++) CHECK(seen['A' + i] == 2);  // two epochs of the examples
    REQUIRE(mixture.part(1).validation_windows() == 1);
    std::vector<std::int32_t> ids(8);
    CHECK_THROWS_AS(mixture.part(1).train_window(0, ids, ids), std::logic_error);
    Batch held_out;
    mixture.part(1).add(DataSplit::validation, 0, held_out);
    CHECK(held_out.tokens == std::vector<std::int32_t>(8, 'A'));
    CHECK(held_out.targets.back() == 'A');
}
