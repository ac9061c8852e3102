#include "base/team.h"

#include <omp.h>

#include <atomic>
#include <cmath>
#include <exception>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace linnet {
namespace {

/// Thrown in members that wait for one that has failed; never leaves run_team.
struct Released {};

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace

/// A central sense-reversing barrier (Mellor-Crummey & Scott 1991, section 3.1) whose sense is a counter: bit
/// 0 says that a member failed, the rest counts the rounds. For the 2 to 64 members of one machine the single
/// counter costs less than a tree. The two words live on cache lines of their own: spinning reads `round_`
/// only.
class TeamBarrier {
  public:
    explicit TeamBarrier(bool spin) : spins_(spin ? 4000 : 0) {}

    void arrive(int count) {
        std::uint32_t round = round_.load(std::memory_order_acquire);
        if (round & failed) throw Released();
        if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count) {
            arrived_.store(0, std::memory_order_relaxed);
            round_.fetch_add(2, std::memory_order_acq_rel);
            round_.notify_all();  // no system call where nobody sleeps
            return;
        }
        if (wait_beyond(round) & failed) throw Released();
    }

    void fail() {
        round_.fetch_or(failed, std::memory_order_acq_rel);
        round_.notify_all();
    }

  private:
    static constexpr std::uint32_t failed = 1;

    /// Waits until round_ differs from `round`. Spins for what a step of a small model may take (4000 pauses:
    /// 20 to 150 µs), lets others run for a while, then sleeps, so that an oversubscribed machine loses
    /// little.
    std::uint32_t wait_beyond(std::uint32_t round) {
        std::uint32_t now;
        for (int i = 0; i < spins_; i++) {
            if ((now = round_.load(std::memory_order_acquire)) != round) return now;
            relax();
        }
        for (int i = 0; i < 32; i++) {
            if ((now = round_.load(std::memory_order_acquire)) != round) return now;
            std::this_thread::yield();
        }
        while ((now = round_.load(std::memory_order_acquire)) == round)
            round_.wait(round, std::memory_order_acquire);
        return now;
    }

    int spins_;
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<std::uint32_t> round_{0};
};

void Worker::sync() const {
    if (count > 1) barrier->arrive(count);
}

namespace {

thread_local bool inside_team = false;

/// Logical processors that this process may run on now.
int usable_processors() {
#ifdef __linux__
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) == 0) return std::max(1, CPU_COUNT(&mask));
#endif
    return std::max(1u, std::thread::hardware_concurrency());
}

}  // namespace

void run_team(int threads, const std::function<void(Worker)>& work) {
    if (inside_team) throw std::logic_error("run_team inside a team");
    TeamBarrier barrier(threads <= usable_processors());
    std::exception_ptr first;
    int first_index = 0;
    std::mutex lock;

    auto member = [&](int index, int count) {
        inside_team = true;
        try {
            work(Worker{index, count, &barrier});
        } catch (const Released&) {
        } catch (...) {
            std::lock_guard hold(lock);
            if (!first || index < first_index) {
                first = std::current_exception();
                first_index = index;
            }
            barrier.fail();
        }
        inside_team = false;
    };
    if (threads <= 1) {
        member(0, 1);
    } else {
#pragma omp parallel num_threads(threads)
        member(omp_get_thread_num(), omp_get_num_threads());
    }
    if (first) std::rethrow_exception(first);
}

#ifdef __linux__
namespace {

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

/// The processors of one cgroup's limit; infinity where it has none. Version 2: "max 100000" or "QUOTA
/// PERIOD" in one file; version 1: two files, a quota of -1 for none.
double quota_of(const std::string& folder) {
    double quota = -1, period = 0;
    std::istringstream both(first_line(folder + "/cpu.max"));
    if (!(both >> quota >> period)) {
        std::istringstream(first_line(folder + "/cpu.cfs_quota_us")) >> quota;
        std::istringstream(first_line(folder + "/cpu.cfs_period_us")) >> period;
    }
    return quota > 0 && period > 0 ? quota / period : INFINITY;
}

/// The tightest limit of this process's cgroup and of those around it.
double cgroup_quota() {
    double least = INFINITY;
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {  // "ID:CONTROLLERS:PATH"
        auto first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        std::string controllers = line.substr(first + 1, second - first - 1), path = line.substr(second + 1);
        if (!controllers.empty() && ("," + controllers + ",").find(",cpu,") == std::string::npos) continue;
        std::string root = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
        while (true) {
            least = std::min(least, quota_of(root + path));
            auto slash = path.rfind('/');
            if (slash == std::string::npos || path.size() <= 1) break;
            path.resize(slash);
        }
        least = std::min(least, quota_of(root));  // inside a container the path may not exist
    }
    return least;
}

/// Distinct (package, core) pairs among the processors of the affinity mask.
int affinity_cores() {
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) return usable_processors();
    std::set<std::string> cores;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &mask)) continue;
        std::string topology = "/sys/devices/system/cpu/cpu";
        topology.append(std::to_string(cpu)).append("/topology/");
        std::string core = first_line(topology + "core_id");
        core = core.empty() ? topology : core + " of " + first_line(topology + "physical_package_id");
        cores.insert(std::move(core));
    }
    return static_cast<int>(cores.size());
}

}  // namespace

int physical_cores() {
    // A quota of 1.5 still does more with two threads than with one: round up.
    double quota = std::ceil(cgroup_quota());
    return static_cast<int>(std::max(1.0, std::min<double>(affinity_cores(), quota)));
}
#else
int physical_cores() {
#ifdef __APPLE__
    int cores = 0;
    std::size_t size = sizeof cores;
    if (sysctlbyname("hw.physicalcpu", &cores, &size, nullptr, 0) == 0 && cores > 0) return cores;
#endif
    return usable_processors();
}
#endif

}  // namespace linnet
