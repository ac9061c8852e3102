#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "text/encode/vocabulary.h"

using namespace linnet;

TEST_CASE("several spellings looked up together have the ids that each has alone") {
    Vocabulary vocabulary;
    std::vector<std::string> spellings;
    for (int i = 0; i < 300; i++) spellings.push_back("t" + std::to_string(i * 7919));
    std::vector<std::string_view> asked;
    for (const std::string& spelling : spellings) asked.push_back(spelling);
    const std::size_t most = Vocabulary::most_at_once;
    TokenId ids[Vocabulary::most_at_once];

    vocabulary.find({asked.data(), most}, ids);
    for (TokenId id : ids) CHECK(id == -1);

    for (std::size_t i = 0; i < spellings.size(); i += 2) vocabulary.add(spellings[i]);
    vocabulary.add(spellings[4]);  // again: the first is found
    for (std::size_t begin = 0; begin < asked.size(); begin += most) {
        const std::size_t count = std::min(most, asked.size() - begin);
        vocabulary.find({asked.data() + begin, count}, ids);
        for (std::size_t i = 0; i < count; i++) {
            const auto n = static_cast<TokenId>(begin + i);
            CHECK(ids[i] == (n % 2 == 0 ? n / 2 : -1));
            CHECK(ids[i] == vocabulary.find(asked[begin + i]));
        }
    }
}

TEST_CASE("only <0x..> with two capital digits spells a byte, and only GPT-2's letters stand for bytes") {
    CHECK(byte_of_spelling("<0x00>") == 0);
    CHECK(byte_of_spelling("<0xAF>") == 0xAF);
    for (const char* other :
         {"<0xa1>", "<0x1g>", "<0x/1>", "<0x:1>", "<0x1@>", "<0xG1>", "<1x21>", "<0x21)", "<0x1>"})
        CHECK(byte_of_spelling(other) == -1);
    CHECK(Vocabulary().find("a") == -1);
    std::string out;
    for (int b = 0; b < 256; b++) {
        out.clear();
        byte_alphabet::unspell(byte_alphabet::spell(static_cast<std::uint8_t>(b)), out);
        CHECK(out == std::string(1, static_cast<char>(b)));
    }
    for (const char* kept : {"\xC5\xBF", "\xC4", "\xC4z", "\xC6\x80", "\xFF"}) {
        out.clear();
        byte_alphabet::unspell(kept, out);
        CHECK(out == kept);
    }
}
