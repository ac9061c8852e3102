// Ctrl-C, SIGTERM and SIGHUP as a question that long work asks itself between two steps.
#pragma once

namespace linnet {

/// From now on the first SIGINT, SIGTERM or SIGHUP is only noted; a second one ends the process at once, as
/// it would have without this. For commands that ask stop_signal() between steps; others keep the system's
/// default.
void install_stop_signals();

/// 0, or the first signal received: SIGINT, SIGTERM or SIGHUP.
int stop_signal();

/// Thrown where a wait ends because of a stop signal. Who lets it pass ends the program, with nothing more to
/// say, with exit code 128 + signal.
struct Stopped {
    int signal;
};

/// Waits until reading `fd` would not wait. Throws Stopped when a stop signal comes first, whichever thread
/// the system hands it to.
void wait_for_input(int fd);

}  // namespace linnet
