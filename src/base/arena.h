// Memory in whole pages from the operating system.
#pragma once
#include <cstddef>
#include <memory>

namespace linnet {

struct ArenaDeleter {
    std::size_t bytes = 0;
    void operator()(void* memory) const;
};

/// Zeroed and aligned for any vector. What is never touched costs nothing.
using Arena = std::unique_ptr<void, ArenaDeleter>;

/// From `large_from` bytes it lies in large pages: they spare matrix products and table look-ups most of
/// their TLB misses, and would only pad what is small or touched here and there. Error(Exit::io) where there
/// is not enough memory.
Arena allocate_arena(std::size_t bytes, std::size_t large_from = std::size_t{16} << 20);

}  // namespace linnet
