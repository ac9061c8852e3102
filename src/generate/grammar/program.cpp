#include "generate/grammar/program.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace linnet {
namespace {

using Op = Instruction::Op;
constexpr std::int32_t at_ret = 0;  // the instruction that returns

/// UTF-8 of characters from first to last as rows of byte ranges (Cox 2010, "Regular expression matching in
/// the wild", section "UTF-8"): cut where the length changes and where a byte's range is not whole.
void byte_rows(char32_t first, char32_t last, std::vector<std::vector<ByteRange>>& rows) {
    for (char32_t limit : {char32_t{0x7F}, char32_t{0x7FF}, char32_t{0xFFFF}})
        if (first <= limit && last > limit) {
            byte_rows(first, limit, rows);
            byte_rows(limit + 1, last, rows);
            return;
        }
    if (first >= 0x80)
        for (int n = 1; n < 4; n++) {
            const char32_t mask = (char32_t{1} << 6 * n) - 1;
            if ((first & ~mask) == (last & ~mask)) continue;
            if ((first & mask) != 0) {
                byte_rows(first, first | mask, rows);
                byte_rows((first | mask) + 1, last, rows);
                return;
            }
            if ((last & mask) != mask) {
                byte_rows(first, (last & ~mask) - 1, rows);
                byte_rows(last & ~mask, last, rows);
                return;
            }
        }
    const std::string a = utf8_of(first), b = utf8_of(last);
    std::vector<ByteRange>& row = rows.emplace_back();
    for (std::size_t i = 0; i < a.size(); i++)
        row.push_back({static_cast<std::uint8_t>(a[i]), static_cast<std::uint8_t>(b[i])});
}

}  // namespace

GrammarProgram::GrammarProgram(const Grammar& grammar, const GrammarVocabulary& vocabulary,
                               std::string_view file)
    : grammar_(&grammar), vocabulary_(&vocabulary), entries_(grammar.rules().size(), -1) {
    const CharSet& spellable = vocabulary.spellable();
    productive_ = grammar.derive([&](const Expr& e) {
        return std::any_of(e.chars.ranges().begin(), e.chars.ranges().end(),
                           [&](const CharRange& r) { return spellable.meets(r.first, r.last); });
    });
    nullable_ = grammar.derive([](const Expr&) { return false; });
    const Grammar::Rule& root = grammar.rule(grammar.root);
    if (!productive_[static_cast<std::size_t>(root.body)])
        fail_input(file, "", "a text that the model's tokens can spell",
                   "a grammar that needs characters without tokens");
    emit({Op::ret});
    start_ = rule_entry(grammar.root);
    while (!waiting_.empty()) {
        const RuleId rule = waiting_.back();
        waiting_.pop_back();
        // The split was emitted so that calls have where to go.
        const std::int32_t body = compile(grammar.rule(rule).body, at_ret);
        const std::int32_t entry = entries_[static_cast<std::size_t>(rule)];
        targets_[static_cast<std::size_t>(code_[static_cast<std::size_t>(entry)].first)] = body;
    }
    find_classes();
    grammar_ = nullptr;
    vocabulary_ = nullptr;
}

std::int32_t GrammarProgram::emit(const Instruction& instruction) {
    code_.push_back(instruction);
    return static_cast<std::int32_t>(code_.size() - 1);
}

std::int32_t GrammarProgram::emit_split(std::vector<std::int32_t> targets) {
    Instruction split{Op::split};
    split.first = static_cast<std::int32_t>(targets_.size());
    split.count = static_cast<std::int32_t>(targets.size());
    targets_.insert(targets_.end(), targets.begin(), targets.end());
    return emit(split);
}

std::int32_t GrammarProgram::rule_entry(RuleId rule) {
    std::int32_t& entry = entries_[static_cast<std::size_t>(rule)];
    if (entry < 0) {
        entry = emit_split({at_ret});
        waiting_.push_back(rule);
    }
    return entry;
}

std::int32_t GrammarProgram::compile(ExprId id, std::int32_t next) {
    const Expr& e = grammar_->exprs()[static_cast<std::size_t>(id)];
    switch (e.kind) {
        case Expr::Kind::chars:
            return compile_chars(e.chars, next);
        case Expr::Kind::sequence:
            for (std::size_t i = e.parts.size(); i-- > 0;) next = compile(e.parts[i], next);
            return next;
        case Expr::Kind::choice: {
            std::vector<std::int32_t> targets;
            for (ExprId part : e.parts)
                if (productive_[static_cast<std::size_t>(part)]) targets.push_back(compile(part, next));
            return targets.size() == 1 ? targets[0] : emit_split(std::move(targets));
        }
        case Expr::Kind::repeat:
            return compile_repeat(e, next);
        case Expr::Kind::rule:
            break;
    }
    const std::int32_t entry = rule_entry(e.rule);
    if (next == at_ret) return entry;  // nothing to come back for: right recursion keeps no stack
    Instruction call{Op::call};
    call.first = entry;
    call.next = next;
    return emit(call);
}

std::int32_t GrammarProgram::compile_repeat(const Expr& e, std::int32_t next) {
    const ExprId part = e.parts[0];
    if (e.max == 0 || !productive_[static_cast<std::size_t>(part)]) return next;
    if (e.min <= 1 && e.max == 1)
        return e.min == 1 ? compile(part, next) : emit_split({compile(part, next), next});
    if (e.max < 0 && e.min <= 1) {
        const std::int32_t again = emit_split({at_ret, next});
        const std::int32_t body = compile(part, again);
        targets_[static_cast<std::size_t>(code_[static_cast<std::size_t>(again)].first)] = body;
        return e.min == 0 ? again : body;
    }
    Instruction loop{Op::loop};
    loop.first = compile(part, at_ret);
    loop.next = next;
    // Rounds that consume nothing are not counted, so that a part which may be empty need not come at all.
    loop.min = nullable_[static_cast<std::size_t>(part)] ? 0 : e.min;
    loop.max = e.max;
    return emit(loop);
}

std::int32_t GrammarProgram::compile_rest(std::span<const ByteRange> rest, std::int32_t next,
                                          std::map<Rest, std::int32_t>& made) {
    if (rest.empty()) return next;
    const Rest key{{rest.begin(), rest.end()}, next};
    if (auto found = made.find(key); found != made.end()) return found->second;
    const std::int32_t target = compile_rest(rest.subspan(1), next, made);
    Instruction bytes{Op::bytes};
    bytes.open = vocabulary_->spells(rest);
    bytes.first = static_cast<std::int32_t>(edges_.size());
    bytes.count = 1;
    edges_.push_back({rest[0], target});
    return made[key] = emit(bytes);
}

std::int32_t GrammarProgram::compile_chars(const CharSet& set, std::int32_t next) {
    std::vector<std::vector<ByteRange>> rows;
    const CharSet spelled = set.both(vocabulary_->spellable());
    for (const CharRange& r : spelled.ranges()) byte_rows(r.first, r.last, rows);
    std::map<Rest, std::int32_t> made;
    std::vector<ByteEdge> edges;
    for (const std::vector<ByteRange>& row : rows) {
        const std::int32_t target = compile_rest(std::span(row).subspan(1), next, made);
        if (!edges.empty() && edges.back().target == target && edges.back().bytes.last + 1 == row[0].first)
            edges.back().bytes.last = row[0].last;
        else
            edges.push_back({row[0], target});
    }
    Instruction bytes{Op::bytes};
    bytes.first = static_cast<std::int32_t>(edges_.size());
    bytes.count = static_cast<std::int32_t>(edges.size());
    edges_.insert(edges_.end(), edges.begin(), edges.end());
    return emit(bytes);
}

void GrammarProgram::find_classes() {
    std::array<bool, 257> border{};
    for (const ByteEdge& e : edges_) border[e.bytes.first] = border[e.bytes.last + 1] = true;
    border[0] = false;
    std::uint8_t now = 0;
    for (std::size_t byte = 0; byte < 256; byte++)
        classes_[byte] = now = static_cast<std::uint8_t>(now + border[byte]);
    class_count_ = std::size_t{now} + 1;
}

}  // namespace linnet
