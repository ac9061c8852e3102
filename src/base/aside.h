// Work beside the caller's, mostly waiting for the disk.
#pragma once
#include <future>
#include <utility>

namespace linnet {

/// Beside the caller's work, or when its result is asked for where the system has no thread left.
template <class F>
auto aside(F&& work) {
    return std::async(std::launch::async | std::launch::deferred, std::forward<F>(work));
}

}  // namespace linnet
