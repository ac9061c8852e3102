// Normalizers and classes of characters: what becomes of every kind of character, and what cannot be
// normalized.
#include "text/unicode/normalizer.h"

#include <doctest/doctest.h>

#include "support.h"
#include "text/unicode/regex.h"
#include "text/unicode/unicode.h"

using namespace linnet;
using Kind = NormalizerStep::Kind;

namespace {

NormalizerStep step(Kind kind) {
    NormalizerStep step;
    step.kind = kind;
    return step;
}

std::string normalized(std::vector<NormalizerStep> steps, std::string text, bool opens = true) {
    Normalizer normalizer;
    normalizer.steps = std::move(steps);
    normalizer.apply(text, opens);
    return text;
}

std::string utf8(std::initializer_list<char32_t> codes) {
    std::string text;
    for (char32_t code : codes) append_utf8(text, code);
    return text;
}

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
    const Regex regex(pattern, "f.json", "pre_tokenizer");
    Regex::Matches found(regex, text);
    std::vector<std::string> out;
    for (std::size_t begin, end; found.next(begin, end);) out.push_back(text.substr(begin, end - begin));
    return out;
}

}  // namespace

TEST_CASE("NMT's rules drop control characters and make spaces of those that look like one") {
    const std::string dropped = utf8({1, 8, 0xB, 0xE, 0x1F, 0x7F, 0x8F, 0x9F});
    CHECK(normalized({step(Kind::nmt)}, "a" + dropped + "b") == "ab");
    for (char32_t space :
         {0x9, 0xA, 0xC, 0xD, 0x1680, 0x200B, 0x200F, 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD}) {
        CAPTURE(static_cast<std::uint32_t>(space));
        CHECK(normalized({step(Kind::nmt)}, "a" + utf8({space}) + "b") == "a b");
    }
    for (char32_t kept : {0x20, 0x80, 0x9E, 0x200A, 0x2010, 0x2582}) {
        CAPTURE(static_cast<std::uint32_t>(kept));
        CHECK(normalized({step(Kind::nmt)}, utf8({kept})) == utf8({kept}));
    }
    CHECK(normalized({step(Kind::nmt)}, std::string(1, '\0')) == std::string(1, '\0'));
}

TEST_CASE("letters, marks and spaces at the ends are taken as Unicode has them") {
    CHECK(normalized({step(Kind::lowercase)}, utf8({'A', '[', 0x130, 0xC9, 0x4E2D})) ==
          utf8({'a', '[', 'i', 0x307, 0xE9, 0x4E2D}));
    // Marks that stand above, beside and around a letter.
    CHECK(normalized({step(Kind::strip_accents)}, utf8({'e', 0x301, 0x915, 0x903, 'a', 0x20DD})) ==
          utf8({'e', 0x915, 'a'}));
    NormalizerStep both = step(Kind::strip);
    CHECK(normalized({both}, utf8({0x2003, ' ', 0xE9, 0x3000})) == utf8({0xE9}));
    CHECK(normalized({both}, utf8({0x2003, ' '})).empty());
    CHECK(normalized({both}, "").empty());
    // Marks in the order of their classes, however many: a dot below comes before an acute accent.
    CHECK(normalized({step(Kind::nfd)}, utf8({'a', 0x301, 0x323, 'b', 0x301})) ==
          utf8({'a', 0x323, 0x301, 'b', 0x301}));
    CHECK(normalized({step(Kind::nfc)}, utf8({'a', 0x301, 0x323})) == utf8({0x1EA1, 0x301}));
    CHECK(normalized({step(Kind::nfkd)}, utf8({0xFDFA})).size() == 33);  // one character of eighteen
    CHECK(normalized({step(Kind::collapse_spaces)}, "  ").empty());
    NormalizerStep prepend = step(Kind::prepend);
    prepend.content = "_";
    CHECK(normalized({prepend}, "a") == "_a");
    CHECK(normalized({prepend}, "a", false) == "a");
    CHECK(normalized({prepend}, "").empty());
    CHECK(normalized({step(Kind::replace)}, "a") == "a");  // nothing is replaced
}

TEST_CASE("BERT's clean-up drops control characters and what is no UTF-8, which other normalizers refuse") {
    NormalizerStep bert = step(Kind::bert);
    CHECK(normalized({bert}, std::string("A\0", 2) + utf8({0xFFFD, 0xAD, '\t', 0xC9}) + "\xFF\n") == "a e ");
    NormalizerStep plain = step(Kind::bert);
    plain.clean_text = plain.accents = plain.lowercase = false;
    for (char32_t c : {0x4E00, 0x9FFF, 0x3400, 0x4DBF, 0x20000, 0x2A6DF, 0x2A700, 0x2B73F, 0x2B740, 0x2B81F,
                       0x2B920, 0x2CEAF, 0xF900, 0xFAFF, 0x2F800, 0x2FA1F}) {
        CHECK(is_cjk(c));
        CHECK(normalized({plain}, utf8({c})) == " " + utf8({c}) + " ");
    }
    for (char32_t c : {0x33FF, 0x4DC0, 0x4DFF, 0xA000, 0xF8FF, 0xFB00, 0x1FFFF, 0x2A6E0, 0x2A6FF, 0x2B820,
                       0x2B91F, 0x2CEB0, 0x2F7FF, 0x2FA20})
        CHECK(!is_cjk(c));
    bert.clean_text = false;
    for (const NormalizerStep& other : {bert, step(Kind::nfc), step(Kind::lowercase)})
        CHECK(test::refusal([&] { normalized({other}, "ab\xFF"); }) ==
              "text: byte 2: expected UTF-8, got an invalid byte (this vocabulary's normalizer is defined on "
              "characters)");
    bert.cjk = bert.accents = bert.lowercase = false;
    CHECK(normalized({bert}, "A\t\xC3\xA9") == "A\t\xC3\xA9");
}

TEST_CASE("characters have the classes that pre-tokenizers ask for, up to each range's last") {
    for (char32_t c : {0x300, 0x903, 0x30, 0x2160, 0x5F, 0x200C, 0x200D, 0x24B6, 0x24E9, 0x1F130, 0x1F149,
                       0x1F150, 0x1F169, 0x1F170, 0x1F189, 0x61})
        CHECK(is_word_char(c));
    for (char32_t c : {0x20, 0xBD, 0x200B, 0x200E, 0x24EA, 0x249C, 0x1F12F, 0x1F14A, 0x1F16A, 0x1F18A, 0x2D})
        CHECK(!is_word_char(c));
    for (char32_t c : {1, 0x7F, 0xAD, 0x378, 0xE000}) CHECK(is_control_char(c));
    for (char32_t c : {'\t', '\n', '\r', 'a', ' '}) CHECK(!is_control_char(c));
    for (char32_t c : std::u32string_view(U"!/:@[`{~\u00A1")) CHECK(is_bert_punctuation(c));
    for (char32_t c : std::u32string_view(U" 09AZaz\x7F\u00E9")) CHECK(!is_bert_punctuation(c));
}

TEST_CASE(
    "an expression's classes are Oniguruma's, inside brackets and outside, and what is odd in one is taken "
    "as it is") {
    using Found = std::vector<std::string>;
    const std::string text = "a_\xCC\x81 \xE1\xA0\x8E-\n";  // U+180E is no space, a mark is of a word
    CHECK(matches("\\s", text) == Found{" ", "\n"});
    CHECK(matches("\\S+", text) == Found{"a_\xCC\x81", "\xE1\xA0\x8E-"});
    CHECK(matches("\\w+", text) == Found{"a_\xCC\x81"});
    CHECK(matches("\\W+", text) == Found{" \xE1\xA0\x8E-\n"});
    CHECK(matches("[\\s-]+", text) == Found{" ", "-\n"});
    CHECK(matches("[\\S]+", "a b") == Found{"a", "b"});
    CHECK(matches("[\\w-]+", "a-b c") == Found{"a-b", "c"});
    CHECK(matches("[\\W]+", "ab, c") == Found{", "});
    CHECK(matches("[^]a]+", "]ab]c") == Found{"b", "c"});
    CHECK(matches("[]a]+", "]ab]c") == Found{"]a", "]"});
    CHECK(matches("[[a]+", "[ab[") == Found{"[a", "["});
    CHECK(matches("[[:digit:]]+", "a12b") == Found{"12"});
    CHECK(matches("\\s+$", " a  ") == Found{"  "});
    CHECK(matches("]", "a]") == Found{"]"});
    // Empty matches separate nothing, and a character is never cut.
    CHECK(matches("x*", "\xC3\xA9xx\xE4\xB8\xAD") == Found{"xx"});
    CHECK(matches("b*", "").empty());
    CHECK(test::refusal([] {
              matches("a\\", "a");
          }).starts_with("f.json: pre_tokenizer: expected a regular expression"));
    CHECK(test::refusal([] { matches(std::string(65537, 'a'), "a"); }) ==
          "f.json: pre_tokenizer: expected a pattern of at most 64 KiB, got 65537 bytes");
}
