// Work beside the caller's, mostly waiting for the disk.
#pragma once
#include <future>
#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

namespace linnet {

/// Beside the caller's work; here and now where the system has no thread left. The future's destructor waits
/// for the work to end, as std::async's does.
template <class F>
auto aside(F&& work) {
    // Shared, because std::async has moved what it was given when it finds that no thread can be had. (For
    // the same reason its own `async | deferred` runs a moved-from function then.)
    auto kept = std::make_shared<std::decay_t<F>>(std::forward<F>(work));
    auto call = [kept] { return (*kept)(); };
    try {
        return std::async(std::launch::async, call);
    } catch (const std::system_error&) {
        auto done = std::async(std::launch::deferred, call);
        done.wait();
        return done;
    }
}

}  // namespace linnet
