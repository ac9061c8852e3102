#include "base/signals.h"

#include <signal.h>

#include <atomic>

namespace linnet {
namespace {

std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only touch lock-free atomics");

void note(int signal_number) {
    int none = 0;
    if (received.compare_exchange_strong(none, signal_number)) return;
    ::signal(signal_number, SIG_DFL);
    ::raise(signal_number);  // delivered when this handler returns
}

}  // namespace

void install_stop_signals() {
    struct sigaction action = {};
    action.sa_handler = note;
    ::sigemptyset(&action.sa_mask);
    action.sa_flags = 0;  // no SA_RESTART: a read that waits for a person ends with EINTR
    for (int signal_number : {SIGINT, SIGTERM}) {
        struct sigaction before = {};
        // `nohup`-like parents ignore a signal on purpose: leave it so.
        if (::sigaction(signal_number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        ::sigaction(signal_number, &action, nullptr);
    }
}

int stop_signal() {
    return received.load(std::memory_order_relaxed);
}

}  // namespace linnet
