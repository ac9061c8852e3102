// Random grammars and schemas, what fulfils them by a slow second opinion, and vocabularies to write them
// with.
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/rng.h"
#include "generate/fakes.h"
#include "generate/grammar/constraint.h"

namespace linnet::test {

/// Draws that follow each other, for tests that make something up.
class Dice {
  public:
    explicit Dice(std::uint64_t seed) : rng_(seed, 0x64696365) {}
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(rng_.below(n, count_++)); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    double normal() { return rng_.normal(count_++); }

  private:
    Rng rng_;
    std::uint64_t count_ = 0;
};

/// A grammar of its own kind, to be printed as GBNF and matched by trying everything.
struct RandomGrammar {
    struct Node {
        enum Kind { text, set, sequence, choice, repeat, rule } kind = sequence;
        std::u32string chars;  // of text; of set: its members
        bool others = false;   // of set: all but these
        std::vector<Node> parts;
        int min = 0, max = -1, rule_number = 0;
    };
    std::vector<Node> rules;

    static RandomGrammar make(Dice& dice);
    std::string gbnf(Dice& dice) const;
    bool matches(const std::u32string& text) const;
    /// A text of the grammar.
    std::u32string example(Dice& dice) const;
};

/// A schema out of everything that linnet supports; `value` fulfils it by a plain reading of the standard.
nlohmann::ordered_json random_schema(Dice& dice);
bool fulfils(const nlohmann::ordered_json& value, const nlohmann::ordered_json& schema,
             const nlohmann::ordered_json& root);

/// All bytes and pieces of JSON, of words and of characters in halves, and an end token (the last id).
FakeTokenizer byte_vocabulary();
/// No bytes: some characters, whole or in halves, and pieces that reach from one into the next.
FakeTokenizer character_vocabulary();

/// Whether the text is one of the grammar, spelled byte by byte.
bool accepts(const Grammar& grammar, const std::string& text);

/// A text written from random logits; what closes and ends is likelier the longer it gets.
struct Written {
    std::string text;
    Generated result;
    std::size_t tokens = 0;
};
Written write_random(const std::shared_ptr<TokenConstraint>& constraint, const FakeTokenizer& tokenizer,
                     Dice& dice, std::size_t most_tokens);

/// How many random grammars and schemas are tried: LINNET_TEST_GRAMMARS, else `few`.
std::size_t rounds(std::size_t few);

}  // namespace linnet::test
