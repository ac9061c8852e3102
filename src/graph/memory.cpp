// Where buffers live and where the team must meet.
#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>
#include <vector>

#include "graph/plan.h"

namespace linnet {

namespace {

/// A stretch of the arena: [begin, end).
struct Stretch {
    std::size_t begin, end;
};

/// Stretches that are in use, in order, merged where they meet.
class Taken {
  public:
    void add(Stretch s) {
        auto from = std::ranges::lower_bound(list_, s.begin, {}, &Stretch::end), to = from;
        for (; to != list_.end() && to->begin <= s.end; ++to)
            s = {std::min(s.begin, to->begin), std::max(s.end, to->end)};
        if (from == to) {
            list_.insert(from, s);
        } else {
            *from = s;
            list_.erase(from + 1, to);
        }
    }
    /// `offset`, or the end of the first stretch in use that `size` bytes from there would touch.
    std::size_t beyond(std::size_t offset, std::size_t size) const {
        const auto next = std::ranges::upper_bound(list_, offset, {}, &Stretch::end);
        return next != list_.end() && next->begin < offset + size ? next->end : offset;
    }

  private:
    std::vector<Stretch> list_;
};

/// Which stretches are in use when: a binary tree over the steps. A buffer belongs to the few nodes whose
/// steps it outlives and which together are its life.
class Timeline {
  public:
    explicit Timeline(int steps) : leaves_(static_cast<int>(std::bit_ceil(static_cast<unsigned>(steps)))) {
        nodes_.resize(2 * static_cast<std::size_t>(leaves_));
    }
    void add(const Value& v, Stretch s) {
        visit(v, [&](Node& node, bool whole) {
            node.at_some_time.add(s);
            if (whole) node.always.add(s);
        });
    }
    /// The lowest offset at which `size` bytes are free during the whole life of `v`.
    std::size_t lowest(const Value& v, std::size_t size) {
        asked_.clear();
        visit(v,
              [&](Node& node, bool whole) { asked_.push_back(whole ? &node.at_some_time : &node.always); });
        std::size_t offset = 0;
        for (std::size_t at = 0, agreed = 0; agreed < asked_.size(); looks_++) {
            const std::size_t next = asked_[at]->beyond(offset, size);
            if (next == offset) {
                agreed++, at = (at + 1) % asked_.size();
            } else {
                agreed = 0, offset = next;
            }
        }
        return offset;
    }
    std::size_t looks() const { return looks_; }

  private:
    struct Node {
        Taken always,      // of buffers that belong to this node
            at_some_time;  // and of those that belong to nodes below it
    };

    /// Nodes from the root down to those that together are the life of `v`; of these, whole is true.
    template <class Look>
    void visit(const Value& v, const Look& look) {
        visit(v, look, 1, 0, leaves_);
    }
    template <class Look>
    void visit(const Value& v, const Look& look, std::size_t node, int first, int count) {
        const int middle = first + count / 2;
        const bool whole = v.first <= first && first + count - 1 <= v.last;
        look(nodes_[node], whole);
        if (whole) return;
        if (v.first < middle) visit(v, look, 2 * node, first, count / 2);
        if (v.last >= middle) visit(v, look, 2 * node + 1, middle, count / 2);
    }

    int leaves_;
    std::vector<Node> nodes_;
    std::vector<const Taken*> asked_;
    std::size_t looks_ = 0;
};

/// What step `at` makes may stand where that input does, which it is the last to read.
bool may_become(const Value& input, const Value& made, int at) {
    return input.last == at && made.first == at && input.type == made.type && input.space == made.space &&
           input.width == made.width;
}

}  // namespace

/// An input's value gets the life of what is made over it, whose own value nothing refers to any more. The
/// first input will do: they are all as large.
void make_in_place(const Graph& graph, Plan& plan) {
    ById<ValueId> is(plan.values.size(), none);  // of each value: the one that it has become
    std::iota(is.begin(), is.end(), ValueId{0});
    auto rename = [&](ValueId& id) {
        if (id != none) id = is[id];
    };
    for (int at = 0; at < static_cast<int>(plan.steps.size()); at++) {
        PlanStep& s = plan.steps[at];
        for (ValueId& id : s.in) rename(id);
        for (ValueId& id : s.din) rename(id);
        for (ValueId* id : {&s.out, &s.add, &s.saved, &s.scratch, &s.dout}) rename(*id);
        const unsigned may = s.runs_forward() ? graph.node(s.node).op->in_place : 0;
        for (std::size_t i = 0; may >> i != 0 && i < s.in.size(); i++) {
            if (!(may >> i & 1u) || s.in[i] == none) continue;
            Value &input = plan.values[s.in[i]], &made = plan.values[s.out];
            if (!may_become(input, made, at)) continue;
            input.last = made.last;
            made.bytes = 0;
            s.out = is[s.out] = s.in[i];
            break;
        }
    }
    for (ValueId& id : plan.value) rename(id);
}

/// Greedy by size (Pisarchyk & Lee 2020, "Efficient memory management for deep neural net inference", section
/// 5): the largest buffer first, each at the lowest offset that no buffer alive at the same time covers.
std::size_t pack(Plan& plan) {
    constexpr std::size_t alignment = 64;  // bytes: a cache line
    std::vector<std::size_t> order(plan.values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return plan.values[i].bytes; });
    int last = 0;
    for (const Value& v : plan.values) last = std::max(last, v.last);
    Timeline timeline(last + 1);
    for (std::size_t index : order) {
        Value& v = plan.values[index];
        v.offset = 0;
        if (v.bytes == 0) continue;
        const std::size_t size = (v.bytes + alignment - 1) / alignment * alignment;
        v.offset = timeline.lowest(v, size);
        timeline.add(v, {v.offset, v.offset + size});
        plan.arena_bytes = std::max(plan.arena_bytes, v.offset + size);
    }
    return timeline.looks();
}

namespace {

/// Memory that a step reads or writes: a stretch of the arena (space 0), a parameter's gradient (1, 2, …), or
/// a state (-1, -2, …).
struct Access {
    std::int64_t space;
    std::size_t begin, end;
};

bool overlap(const std::vector<Access>& a, const std::vector<Access>& b) {
    for (const Access& x : a)
        for (const Access& y : b)
            if (x.space == y.space && x.begin < y.end && y.begin < x.end) return true;
    return false;
}

void accesses(const Graph& graph, const Plan& plan, const PlanStep& s, std::vector<Access>& reads,
              std::vector<Access>& writes) {
    auto range = [&](std::vector<Access>& list, ValueId id) {
        if (id == none) return;
        const Value& v = plan.values[id];
        list.push_back({0, v.offset, v.offset + v.bytes});
    };
    const Node& node = graph.node(s.node);
    bool forward = s.runs_forward(), backward = s.kind == StepKind::backward;
    for (ValueId id : s.in) range(reads, id);
    range(reads, s.add);
    range(reads, s.dout);
    range(backward && !node.op->loss ? reads : writes, s.out);
    range(forward ? writes : reads, s.saved);
    range(writes, s.scratch);
    for (ValueId id : s.din)
        if (id != s.dout) range(writes, id);
    if (backward)
        for (ParameterId p : node.parameters) writes.push_back({1 + p, 0, 1});
    if (forward && plan.lowering.states && node.reads != none) reads.push_back({-1 - node.reads, 0, 1});
    if (forward && plan.lowering.states && node.writes != none) writes.push_back({-1 - node.writes, 0, 1});
}

}  // namespace

/// A barrier stands before a step that touches what a step since the last barrier wrote, or writes what one
/// read. (The three projections q, k, v have none between them.)
void place_barriers(const Graph& graph, Plan& plan) {
    std::vector<Access> reads, writes;  // since the last barrier
    for (PlanStep& step : plan.steps) {
        std::vector<Access> r, w;
        accesses(graph, plan, step, r, w);
        if (overlap(w, writes) || overlap(w, reads) || overlap(r, writes)) {
            step.barrier = true;
            reads.clear(), writes.clear();
        }
        reads.insert(reads.end(), r.begin(), r.end());
        writes.insert(writes.end(), w.begin(), w.end());
    }
}

}  // namespace linnet
