// Ctrl-C, SIGTERM and SIGHUP as a flag that long work checks between two steps, and as the end of a wait.
#pragma once
#include <csignal>

namespace linnet {

/// What ends a process that does not handle it, and asks one that does to stop.
inline constexpr int stop_signals[] = {SIGINT, SIGTERM, SIGHUP};

/// From now on the first SIGINT, SIGTERM or SIGHUP is only noted; a second one ends the process at once, as
/// it would have without this. For commands that ask stop_signal() between steps; others keep the system's
/// default. `said`, a literal, is written to stderr as soon as the first one comes.
void install_stop_signals(const char* said = nullptr);

/// 0, or the first signal received: SIGINT, SIGTERM or SIGHUP.
int stop_signal();

/// Clears a SIGINT that has been handled: the next one is the first again. Other signals stay.
void forget_interrupt();

/// While one lives, stop_signal() answers 0: what ends a run that a signal has stopped is done all the same.
/// (A second signal still ends the program at once.)
class SignalsUnheeded {
  public:
    SignalsUnheeded();
    ~SignalsUnheeded();
    SignalsUnheeded(const SignalsUnheeded&) = delete;
};

/// Thrown where a wait ends because of a stop signal. Where no one catches it, the program ends silently with
/// exit code 128 + signal.
struct Stopped {
    int signal;
};

/// Waits until reading `fd`, or `other` where there is one, would not wait; false where it is `other`. Throws
/// Stopped when a stop signal comes first, whichever thread the system hands it to.
bool wait_for_input(int fd, int other = -1);

}  // namespace linnet
