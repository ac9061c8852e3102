// A grammar as instructions over bytes, for the automaton to follow.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "generate/grammar/grammar.h"
#include "generate/grammar/vocabulary.h"

namespace linnet {

/// Where an instruction goes on with a byte.
struct ByteEdge {
    ByteRange bytes;
    std::int32_t target;
};

struct Instruction {
    enum class Op : std::uint8_t {
        bytes,  // consume one byte: edges [first, first + count); several may match
        split,  // go on in several places: targets [first, first + count)
        call,   // push `next`, go to `first`
        loop,   // run the part at `first`, which returns here, from min to max times, then go to `next`
        ret,    // pop
    };
    Op op;
    /// A token may end before this instruction: tokens can spell what is left of the character that it
    /// stands in.
    bool open = true;
    std::int32_t first = 0, count = 0, next = 0;
    std::int32_t min = 0, max = -1;  // max -1: without end
};

/// Immutable. A repetition is a loop that counts, not copies of its part. What the vocabulary cannot spell is
/// left out, so that from every reachable place tokens lead to an end of the text.
class GrammarProgram {
  public:
    /// Error(Exit::input) naming `file` where nothing is left of the root.
    GrammarProgram(const Grammar& grammar, const GrammarVocabulary& vocabulary, std::string_view file);

    std::int32_t start() const { return start_; }
    const Instruction& at(std::int32_t pc) const { return code_[static_cast<std::size_t>(pc)]; }
    std::span<const ByteEdge> edges(const Instruction& i) const {
        return std::span(edges_).subspan(static_cast<std::size_t>(i.first),
                                         static_cast<std::size_t>(i.count));
    }
    std::span<const std::int32_t> targets(const Instruction& i) const {
        return std::span(targets_).subspan(static_cast<std::size_t>(i.first),
                                           static_cast<std::size_t>(i.count));
    }
    /// Bytes that no edge tells apart have the same class.
    std::size_t class_of(std::uint8_t byte) const { return classes_[byte]; }
    std::size_t classes() const { return class_count_; }

  private:
    using Rest = std::pair<std::vector<ByteRange>, std::int32_t>;  // of a character, and what follows it
    std::int32_t emit(const Instruction& instruction);
    std::int32_t emit_split(std::vector<std::int32_t> targets);
    std::int32_t compile(ExprId id, std::int32_t next);
    std::int32_t compile_chars(const CharSet& set, std::int32_t next);
    std::int32_t compile_rest(std::span<const ByteRange> rest, std::int32_t next,
                              std::map<Rest, std::int32_t>& made);
    std::int32_t compile_repeat(const Expr& e, std::int32_t next);
    std::int32_t rule_entry(RuleId rule);
    void find_classes();

    const Grammar* grammar_;
    const GrammarVocabulary* vocabulary_;
    std::vector<bool> productive_, nullable_;
    std::vector<std::int32_t> entries_;  // of rules; -1: not compiled yet
    std::vector<RuleId> waiting_;
    std::vector<Instruction> code_;
    std::vector<ByteEdge> edges_;
    std::vector<std::int32_t> targets_;
    std::array<std::uint8_t, 256> classes_{};
    std::size_t class_count_ = 0;
    std::int32_t start_ = 0;
};

}  // namespace linnet
