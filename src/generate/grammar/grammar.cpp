#include "generate/grammar/grammar.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace linnet {
namespace {

/// More than is written by hand; a schema that multiplies out to more is refused.
constexpr std::size_t most_exprs = 2'000'000;

}  // namespace

ExprId Grammar::add(Expr expr) {
    if (exprs_.size() >= most_exprs)
        fail_input("", "grammar", "at most 2 million expressions", "more", "it multiplies out");
    exprs_.push_back(std::move(expr));
    return static_cast<ExprId>(exprs_.size() - 1);
}

ExprId Grammar::chars(CharSet set) {
    Expr e{Expr::Kind::chars};
    e.chars = std::move(set);
    return add(std::move(e));
}

ExprId Grammar::literal(std::string_view utf8) {
    std::vector<ExprId> parts;
    for (char32_t code : code_points(utf8)) parts.push_back(chars({{code, code}}));
    return sequence(std::move(parts));
}

ExprId Grammar::sequence(std::vector<ExprId> parts) {
    if (parts.size() == 1) return parts[0];
    Expr e{Expr::Kind::sequence};
    e.parts = std::move(parts);
    return add(std::move(e));
}

ExprId Grammar::choice(std::vector<ExprId> parts) {
    if (parts.size() == 1) return parts[0];
    Expr e{Expr::Kind::choice};
    e.parts = std::move(parts);
    return add(std::move(e));
}

ExprId Grammar::repeat(ExprId part, std::int32_t min, std::int32_t max) {
    Expr e{Expr::Kind::repeat};
    e.parts = {part};
    e.min = min;
    e.max = max;
    return add(std::move(e));
}

ExprId Grammar::reference(RuleId rule) {
    Expr e{Expr::Kind::rule};
    e.rule = rule;
    return add(std::move(e));
}

RuleId Grammar::declare(std::string name, std::string place) {
    rules_.push_back({std::move(name), std::move(place)});
    return static_cast<RuleId>(rules_.size() - 1);
}

/// Counts for every expression how many parts are still missing, and lets each that comes true tell those
/// that it is a part of: linear in the size of the grammar.
std::vector<bool> Grammar::derive(const std::function<bool(const Expr&)>& leaf) const {
    const std::size_t n = exprs_.size();
    std::vector<bool> holds(n, false);
    std::vector<std::size_t> missing(n, 1);
    std::vector<std::vector<ExprId>> whole_of(n);
    std::vector<ExprId> news;
    auto learn = [&](ExprId id) {
        if (holds[static_cast<std::size_t>(id)]) return;
        holds[static_cast<std::size_t>(id)] = true;
        news.push_back(id);
    };
    for (std::size_t i = 0; i < n; i++) {
        const Expr& e = exprs_[i];
        const auto id = static_cast<ExprId>(i);
        if (e.kind == Expr::Kind::sequence) missing[i] = e.parts.size();
        for (ExprId part : e.parts) whole_of[static_cast<std::size_t>(part)].push_back(id);
        if (e.kind == Expr::Kind::rule) whole_of[static_cast<std::size_t>(rule(e.rule).body)].push_back(id);
        if ((e.kind == Expr::Kind::chars && leaf(e)) || missing[i] == 0 ||
            (e.kind == Expr::Kind::repeat && e.min == 0))
            learn(id);
    }
    while (!news.empty()) {
        const ExprId id = news.back();
        news.pop_back();
        for (ExprId whole : whole_of[static_cast<std::size_t>(id)])
            if (--missing[static_cast<std::size_t>(whole)] == 0) learn(whole);
    }
    return holds;
}

/// Of a rule that nothing fulfils, the rule that is to blame: one that cannot do without itself.
RuleId Grammar::endless_rule(RuleId start, const std::vector<bool>& productive) const {
    std::vector<bool> seen(rules_.size(), false);
    while (!seen[static_cast<std::size_t>(start)]) {
        seen[static_cast<std::size_t>(start)] = true;
        ExprId at = rule(start).body;
        for (const Expr* e = nullptr;;) {
            e = &exprs_[static_cast<std::size_t>(at)];
            if (e->kind == Expr::Kind::rule) break;
            const auto part = std::find_if(e->parts.begin(), e->parts.end(), [&](ExprId id) {
                return !productive[static_cast<std::size_t>(id)];
            });
            if (part == e->parts.end()) return start;  // no characters to choose from
            at = *part;
        }
        start = exprs_[static_cast<std::size_t>(at)].rule;
    }
    return start;
}

void Grammar::check(std::string_view file) const {
    const std::vector<bool> productive = derive([](const Expr& e) { return !e.chars.empty(); });
    for (std::size_t i = 0; i < rules_.size(); i++)
        if (!productive[static_cast<std::size_t>(rules_[i].body)]) {
            const Rule& r = rule(endless_rule(static_cast<RuleId>(i), productive));
            fail_input(file, r.place, "a rule that some finite text fulfils",
                       quoted(r.name) + ", which never ends");
        }
    // A cycle among expressions of which each may begin with the next.
    const std::vector<bool> nullable = derive([](const Expr&) { return false; });
    enum : char { unseen, open, done };
    std::vector<char> state(exprs_.size(), unseen);
    struct Step {
        ExprId id;
        std::size_t next;
    };
    std::vector<Step> path;
    auto fail_left_recursion = [&] {
        auto through = std::find_if(path.rbegin(), path.rend(), [&](const Step& step) {
            return exprs_[static_cast<std::size_t>(step.id)].kind == Expr::Kind::rule;
        });
        const Rule& r = rule(exprs_[static_cast<std::size_t>(through->id)].rule);
        fail_input(file, r.place, "a rule that begins with something else than itself", quoted(r.name),
                   "left recursion; repetitions are written with * or +");
    };
    auto visit = [&](ExprId id) {
        char& s = state[static_cast<std::size_t>(id)];
        if (s == unseen)
            s = open, path.push_back({id, 0});
        else if (s == open)
            fail_left_recursion();
    };
    for (std::size_t start = 0; start < rules_.size(); start++) {
        visit(rules_[start].body);
        while (!path.empty()) {
            const auto [id, next] = path.back();
            const Expr& e = exprs_[static_cast<std::size_t>(id)];
            if (e.kind == Expr::Kind::rule && next == 0) {
                path.back().next = 1;
                visit(rule(e.rule).body);
            } else if (next < e.parts.size() && (next == 0 || e.kind == Expr::Kind::choice ||
                                                 nullable[static_cast<std::size_t>(e.parts[next - 1])])) {
                path.back().next++;
                visit(e.parts[next]);
            } else {
                state[static_cast<std::size_t>(id)] = done;
                path.pop_back();
            }
        }
    }
}

}  // namespace linnet
