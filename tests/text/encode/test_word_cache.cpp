#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "base/rng.h"
#include "text/encode/word_cache.h"

using namespace linnet;

namespace {

template <class Cache>
auto key_of(const std::string& word) {
    return Cache::key(word.data(), word.size(), word.data() + word.size());
}

}  // namespace

TEST_CASE("a word cache answers with the ids it was given, or not at all") {
    using Cache = WordCache<2, 3>;
    Cache cache(4, 8);  // grows from 32 entries to 512
    std::map<std::string, std::vector<TokenId>> all;
    std::size_t found = 0, asked = 0;
    for (std::uint32_t i = 0; i < 20'000; i++) {
        std::string word = std::to_string(i * 2654435761u % 700);
        if (i % 3 == 0) word += "abcdef";
        std::vector<TokenId>& ids = all[word];
        if (ids.empty()) ids.assign(1 + i % 9, static_cast<TokenId>(i));
        asked++;
        if (const auto* entry = cache.find(key_of<Cache>(word))) {
            found++;
            const auto known = cache.ids(*entry);
            CHECK(std::vector<TokenId>(known.begin(), known.end()) == ids);
        } else {
            cache.put(key_of<Cache>(word), ids);
        }
    }
    CHECK(found > 0);
    CHECK(found < asked);
}

TEST_CASE("a word is not taken for one with other bytes or another length") {
    using Cache = WordCache<4, 7>;
    Cache cache(4, 4);
    const std::vector<TokenId> ids = {1, 2};
    cache.put(key_of<Cache>("ab"), ids);
    CHECK(cache.find(key_of<Cache>("ab")));
    CHECK_FALSE(cache.find(key_of<Cache>(std::string("ab\0", 3))));
    CHECK_FALSE(cache.find(key_of<Cache>("a")));
    // The key is the same with text behind the word as without.
    const std::string text = "ab" + std::string(40, 'x');
    CHECK(cache.find(Cache::key(text.data(), 2, text.data() + text.size())));
}

TEST_CASE("ids of a short word are made once, those of a long one each time") {
    using Cache = WordCache<2, 3>;
    Cache cache(4, 4);
    std::vector<TokenId> made;
    for (const std::string& word : {std::string("ab"), std::string(16, 'x'), std::string(17, 'y')}) {
        const int times = word.size() > Cache::max_bytes ? 2 : 1;
        int count = 0;
        for (int round = 0; round < 2; round++) {
            const auto ids = cache.ids_of(word, [&]() -> const std::vector<TokenId>& {
                count++;
                made.assign(word.size(), 5);
                return made;
            });
            CHECK(std::vector<TokenId>(ids.begin(), ids.end()) == std::vector<TokenId>(word.size(), 5));
        }
        CHECK(count == times);
    }
}

TEST_CASE("a full pool empties the cache") {
    using Cache = WordCache<2, 3>;
    Cache cache(10, 10);
    const std::vector<TokenId> many(16, 7);
    cache.put(key_of<Cache>("first"), many);
    for (int i = 0; i < (1 << 16); i++) cache.put(key_of<Cache>(std::to_string(i)), many);
    CHECK_FALSE(cache.find(key_of<Cache>("first")));
    const auto* last = cache.find(key_of<Cache>(std::to_string((1 << 16) - 1)));
    REQUIRE(last);
    CHECK(cache.ids(*last).size() == 16);
}
