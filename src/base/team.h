// A team of threads inside one OpenMP parallel region.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>

namespace linnet {

class TeamBarrier;

/// Half-open range of work items.
struct Range {
    std::int64_t begin = 0, end = 0;
    std::int64_t size() const { return end - begin; }
};

/// One member of a team: which it is, how many there are, and the barrier they share.
struct Worker {
    int index = 0, count = 1;
    TeamBarrier* barrier = nullptr;  // null: alone, sync() has nothing to wait for

    /// Waits until every member of the team has arrived. All members must call it equally often. What a
    /// member wrote before is seen by all after.
    void sync() const;

    /// This member's contiguous share of n items, cut at multiples of `grain` (so that a tile is never
    /// split).
    Range share(std::int64_t n, std::int64_t grain = 1) const {
        std::int64_t units = (n + grain - 1) / grain;
        std::int64_t b = units * index / count * grain, e = units * (index + 1) / count * grain;
        return {std::min(b, n), std::min(e, n)};
    }
};

/// Runs `work` once on each of `threads` members (OpenMP; the system may grant fewer: Worker::count tells).
/// An exception releases the members that wait in sync() and is rethrown after all have ended (the lowest
/// member's, where several throw). A team inside a team is a std::logic_error.
void run_team(int threads, const std::function<void(Worker)>& work);

/// Physical cores that this process may use (its affinity mask and cgroup quota respected); at least 1.
int physical_cores();

}  // namespace linnet
