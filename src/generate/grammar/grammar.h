// A context-free grammar over characters, as data.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "generate/grammar/char_set.h"

namespace linnet {

using ExprId = std::int32_t;
using RuleId = std::int32_t;

struct Expr {
    enum class Kind : std::uint8_t { chars, sequence, choice, repeat, rule };
    Kind kind = Kind::sequence;
    CharSet chars{};              // of chars: one character of these
    std::vector<ExprId> parts{};  // of sequence (none: the empty text), choice (at least one), repeat (one)
    std::int32_t min = 0, max = -1;  // of repeat; max -1: without end
    RuleId rule = -1;
};

/// Rules over a pool of expressions, which may be shared. The reader of a file builds one, asks check(), and
/// hands it to a GrammarProgram.
class Grammar {
  public:
    ExprId chars(CharSet set);
    ExprId literal(std::string_view utf8);
    ExprId sequence(std::vector<ExprId> parts);
    ExprId choice(std::vector<ExprId> parts);
    ExprId repeat(ExprId part, std::int32_t min, std::int32_t max);
    ExprId optional(ExprId part) { return repeat(part, 0, 1); }
    ExprId reference(RuleId rule);

    struct Rule {
        std::string name, place;  // for errors: "line 3", a path
        ExprId body = -1;
    };
    RuleId declare(std::string name, std::string place = {});
    void define(RuleId rule, ExprId body) { rules_[static_cast<std::size_t>(rule)].body = body; }
    void place(RuleId rule, std::string place) {
        rules_[static_cast<std::size_t>(rule)].place = std::move(place);
    }
    /// A rule for what may be shared or recursive, and the reference to it.
    ExprId rule_of(std::string name, ExprId body) {
        const RuleId rule = declare(std::move(name));
        define(rule, body);
        return reference(rule);
    }

    const std::vector<Expr>& exprs() const { return exprs_; }
    const std::vector<Rule>& rules() const { return rules_; }
    const Rule& rule(RuleId id) const { return rules_[static_cast<std::size_t>(id)]; }
    RuleId root = 0;

    /// Error(Exit::input) naming `file` and the place of a rule that begins with itself before it has
    /// consumed anything, or that no finite text can fulfil. All rules must be defined.
    void check(std::string_view file) const;

    /// For every expression: what holds of it where `leaf` says it of characters, a sequence has it where all
    /// parts do, a choice where one does, a repetition where its part does or it may be none. (Nullable:
    /// leaf is false. Productive: leaf is true.)
    std::vector<bool> derive(const std::function<bool(const Expr&)>& leaf) const;

  private:
    ExprId add(Expr expr);
    RuleId endless_rule(RuleId start, const std::vector<bool>& productive) const;
    std::vector<Expr> exprs_;
    std::vector<Rule> rules_;
};

}  // namespace linnet
