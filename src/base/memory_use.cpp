#include "base/memory_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

namespace linnet {

std::size_t peak_memory() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
    constexpr std::size_t unit = 1;
#else
    constexpr std::size_t unit = 1024;
#endif
    return static_cast<std::size_t>(usage.ru_maxrss) * unit;
}

std::size_t current_memory() {
    std::ifstream statm("/proc/self/statm");
    std::size_t pages = 0, resident = 0;
    if (!(statm >> pages >> resident)) return peak_memory();
    return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace linnet
