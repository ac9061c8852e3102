// A word that threads wait for: they spin for tens of microseconds and then give the processor up.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace linnet {

/// One word on a cache line of its own. A wait that ends soon costs no system call, and a change that nobody
/// sleeps for costs none either.
class WaitWord {
  public:
    /// How long a waiter keeps its processor: longer than a step of a small model takes, far shorter than the
    /// milliseconds for which the scheduler may have taken the processor from the thread that is waited for.
    static constexpr std::chrono::microseconds patience{50};

    std::uint32_t load() const { return value_.load(std::memory_order_acquire); }
    /// What the caller wrote before is seen by those whose wait this ends.
    void store(std::uint32_t value) {
        value_.store(value);  // in one order with sleepers_: a waiter either sees the value or is seen
        if (sleepers_.load()) wake();
    }

    void add(std::uint32_t number) {
        value_.fetch_add(number);
        if (sleepers_.load()) wake();
    }

    /// Waits until enough(value); returns that value.
    template <class Enough>
    std::uint32_t wait(Enough enough) {
        std::uint32_t value;
        if (spin(patience, enough, value)) return value;
        sleepers_.fetch_add(1);
        while (!enough(value = value_.load())) sleep_while(value);
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
        return value;
    }
    /// Waits at most for `time`, without giving the processor up; false: it was not enough.
    template <class Enough>
    bool spin(std::chrono::nanoseconds time, Enough enough, std::uint32_t& value) const {
        Clock::time_point end{};
        for (;;) {
            for (int i = 0; i < 16; i++) {
                if (enough(value = load())) return true;
                relax();
            }
            // The clock is first read after about half a microsecond, which many waits never reach.
            if (end == Clock::time_point{})
                end = Clock::now() + time;
            else if (Clock::now() >= end)
                return false;
        }
    }

  private:
    static void relax() {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }
    void wake();
    void sleep_while(std::uint32_t value);

    alignas(64) std::atomic<std::uint32_t> value_{0};
    std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace linnet
