#include "base/processors.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#ifdef __linux__
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace linnet {
namespace {

std::atomic<int> assumed{0};

}  // namespace

int assume_processors(int count) {
    return assumed.exchange(count);
}

int usable_processors() {
    if (int count = assumed) return count;
#ifdef __linux__
    cpu_set_t mask;
    if (sched_getaffinity(0, sizeof mask, &mask) == 0) return std::max(1, CPU_COUNT(&mask));
#endif
    return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
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
