#include "base/wait_word.h"

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#endif

namespace linnet {

#ifdef __linux__
// The system call itself: the atomic wait of libstdc++ spins for a time of its own before it, and shares its
// table of waiters with unrelated words.
static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

void WaitWord::wake() {
    syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}
void WaitWord::sleep_while(std::uint32_t value) {
    syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
#else
void WaitWord::wake() {
    value_.notify_all();
}
void WaitWord::sleep_while(std::uint32_t value) {
    value_.wait(value);
}
#endif

}  // namespace linnet
