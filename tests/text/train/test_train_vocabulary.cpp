#include <doctest/doctest.h>

#include <map>

#include "base/error.h"
#include "base/rng.h"
#include "support.h"
#include "text/train/merges.h"
#include "text/train/train.h"
#include "text/unicode/unicode.h"

using namespace linnet;

namespace {

using Ids = std::vector<std::uint32_t>;
using Merges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

/// The definition, word by word: count every pair, merge the best, begin again.
Merges merges_by_definition(std::map<Ids, std::uint64_t> words, std::vector<std::string> symbols,
                            std::size_t limit, std::uint64_t least) {
    Merges merges;
    while (symbols.size() < limit) {
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> counts;
        for (const auto& [word, count] : words)
            for (std::size_t i = 0; i + 1 < word.size(); i++) counts[{word[i], word[i + 1]}] += count;
        std::pair<std::uint32_t, std::uint32_t> best;
        std::uint64_t most = 0;
        for (auto [pair, count] : counts)
            if (count > most) best = pair, most = count;
        if (most < least || most == 0) break;
        std::string spelled = symbols[best.first] + symbols[best.second];
        auto twin = std::find(symbols.begin(), symbols.end(), spelled);
        auto id = static_cast<std::uint32_t>(twin - symbols.begin());
        if (twin == symbols.end()) symbols.push_back(spelled);
        merges.push_back(best);
        std::map<Ids, std::uint64_t> next;
        for (const auto& [word, count] : words) {
            Ids merged;
            for (std::size_t i = 0; i < word.size(); i++) {
                bool here = i + 1 < word.size() && word[i] == best.first && word[i + 1] == best.second;
                merged.push_back(here ? id : word[i]);
                i += here;
            }
            next[merged] += count;
        }
        words.swap(next);
    }
    return merges;
}

std::string random_text(std::uint64_t seed, std::size_t bytes, int letters) {
    Rng rng(seed, 1);
    std::string text;
    for (std::uint64_t i = 0; text.size() < bytes; i++) {
        auto r = rng.below(static_cast<std::uint64_t>(letters) + 2, i);
        text += r < static_cast<std::uint64_t>(letters) ? static_cast<char>('a' + r) : ' ';
    }
    return text;
}

TrainedVocabulary train(const std::string& text, TrainOptions options) {
    VocabularyTrainer trainer(std::move(options));
    trainer.add(text);
    return trainer.finish();
}

std::vector<std::string> words_of(std::string_view text) {
    std::vector<std::uint32_t> ends;
    word_splitter(Split::gpt2)(text, ends);
    std::vector<std::string> words;
    std::uint32_t begin = 0;
    for (std::uint32_t end : ends) {
        words.emplace_back(text.substr(begin, end - begin));
        begin = end;
    }
    return words;
}

}  // namespace

TEST_CASE("GPT-2's words") {
    using Words = std::vector<std::string>;
    CHECK(words_of("I'm 12 o'clock  now\n\n x'lll") ==
          Words{"I", "'m", " 12", " o", "'", "clock", " ", " now", "\n\n", " x", "'ll", "l"});
    CHECK(words_of("a\n\nb  ") == Words{"a", "\n", "\n", "b", "  "});
    CHECK(words_of("\xE4\xB8\xAD\xE6\x96\x87\xE3\x80\x82 \xC3\xA9!?") ==
          Words{"\xE4\xB8\xAD\xE6\x96\x87", "\xE3\x80\x82", " \xC3\xA9", "!?"});
    CHECK(words_of("\xFF\xFE ") == Words{"\xFF\xFE", " "});
    CHECK(words_of("").empty());
}

TEST_CASE("merges equal the definition on random words, ties and twins included") {
    for (std::uint64_t seed = 0; seed < 60; seed++) {
        Rng rng(seed, 2);
        std::uint64_t draw = 0;
        auto below = [&](std::uint64_t n) { return rng.below(n, draw++); };
        std::vector<std::string> symbols{"a", "b", "c"};
        symbols.resize(1 + below(3));
        std::map<Ids, std::uint64_t> words;
        MergeLimits limits;
        limits.symbols = symbols.size() + 60;
        limits.min_frequency = 1 + below(3);
        PairMerger merger(symbols, limits);
        for (int i = 0; i < 40; i++) {
            Ids word(1 + below(14));
            for (auto& id : word) id = static_cast<std::uint32_t>(below(symbols.size()));
            std::uint64_t count = 1 + below(4);
            if (words.contains(word)) continue;
            words[word] = count;
            merger.add(word, count);
        }
        merger.run([](std::size_t) {});
        CHECK(merger.merges() == merges_by_definition(words, symbols, limits.symbols, limits.min_frequency));
    }
}

TEST_CASE("merges do not depend on the memory for pairs: rare ones are forgotten and counted again") {
    std::vector<std::string> symbols;
    for (char c = 'a'; c <= 'z'; c++) symbols.emplace_back(1, c);
    auto run = [&](std::size_t pair_memory) {
        MergeLimits limits;
        limits.symbols = 300;
        limits.pair_memory = pair_memory;
        PairMerger merger(symbols, limits);
        Rng rng(17, 4);
        std::uint64_t draw = 0;
        auto pick = [&] {  // the first letters are frequent
            std::uint64_t last = rng.below(26, draw++);
            return static_cast<std::uint32_t>(rng.below(last + 1, draw++));
        };
        for (int i = 0; i < 3000; i++) {
            Ids word(2 + rng.below(9, draw++));
            for (auto& id : word) id = pick();
            merger.add(word, 1 + rng.below(50, draw++));
        }
        merger.run([](std::size_t) {});
        CHECK(merger.symbols().size() == 300);
        return merger.merges();
    };
    Merges all = run(0);
    CHECK(run(400'000) == all);
    CHECK(run(150'000) == all);  // a table of pairs and little more
    CHECK(run(1) == all);
}

TEST_CASE("training gives the same vocabulary for any threads, memory and cut of the text" *
          doctest::test_suite("long")) {
    std::string text = random_text(5, 8 << 20, 9);
    TrainOptions options;
    options.vocab_size = 700;
    TrainedVocabulary whole = train(text, options);
    CHECK(whole.tokens.size() == 700);
    CHECK(whole.merges.size() >= 700 - 257);
    CHECK(whole.tokens.back() == "<|endoftext|>");
    for (int threads : {2, 3}) {
        options.threads = threads;
        TrainedVocabulary other = train(text, options);
        CHECK(other.tokens == whole.tokens);
        CHECK(other.merges == whole.merges);
    }
    options.threads = 3;
    options.memory = 58 << 20;  // tables of 5 MiB, less than a third of what the words take
    VocabularyTrainer trainer(options);
    for (std::size_t at = 0; at < text.size();) {
        std::size_t end = std::min(text.find(' ', at + 100000), text.size());
        while (end < text.size() && text[end - 1] == ' ') end++;
        if (end < text.size() && text[end] != ' ') end = text.find(' ', end);
        end = std::min(end, text.size());
        trainer.add(std::string_view(text).substr(at, end - at));
        at = end;
    }
    TrainedVocabulary other = trainer.finish();
    CHECK(trainer.spilled_bytes() > 0);
    CHECK(other.tokens == whole.tokens);
    CHECK(other.merges == whole.merges);
}

TEST_CASE("a SentencePiece vocabulary: control tokens, bytes, pieces, characters") {
    TrainOptions options;
    options.kind = "spm";
    options.vocab_size = 300;
    options.min_frequency = 1;
    TrainedVocabulary v = train("low lower lowest\nnew newer  newest 100 caf\xC3\xA9", options);
    CHECK(v.tokens[0] == "<unk>");
    CHECK(v.tokens[3] == "<0x00>");
    CHECK(v.tokens[258] == "<0xFF>");
    CHECK(v.pieces[258] == TrainedVocabulary::Piece::byte);
    auto has = [&](std::string_view token) {
        return std::find(v.tokens.begin(), v.tokens.end(), token) != v.tokens.end();
    };
    CHECK(has(std::string(space_mark) + "low"));
    CHECK(has("\xC3\xA9"));
    CHECK_FALSE(has("\n"));
    for (auto [left, right] : v.merges) {
        CHECK(has(v.tokens[static_cast<std::size_t>(left)] + v.tokens[static_cast<std::size_t>(right)]));
    }
}

TEST_CASE("a WordPiece vocabulary marks what continues a word, and lowers and strips where asked") {
    TrainOptions options;
    options.kind = "wordpiece";
    options.vocab_size = 100;
    options.min_frequency = 1;
    options.lowercase = true;
    TrainedVocabulary v =
        train("Play playing PLAYED going being, caf\xC3\xA9 \xE4\xB8\xAD\xE6\x96\x87", options);
    auto has = [&](std::string_view token) {
        return std::find(v.tokens.begin(), v.tokens.end(), token) != v.tokens.end();
    };
    CHECK(v.tokens[1] == "[UNK]");
    CHECK(has("play"));
    CHECK(has("##ing"));
    CHECK(has("cafe"));
    CHECK(has("\xE4\xB8\xAD"));
    CHECK_FALSE(has("P"));
}

TEST_CASE("training refuses an empty text and a vocabulary below what the kind needs") {
    CHECK_THROWS_AS(train("", {}), Error);
    TrainOptions small;
    small.vocab_size = 256;
    CHECK_THROWS_AS(train("some text", small), Error);
    TrainOptions odd;
    odd.kind = "bpee";
    CHECK_THROWS_AS(VocabularyTrainer{odd}, Error);
}

TEST_CASE("words of any length and any bytes are counted") {
    TrainOptions options;
    options.vocab_size = 300;
    std::string text(200000, 'a');
    text += std::string("\xC3\x28\0\xFF", 4);
    TrainedVocabulary v = train(text, options);
    CHECK(v.merges.size() > 5);
}
