#include "base/mapped_ranges.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

#include "base/error.h"
#include "base/terminal.h"

namespace linnet {
namespace {

/// A row of the list that the handler walks. Rows are used again and never freed, so that the walk needs no
/// lock; a row without a beginning is free.
struct Mapped {
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::size_t> size{0};
    char name[400] = {};
    Mapped* next = nullptr;
};
std::atomic<Mapped*> ranges{nullptr};
std::mutex writing;
std::atomic<bool> reporting{false};

void say(const char* text, std::size_t size) {
    (void)!::write(STDERR_FILENO, text, size);
}

/// May call only what POSIX lists as safe in a handler: write, pause, _exit, sigaction, raise. Several
/// threads may lose the same page at once: the first one reports and ends the program, the others wait for
/// that.
void lost_page(int signal_number, siginfo_t* info, void*) {
    const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
    for (const Mapped* range = ranges.load(std::memory_order_acquire); range; range = range->next) {
        const std::uintptr_t begin = range->begin.load(std::memory_order_acquire);
        if (begin == 0 || at < begin || at - begin >= range->size.load(std::memory_order_relaxed)) continue;
        while (reporting.exchange(true)) ::pause();
        static constexpr char before[] = "linnet: error: ";
        static constexpr char after[] =
            ": expected a file that stays as it is, got one that became shorter "
            "while it was read, or a disk that fails\n";
        say(before, sizeof before - 1);
        say(range->name, std::strlen(range->name));
        say(after, sizeof after - 1);
        ::_exit(static_cast<int>(Exit::io));
    }
    ::signal(signal_number, SIG_DFL);  // not a mapped file's: a bug, and the system's to report
    ::raise(signal_number);
}

}  // namespace

void report_lost_pages() {
    struct sigaction action = {};
    action.sa_sigaction = lost_page;
    ::sigemptyset(&action.sa_mask);
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &action, nullptr);
}

void remember_mapped(const void* data, std::size_t size, std::string_view name) {
    std::lock_guard lock(writing);
    Mapped* range = ranges.load(std::memory_order_relaxed);
    while (range && range->begin.load(std::memory_order_relaxed) != 0) range = range->next;
    const bool added = !range;
    if (added) {
        range = new Mapped;
        range->next = ranges.load(std::memory_order_relaxed);
    }
    // The handler prints it as it is: nothing in it may end the line or steer a terminal.
    const std::string shown = printable(name);
    const std::size_t n = std::min(shown.size(), sizeof range->name - 1);
    shown.copy(range->name, n);
    range->name[n] = '\0';
    range->size.store(size, std::memory_order_relaxed);
    range->begin.store(reinterpret_cast<std::uintptr_t>(data), std::memory_order_release);
    if (added) ranges.store(range, std::memory_order_release);
}

void forget_mapped(const void* data) {
    std::lock_guard lock(writing);
    for (Mapped* range = ranges.load(std::memory_order_relaxed); range; range = range->next)
        if (range->begin.load(std::memory_order_relaxed) == reinterpret_cast<std::uintptr_t>(data))
            return range->begin.store(0, std::memory_order_release);
}

}  // namespace linnet
