// Ctrl-C and SIGTERM as a question that long work asks itself between two steps.
#pragma once

namespace linnet {

/// From now on the first SIGINT or SIGTERM is only noted; a second one ends the process at once, as it would
/// have without this. For commands that ask stop_signal() between steps; others keep the system's default.
void install_stop_signals();

/// 0, or the first signal received: SIGINT or SIGTERM.
int stop_signal();

}  // namespace linnet
