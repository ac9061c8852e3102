// A team of threads inside one OpenMP parallel region.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>

namespace linnet {

/// Half-open range of work items.
struct Range {
    std::int64_t begin = 0, end = 0;
    std::int64_t size() const { return end - begin; }
};

/// One member of a team: which it is, how many there are, and the barrier they share.
struct Worker {
    int index = 0, count = 1;

    /// Waits until every member of the team has arrived. All members must call it equally often.
    void sync() const;

    /// This member's contiguous share of n items, cut at multiples of `grain` (so that a tile is never split).
    Range share(std::int64_t n, std::int64_t grain = 1) const {
        std::int64_t units = (n + grain - 1) / grain;
        std::int64_t b = units * index / count * grain, e = units * (index + 1) / count * grain;
        return {std::min(b, n), std::min(e, n)};
    }
};

/// Runs `work` once on each of `threads` members (OpenMP). The first exception is rethrown after all have
/// ended; work that calls sync() must therefore not throw between two syncs.
void run_team(int threads, const std::function<void(Worker)>& work);

/// Physical cores that this process may use (its affinity mask and cgroup quota respected); at least 1.
int physical_cores();

}  // namespace linnet
