#include <doctest/doctest.h>

#include "text/split/pre_names.h"

using namespace linnet;

TEST_CASE("every pre-tokenizer name compiles, and loses no byte of a text") {
    const std::string text = "Hello  world's 12345 naïve ΐΊώ 中文か\r\n\n\t x=[1,2]; 'LL don't!!  \n";
    for (const PreName& name : pre_names()) {
        CAPTURE(name.name);
        PreTokenizer pre = pre_tokenizer_of(name);
        std::string copy = text, joined;
        PreTokenizer::Words words;
        pre.apply(copy, true, true, words);
        CHECK(words.size() > 5);
        for (auto [b, e] : words) joined += copy.substr(b, e - b);
        CHECK(joined == text);
        CHECK_FALSE(pre_name_of(pre, name.ignore_merges).empty());
    }
}

TEST_CASE("a pre-tokenizer has a name only where it does with its expressions what the name does") {
    for (const PreName& name : pre_names()) {
        if (name.name != "falcon") continue;
        CHECK(pre_name_of(pre_tokenizer_of(name), false) == "falcon");
        PreTokenizer inverted = pre_tokenizer_of(name), merged = inverted, shorter = inverted;
        inverted.steps[0].invert = true;
        merged.steps[0].behavior = SplitBehavior::merged_with_next;
        shorter.steps.pop_back();
        for (const PreTokenizer& other : {inverted, merged, shorter, PreTokenizer()})
            CHECK(pre_name_of(other, false).empty());
    }
    // An expression is Llama 3's and cl100k's alike: ignore_merges tells them apart.
    PreTokenizer words;
    words.steps.emplace_back().words = split_of_pattern(split_pattern(Split::llama3));
    CHECK(pre_name_of(words, true) == "llama-bpe");
    CHECK(pre_name_of(words, false) == "dbrx");
    CHECK(split_pattern(Split::gpt2_digits) == gpt2_pattern);
    CHECK(split_pattern(Split::whole).empty());
}
