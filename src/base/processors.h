// How many processors this process may use.
#pragma once

namespace linnet {

/// Physical cores that this process may use (its affinity mask and cgroup quota respected); at least 1.
int physical_cores();

/// `asked`, or where that is 0 the physical cores.
inline int threads_or_cores(int asked) {
    return asked > 0 ? asked : physical_cores();
}

/// Logical processors that this process may run on now; at least 1.
int usable_processors();

/// What usable_processors() answers from now on; 0: what the system says. Returns what was assumed before.
/// For tests, to make teams of more threads than the machine has processors.
int assume_processors(int count);

}  // namespace linnet
