// What the system says of this process's memory, in bytes.
#pragma once
#include <cstddef>

namespace linnet {

/// At its highest so far.
std::size_t peak_memory();
/// Now. Where the system does not say (all but Linux): peak_memory().
std::size_t current_memory();

}  // namespace linnet
