// The clock for durations: it only goes forward, whatever happens to the time of day.
#pragma once
#include <chrono>

namespace linnet {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace linnet
