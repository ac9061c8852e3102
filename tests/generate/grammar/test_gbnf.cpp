#include <doctest/doctest.h>

#include "base/error.h"
#include "generate/grammar/automaton.h"
#include "generate/grammar/gbnf.h"
#include "generate/grammar/support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

std::string fault(const std::string& gbnf) {
    try {
        read_gbnf(gbnf, "g");
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::input);
        return error.what();
    }
    return "none";
}

bool allows(const std::string& gbnf, const std::string& text) {
    return accepts(read_gbnf(gbnf, "g"), text);
}

}  // namespace

TEST_CASE("what GBNF writes means what llama.cpp's page says") {
    struct Case {
        const char *gbnf, *allowed, *refused;
    };
    const Case cases[] = {
        {"root ::= \"ab\" | \"cd\"", "cd", "abcd"},
        {"root ::= \"a\" (\n\"b\" # a comment\n| \"c\" )\n", "ac", "a"},
        {"root ::= x y\nx::=\"a\"*\n  y ::= \"b\"?", "aab", "ba"},
        {"root ::= \"a\" |\n  \"b\"\n  | \"c\"", "c", "d"},
        {"root ::= [a-cx] [^a-c]", "xé", "xa"},
        {"root ::= [a-] [-a] [\\]\\^]", "--]", "-bc"},
        {"root ::= .", "\n", "ab"},
        {"root ::= \"\\x41\\u00e9\\U0001F600\\t\\\"\\\\\"", "Aé😀\t\"\\", "A"},
        {"root ::= \"a\"{3}", "aaa", "aa"},
        {"root ::= \"a\"{2,} \"b\"{,2}", "aaaab", "abb"},
        {"root ::= (\"a\" | \"bc\"){2,3}", "abcbc", "abcaa"},
        {"root ::= (\"a\"?){3}", "aa", "aaaa"},
        {"root ::= (\"a\"?){2,} \"b\"", "b", "a"},
        {"root ::= (\"a\"* \"b\"*)+ \"c\"", "baabc", "d"},
        {"root ::= \"(\" root \")\" | \"\"", "((()))", "((())"},
        {"root ::= \"a\" root | \"b\"", "aaaaaab", "aaa"},
        {"root ::= e\ne ::= t (\"+\" t)*\nt ::= [0-9]+ | \"(\" e \")\"", "(1+2)+33", "1+"},
        {"root ::= [^\\x00-\\U0010FFFE]", "\U0010FFFF", "a"},
        {"root ::= a_b-2\na_b-2 ::= \"x\"", "x", "y"},
        {"root ::= \"a\"+?\r\n", "", "b"},
        {"root ::= ", "", "a"},
    };
    for (const Case& c : cases) {
        CAPTURE(c.gbnf);
        CHECK(allows(c.gbnf, c.allowed));
        CHECK_FALSE(allows(c.gbnf, c.refused));
    }
}

TEST_CASE("a fault in GBNF is named with its line and column") {
    const std::pair<std::string, const char*> cases[] = {
        {"", "g: expected a rule named root, got none"},
        {"a ::= \"x\"", "g: expected a rule named root"},
        {"root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1: expected each rule once"},
        {"root ::= thing\nthin ::= \"a\"",
         "line 1, column 10: expected the name of a rule, got 'thing' (did you mean thin?)"},
        {"root ::= a\na ::= b \"x\"\n\nb ::= a? \"y\"",
         "expected a rule that begins with something else than itself"},
        {"root ::= \"a\"\n\n  e ::= e \"+\" \"1\" | \"1\"",
         "g: line 3, column 3: expected a rule that begins with something else"},
        {"root ::= \"a\" x\nx ::= \"b\" x",
         "g: line 2, column 1: expected a rule that some finite text fulfils, got 'x'"},
        {"root = \"a\"", "line 1, column 6: expected '::=', got '='"},
        {"root ::= \"a",
         "line 1, column 12: expected '\"', got the end of the file (for the text that begins in line 1, "
         "column 10)"},
        {"root ::= \"a\n\"", "got the end of the line"},
        {"root ::= [a", "line 1, column 12: expected ']'"},
        {"root ::= []", "line 1, column 10: expected at least one character"},
        {"root ::= [z-a]", "line 1, column 11: expected a range in ascending order"},
        {"root ::= (\"a\"", "line 1, column 14: expected ')'"},
        {"root ::= \"a\")", "line 1, column 13: expected the end of the rule, got ')'"},
        {"root ::= \"a\" \"b\" ::= c", "line 1, column 18: expected the end of the rule, got ':'"},
        {"root ::= *", "line 1, column 10: expected the end of the rule, got '*'"},
        {"root ::= \"a\"{3,2}",
         "line 1, column 17: expected a largest number that is not below the smallest"},
        {"root ::= \"a\"{}", "line 1, column 14: expected a number of repetitions"},
        {"root ::= \"a\"{2", "line 1, column 15: expected '}'"},
        {"root ::= \"a\"{99999999}", "expected at most 1000000 repetitions"},
        {"root ::= \"\\q\"", "line 1, column 12: expected an escape"},
        {"root ::= \"\\x4\"", "line 1, column 14: expected 2 hexadecimal digits, got '\"'"},
        {"root ::= \"\\uD800\"", "line 1, column 13: expected a Unicode scalar value"},
        {"root ::= \"\\U00110000\"", "expected a Unicode scalar value"},
        {"root ::= \"\xFF\"", "line 1, column 11: expected UTF-8"},
        {"::= \"a\"", "line 1, column 1: expected the name of a rule, got ':'"},
        {"root ::= " + std::string(300, '('), "expected brackets at most 200 deep"},
        {"root ::= \"a\"" + std::string(50, '*'), "expected fewer repetitions"},
        {std::string(2 << 20, '#'), "expected at most 1 MiB of grammar"},
    };
    for (const auto& [gbnf, message] : cases) {
        const std::string begin = gbnf.substr(0, 60);
        CAPTURE(begin);
        const std::string line = fault(gbnf);
        CHECK_MESSAGE(line.find(message) != line.npos, line);
        CHECK(line.find('\n') == line.npos);
    }
}

TEST_CASE("a grammar of 50 000 rules is read, and its longest chain of rules followed") {
    std::string chain = "root ::= r0\n";
    const int n = 50000;
    for (int i = 0; i < n; i++) chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
    CHECK(allows(chain + "r" + std::to_string(n) + " ::= \"x\"", "x"));
    CHECK(fault(chain + "r" + std::to_string(n) + " ::= root | \"x\"").find("begins with something else") !=
          std::string::npos);
}

TEST_CASE("a grammar of very many readings at a time stays one that every text fulfils") {
    const FakeTokenizer bytes = byte_vocabulary();
    const Grammar grammar = read_gbnf(
        "root ::= \"a\" root \"b\" | \"a\" root [bc] | \"a\" root (\"b\" | \"c\" | \"d\") | \"\"", "g");
    const auto constraint =
        std::make_shared<TokenConstraint>(grammar, bytes, std::make_shared<GrammarVocabulary>(bytes), "g");
    for (std::uint64_t round = 0; round < 10; round++) {
        Dice dice(round);
        const Written written = write_random(constraint, bytes, dice, 60);
        if (!*written.result.complete) continue;
        const std::size_t half = written.text.size() / 2;
        CHECK(written.text.size() == 2 * half);
        CHECK(written.text.substr(0, half) == std::string(half, 'a'));
        CHECK(written.text.find_first_not_of("bcd", half) == std::string::npos);
    }
}

TEST_CASE("counted loops in each other cost the square of their rounds, and forget no reading") {
    const FakeTokenizer bytes = byte_vocabulary();
    const GrammarVocabulary vocabulary(bytes);
    const auto size_after = [&](const std::string& loops, std::size_t length) {
        Automaton automaton(GrammarProgram(read_gbnf("root ::= " + loops, "g"), vocabulary, "g"));
        CHECK(automaton.may_end(automaton.next(automaton.start(), std::string(length, 'a'))));
        CHECK_FALSE(automaton.forgot());
        return automaton.size();
    };
    CHECK(size_after("(\"a\"{1,200}){1,200}", 200) < 5 * size_after("(\"a\"{1,100}){1,100}", 100));
    size_after("(\"a\"{1,100}){1,400}", 1500);
    const std::string pairs = "((\"a\" | \"b\"){2,3}){2,3}";
    for (std::size_t n = 0; n < 12; n++)
        CHECK(allows("root ::= " + pairs, std::string(n, 'b')) == (n > 3 && n < 10));
}

TEST_CASE("a text of characters in halves is written by tokens that end inside of them") {
    const FakeTokenizer halves({"\xF0\x9F", "\x98\x80", "\x98", "\x81", "\x80\xF0\x9F", ""});
    const Grammar grammar = read_gbnf("root ::= [😀😁é]+", "g");
    const auto constraint =
        std::make_shared<TokenConstraint>(grammar, halves, std::make_shared<GrammarVocabulary>(halves), "g");
    GrammarCursor cursor(constraint, true);
    const auto allowed = [&] { return cursor.mask(false).list(); };
    CHECK(allowed() == std::vector<TokenId>{0});
    CHECK(cursor.advance("\xF0\x9F"));
    CHECK(allowed() == std::vector<TokenId>{1, 2});
    CHECK_FALSE(cursor.may_end());
    CHECK(cursor.advance("\x98"));
    // 😀 is there only as 98 80: after 98 alone nothing but 81 ends a character, or 80 with the next one.
    CHECK(allowed() == std::vector<TokenId>{3, 4});
    CHECK_THROWS_WITH_AS(TokenConstraint(read_gbnf("root ::= \"😀\" \"é\"", "g"), halves,
                                         std::make_shared<GrammarVocabulary>(halves), "g"),
                         doctest::Contains("g: expected a text that the model's tokens can spell"), Error);
}

TEST_CASE("a text ends where its grammar does, and end tokens come only there") {
    const FakeTokenizer bytes = byte_vocabulary();
    const auto vocabulary = std::make_shared<GrammarVocabulary>(bytes);
    const auto end_of = [&](const char* gbnf, std::int64_t tokens) {
        GenerateOptions options;
        options.tokens = tokens;
        options.sampler.temperature = 0;
        options.grammar = std::make_shared<TokenConstraint>(read_gbnf(gbnf, "g"), bytes, vocabulary, "g");
        Continuation text(bytes, {0}, options, [](std::optional<TokenId>, std::string_view) {});
        std::vector<float> logits(static_cast<std::size_t>(bytes.size()), 0.f);
        logits.back() = 5;  // the end token
        while (!text.ended()) text.take(logits);
        return text.result();
    };
    CHECK(end_of("root ::= \"abc\"", 9).end == GenerateEnd::grammar);
    CHECK(end_of("root ::= \"abc\"", 9).complete == true);
    CHECK(end_of("root ::= \"abc\"", 1).end == GenerateEnd::length);
    CHECK(end_of("root ::= \"\\x01\\x02\\x03\"", 1).complete == false);
    CHECK(end_of("root ::= \"a\"{2} \"a\"*", 9).end == GenerateEnd::end_token);
    CHECK(end_of("root ::= \"\\x01\"{2} \"a\"*", 9).ids.size() == 3);
    CHECK(end_of("root ::= \"\"", 9).end == GenerateEnd::grammar);
    CHECK(end_of("root ::= \"\"", 9).ids.empty());
}
