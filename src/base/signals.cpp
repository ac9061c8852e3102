#include "base/signals.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string_view>

namespace linnet {
namespace {

std::atomic<int> received{0}, unheeded{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may only touch lock-free atomics");
// Readable when a signal has come, whichever thread the system hands it to: a read() may wait in another.
int wake_read = -1, wake_write = -1;
std::string_view said_first;

void receive(int signal_number) {
    const int saved = errno;
    int none = 0;
    if (received.compare_exchange_strong(none, signal_number)) {
        if (wake_write >= 0) (void)!::write(wake_write, "", 1);
        (void)!::write(STDERR_FILENO, said_first.data(), said_first.size());
    } else {
        ::signal(signal_number, SIG_DFL);
        ::raise(signal_number);  // delivered when this handler returns
    }
    errno = saved;
}

}  // namespace

void install_stop_signals(const char* said) {
    if (said) said_first = said;
    int ends[2];
    if (wake_read < 0 && ::pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0)
        wake_read = ends[0], wake_write = ends[1];
    struct sigaction action = {};
    action.sa_handler = receive;
    ::sigemptyset(&action.sa_mask);
    action.sa_flags = 0;  // no SA_RESTART: a read that waits for a person ends with EINTR
    for (int signal_number : stop_signals) {
        struct sigaction before = {};
        // nohup and its like ignore a signal on purpose: leave it so.
        if (::sigaction(signal_number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
        ::sigaction(signal_number, &action, nullptr);
    }
}

int stop_signal() {
    return unheeded.load(std::memory_order_relaxed) ? 0 : received.load(std::memory_order_relaxed);
}

SignalsUnheeded::SignalsUnheeded() {
    unheeded++;
}
SignalsUnheeded::~SignalsUnheeded() {
    unheeded--;
}

void forget_interrupt() {
    int heeded = SIGINT;
    received.compare_exchange_strong(heeded, 0);
}

bool wait_for_input(int fd, int other) {
    for (;;) {
        if (int signal_number = stop_signal()) throw Stopped{signal_number};
        pollfd ready[3] = {{fd, POLLIN, 0}, {other, POLLIN, 0}, {wake_read, POLLIN, 0}};  // -1: passed over
        const int n = ::poll(ready, 3, -1);
        if (n < 0 && errno != EINTR) return true;  // reading will tell
        if (n < 0) continue;
        char woken[16];
        // What is left of a signal that has been handled.
        if (ready[2].revents != 0 && !stop_signal()) (void)!::read(wake_read, woken, sizeof woken);
        if (ready[2].revents != 0) continue;
        if (ready[1].revents != 0) return false;
        if (ready[0].revents != 0) return true;
    }
}

}  // namespace linnet
