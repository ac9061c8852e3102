// Where buffers live and where the team must meet.
#include <algorithm>
#include <numeric>

#include "graph/plan.h"

namespace linnet {

/// Greedy by size (Pisarchyk & Lee 2020, "Efficient memory management for deep neural net inference", section
/// 5): the largest buffer first, each at the lowest offset that no buffer alive at the same time covers.
void pack(Plan& plan) {
    constexpr std::int64_t alignment = 16;  // elements: a cache line of floats
    std::vector<std::size_t> order(plan.buffers.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return plan.buffers[a].size > plan.buffers[b].size;
    });
    std::vector<std::size_t> placed;  // by offset
    for (std::size_t index : order) {
        Buffer& b = plan.buffers[index];
        std::int64_t size = (b.size + alignment - 1) / alignment * alignment, offset = 0;
        for (std::size_t other : placed) {
            const Buffer& o = plan.buffers[other];
            if (o.last < b.first || b.last < o.first) continue;
            if (offset + size <= o.offset) break;
            offset = std::max(offset, o.offset + (o.size + alignment - 1) / alignment * alignment);
        }
        b.offset = offset;
        plan.arena_size = std::max(plan.arena_size, offset + size);
        placed.insert(std::upper_bound(placed.begin(), placed.end(), index,
                                       [&](std::size_t x, std::size_t y) {
                                           return plan.buffers[x].offset < plan.buffers[y].offset;
                                       }),
                      index);
    }
}

namespace {

/// Memory that a step reads or writes: a stretch of the arena, or (space > 0) a parameter's gradient.
struct Access {
    std::int64_t space, begin, end;
};

bool overlap(const std::vector<Access>& a, const std::vector<Access>& b) {
    for (const Access& x : a)
        for (const Access& y : b)
            if (x.space == y.space && x.begin < y.end && y.begin < x.end) return true;
    return false;
}

void accesses(const Graph& graph, const Plan& plan, const PlanStep& s, std::vector<Access>& reads,
              std::vector<Access>& writes) {
    auto range = [&](std::vector<Access>& list, BufferId id) {
        if (id == none) return;
        const Buffer& b = plan.buffers[static_cast<std::size_t>(id)];
        list.push_back({0, b.offset, b.offset + b.size});
    };
    bool makes_out = s.phase == Phase::forward || graph.node(s.node).op->loss;
    for (BufferId id : s.in) range(reads, id);
    range(reads, s.add);
    range(reads, s.dout);
    range(makes_out ? writes : reads, s.out);
    range(s.phase == Phase::forward ? writes : reads, s.saved);
    range(writes, s.scratch);
    for (BufferId id : s.din)
        if (id != s.dout) range(writes, id);
    if (s.phase == Phase::backward)
        for (ParameterId p : graph.node(s.node).parameters) writes.push_back({1 + p, 0, 1});
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
