#include "base/team.h"

#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "base/wait_word.h"

namespace linnet {
namespace {

/// Thrown in members that wait for one that has failed; never leaves a run.
struct Released {};

/// Whether a count that only grows, but may pass 2³², has come to `goal`.
bool reached(std::uint32_t count, std::uint32_t goal) {
    return static_cast<std::int32_t>(count - goal) >= 0;
}

thread_local bool inside_team = false;

}  // namespace

/// The program's one team: its threads, and the run at hand. Parts and arrivals are counted through the whole
/// life of the team (`done_`, `passed_`, the lanes' tickets), never from 0 again: so a member that was
/// without a processor while its run ended, and looks at a later run's counts, still sees its own goal
/// reached.
class Team {
  public:
    /// Never destroyed: its threads sleep in it until the program ends.
    static Team& the() {
        static Team& team = *new Team;
        return team;
    }

    /// Whole work for each member, or (`walk`) stages. False: another thread's run is going on.
    bool run(int threads, const std::function<void(Worker)>* work,
             const std::function<void(StageWalker&)>* walk);

  private:
    friend struct Worker;
    friend class StageWalker;
    enum Place : std::uint32_t { outside, inside };

    /// What belongs to one member: cache lines that it alone writes, mostly.
    struct Member {
        WaitWord turn;   // the run it is called to
        WaitWord place;  // inside: between entering and leaving a run, where it may touch the run's data
        alignas(64) std::atomic<std::uint32_t> ticket{0};  // the next part of its lane
        std::uint32_t arrivals = 0;                        // that sync() waits for
    };

    static constexpr int most_members = 1024;
    static constexpr std::uint32_t far = 1u << 30;  // more parts than a run has

    int hire(int wanted);
    void live(int index);
    void attend(int index);
    bool enter(int index, std::uint32_t run);
    void leave(int index);
    void fail(int index);
    bool failed() const { return failed_.load(std::memory_order_relaxed); }
    /// Counts parts or arrivals; true where all up to `goal` have been counted.
    bool finish(std::uint32_t number, std::uint32_t goal);
    void arrive(int index);

    WaitWord passed_;  // parts and arrivals, up to the last goal that was reached
    alignas(64) std::atomic<std::uint32_t> done_{0};  // the same with those counted towards the next goal
    alignas(64) std::atomic<std::uint32_t> open_{0};  // the number of the run at hand; 0: none
    std::atomic<bool> failed_{false};

    std::mutex running_;
    std::array<std::unique_ptr<Member>, most_members> members_;  // the caller's first
    int hired_ = 0;
    Clock::time_point refused_{};  // when the system last had no thread left
    std::uint32_t runs_ = 0;

    // Of the run at hand. Read by its members from entering to leaving.
    int count_ = 1;
    std::uint32_t start_ = 0, released_ = 0;  // of passed_: as the run began, and where a failure puts it
    const std::function<void(Worker)>* work_ = nullptr;
    const std::function<void(StageWalker&)>* walk_ = nullptr;
    WaitWord ended_;  // members that have ended their whole work
    std::mutex failing_;
    std::exception_ptr first_;
    int first_index_ = 0;
};

/// Members there are, of `wanted`: threads are started as they are needed, and asked for again a second after
/// the system had none.
int Team::hire(int wanted) {
    for (; hired_ < std::min(wanted, most_members); hired_++) {
        if (refused_ != Clock::time_point{} && Clock::now() - refused_ < std::chrono::seconds(1)) break;
        members_[hired_] = std::make_unique<Member>();
        try {
            if (hired_ > 0) std::thread([this, index = hired_] { live(index); }).detach();
            refused_ = {};
        } catch (const std::system_error&) {
            refused_ = Clock::now();
            break;
        }
    }
    return std::min(wanted, hired_);
}

/// A thread's life: it sleeps until it is called to a run, which may be over when it gets there.
void Team::live(int index) {
    inside_team = true;
    for (std::uint32_t seen = 0;;) {
        seen = members_[index]->turn.wait([&](std::uint32_t run) { return run != seen; });
        if (!enter(index, seen)) continue;
        attend(index);
        leave(index);
    }
}

/// The caller closes a run and then looks who is inside; a member says that it is inside and then looks
/// whether the run is open. Both are in one order, so one of the two sees the other.
bool Team::enter(int index, std::uint32_t run) {
    if (index == 0) return true;
    members_[index]->place.store(inside);
    if (open_.load() == run) return true;
    leave(index);
    return false;
}

void Team::leave(int index) {
    if (index > 0) members_[index]->place.store(outside);
}

bool Team::run(int threads, const std::function<void(Worker)>* work,
               const std::function<void(StageWalker&)>* walk) {
    std::unique_lock only(running_, std::try_to_lock);
    if (!only) return false;
    count_ = hire(threads);
    work_ = work, walk_ = walk;
    failed_ = false, first_ = nullptr;
    start_ = passed_.load(), released_ = start_ + far;
    done_ = start_;
    ended_.store(0);
    for (int i = 0; i < count_; i++) members_[i]->ticket = members_[i]->arrivals = start_;
    if (++runs_ == 0) runs_++;
    open_ = runs_;
    for (int i = 1; i < count_; i++) members_[i]->turn.store(runs_);
    attend(0);
    if (work) ended_.wait([&](std::uint32_t ended) { return ended == static_cast<std::uint32_t>(count_); });
    open_ = 0;
    for (int i = 1; i < count_; i++)
        members_[i]->place.wait([](std::uint32_t place) { return place == outside; });
    if (first_) std::rethrow_exception(std::exchange(first_, nullptr));
    return true;
}

void Team::attend(int index) {
    const bool whole = work_ != nullptr;  // after a walk's end the next run may have begun
    try {
        if (whole) {
            (*work_)({index, count_, this});
        } else {
            StageWalker walker(this, index, count_, runs_, start_);
            (*walk_)(walker);
        }
    } catch (const Released&) {
    } catch (...) {
        fail(index);
    }
    if (whole) ended_.add(1);
}

/// Lets all go who wait.
void Team::fail(int index) {
    std::lock_guard hold(failing_);
    if (!first_ || index < first_index_) {
        first_ = std::current_exception();
        first_index_ = index;
    }
    failed_ = true;
    passed_.store(released_);
}

bool Team::finish(std::uint32_t number, std::uint32_t goal) {
    if (number == 0 || done_.fetch_add(number, std::memory_order_acq_rel) + number != goal)
        return reached(passed_.load(), goal);
    passed_.store(goal);
    if (failed_) passed_.store(released_);  // another member failed meanwhile: its value stays
    return true;
}

void Team::arrive(int index) {
    std::uint32_t goal = members_[index]->arrivals += static_cast<std::uint32_t>(count_);
    if (!finish(1, goal)) passed_.wait([&](std::uint32_t passed) { return reached(passed, goal); });
    if (failed()) throw Released();
}

void Worker::sync() const {
    if (team)
        team->arrive(index);
    else if (count > 1)
        throw std::logic_error("sync in a stage");
}

bool StageWalker::walk(int each, void* context, Call call) {
    if (!team_) {
        call(context, Worker{});
        return true;
    }
    const std::uint32_t begin = begin_, end = begin_ += static_cast<std::uint32_t>(each);
    const std::uint32_t goal = goal_ += static_cast<std::uint32_t>(each * count_);
    // A member that sleeps past the run's end must not compare its goal with a later run's: after two
    // failures the numbers have advanced by half their range.
    const auto over = [&](std::uint32_t passed) {
        return reached(passed, goal) || team_->open_.load() != run_;
    };
    // Does the next part of a lane; false: there is none.
    auto take = [&](int lane) {
        std::atomic<std::uint32_t>& ticket = team_->members_[lane]->ticket;
        std::uint32_t next = ticket.load(std::memory_order_relaxed);
        do
            if (reached(next, end)) return false;
        while (!ticket.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
        call(context, Worker{lane * each + static_cast<int>(next - begin), each * count_});
        return true;
    };

    std::uint32_t finished = 0;
    while (take(index_)) finished++;
    if (team_->finish(finished, goal)) return !team_->failed();

    // The others are mostly about to end, and looking into their lanes slows them down: wait a little first.
    constexpr std::chrono::microseconds little{2};
    std::uint32_t passed;
    if (!eager_) {
        if (team_->passed_.spin({}, over, passed)) return !team_->failed();
        team_->leave(index_);
        bool done = team_->passed_.spin(little, over, passed);
        if (!team_->enter(index_, run_)) return false;
        if (done) return !team_->failed();
    }
    eager_ = false;
    for (int i = 1; i < count_; i++)
        while (take((index_ + i) % count_)) {
            eager_ = true;
            if (team_->finish(1, goal)) return !team_->failed();
        }
    team_->leave(index_);
    team_->passed_.wait(over);
    return team_->enter(index_, run_) && !team_->failed();
}

namespace {

/// Marks the caller's thread as a member.
struct Inside {
    Inside() {
        if (inside_team) throw std::logic_error("a team inside a team");
        inside_team = true;
    }
    ~Inside() { inside_team = false; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
};

}  // namespace

void run_team(int threads, const std::function<void(Worker)>& work) {
    Inside inside;
    threads = std::min(threads, usable_processors());
    if (threads <= 1 || !Team::the().run(threads, &work, nullptr)) work(Worker{});
}

void run_stages(int threads, const std::function<void(StageWalker&)>& walk) {
    Inside inside;
    threads = std::min(threads, usable_processors());
    if (threads > 1 && Team::the().run(threads, nullptr, &walk)) return;
    StageWalker alone;
    walk(alone);
}

}  // namespace linnet
