// Memory in whole pages from the operating system.
#pragma once
#include <cstddef>
#include <memory>

namespace linnet {

struct ArenaDeleter {
    std::size_t bytes = 0;
    void operator()(void* memory) const;
};

/// Zeroed, aligned for any vector, and backed by large pages where it is large: they spare matrix products
/// and table look-ups most of their TLB misses. What is never touched costs nothing.
using Arena = std::unique_ptr<void, ArenaDeleter>;

/// Error(Exit::io) where there is not enough memory.
Arena allocate_arena(std::size_t bytes);

}  // namespace linnet
