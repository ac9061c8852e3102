// A team of threads: members that work side by side, alone or meeting each other, or stages whose parts are
// taken by the members that are free. README.md tells how the team shares a machine that others use as well.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <type_traits>

#include "base/processors.h"

namespace linnet {

/// Half-open range of work items.
struct Range {
    std::int64_t begin = 0, end = 0;
    std::int64_t size() const { return end - begin; }
};

class Team;

/// One member of a team: which it is, of how many. In a stage: one part, of how many.
struct Worker {
    int index = 0, count = 1;
    Team* team = nullptr;  // null: alone, or a part of a stage

    /// Waits until every member of the team has arrived. All members must call it equally often. What a
    /// member wrote before is seen by all after. Not in a stage: there it is a std::logic_error.
    void sync() const;

    /// This member's contiguous share of n items, cut at multiples of `grain` (so that a tile is never
    /// split).
    Range share(std::int64_t n, std::int64_t grain = 1) const {
        std::int64_t units = (n + grain - 1) / grain;
        std::int64_t b = units * index / count * grain, e = units * (index + 1) / count * grain;
        return {std::min(b, n), std::min(e, n)};
    }
};

/// Runs `work` once on each of up to `threads` members, one of them the caller's thread: no more than there
/// are processors, fewer where the system has no thread left, one where another thread of the program has a
/// team at work (Worker::count tells). Members are threads that sleep from one run to the next. An exception
/// releases the members that wait in sync() and is rethrown after all have ended (the lowest member's, where
/// several throw). A team inside a team is a std::logic_error.
void run_team(int threads, const std::function<void(Worker)>& work);

/// A member's walk through the stages of a run_stages.
class StageWalker {
  public:
    int index() const { return index_; }  // which member: the caller's is 0
    int count() const { return count_; }

    /// The next stage: work(part) is called once for each of `each` × count() parts (one, where count() is
    /// 1), by this member or another, and all parts of this stage are done before any of the next begins.
    /// Every member must walk the same stages. A member takes the parts of its own lane, part.index / each,
    /// which keeps its caches warm, then what others have left in theirs; one that comes late finds the
    /// stage done and walks on. False: the run has ended; the walk must return at once and touch nothing
    /// that the caller of run_stages owns.
    template <class Work>
    [[nodiscard]] bool stage(int each, Work&& work) {
        using Function = std::remove_reference_t<Work>;
        return walk(each, &work,
                    [](void* context, Worker part) { (*static_cast<Function*>(context))(part); });
    }

  private:
    friend class Team;
    friend void run_stages(int, const std::function<void(StageWalker&)>&);
    using Call = void (*)(void*, Worker);
    StageWalker() = default;  // alone
    StageWalker(Team* team, int index, int count, std::uint32_t run, std::uint32_t start)
        : team_(team), index_(index), count_(count), run_(run), begin_(start), goal_(start) {}
    bool walk(int each, void* context, Call call);

    Team* team_ = nullptr;
    int index_ = 0, count_ = 1;
    std::uint32_t run_ = 0;
    std::uint32_t begin_ = 0;  // the ticket with which each lane begins the next stage
    std::uint32_t goal_ = 0;   // what is counted when all stages so far are done
    bool eager_ = false;       // the last time, a lane had parts left over: look again without waiting first
};

/// Calls `walk` on the caller's thread and on up to `threads` - 1 others (as run_team), which join when they
/// get there, at any stage or at none. Returns when the caller's walk is over: a member that is without a
/// processor holds up no more than the part it is at. Exceptions as run_team.
void run_stages(int threads, const std::function<void(StageWalker&)>& walk);

}  // namespace linnet
