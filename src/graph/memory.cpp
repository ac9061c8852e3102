// Where buffers live and where the team must meet.
#include <algorithm>
#include <numeric>

#include "graph/plan.h"

namespace linnet {

/// Greedy by size (Pisarchyk & Lee 2020, "Efficient memory management for deep neural net inference", section
/// 5): the largest buffer first, each at the lowest offset that no buffer alive at the same time covers.
void pack(Plan& plan) {
    constexpr std::size_t alignment = 64;  // bytes: a cache line
    std::vector<std::size_t> order(plan.values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return plan.values[a].bytes > plan.values[b].bytes;
    });
    std::vector<std::size_t> placed;  // by offset
    for (std::size_t index : order) {
        Value& b = plan.values[index];
        std::size_t size = (b.bytes + alignment - 1) / alignment * alignment, offset = 0;
        for (std::size_t other : placed) {
            const Value& o = plan.values[other];
            if (o.last < b.first || b.last < o.first) continue;
            if (offset + size <= o.offset) break;
            offset = std::max(offset, o.offset + (o.bytes + alignment - 1) / alignment * alignment);
        }
        b.offset = offset;
        plan.arena_bytes = std::max(plan.arena_bytes, offset + size);
        placed.insert(std::upper_bound(placed.begin(), placed.end(), index,
                                       [&](std::size_t x, std::size_t y) {
                                           return plan.values[x].offset < plan.values[y].offset;
                                       }),
                      index);
    }
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
