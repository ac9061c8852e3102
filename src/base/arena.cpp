#include "base/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace linnet {

void ArenaDeleter::operator()(void* memory) const {
    munmap(memory, bytes);
}

std::size_t arena_bytes(std::size_t bytes) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    return (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
}

Arena allocate_arena(std::size_t bytes, const char* use, std::size_t large_from) {
    bytes = arena_bytes(bytes);
    // It begins where a large page does; else neither end would be of large pages.
    const std::size_t mapped = bytes + (bytes >= large_from ? large_page : 0);
    void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw MemoryRefused(bytes, use);
    if (mapped == bytes) return Arena(memory, ArenaDeleter{bytes});

    char* const begin = static_cast<char*>(memory);
    const std::size_t before =
        (large_page - reinterpret_cast<std::uintptr_t>(begin) % large_page) % large_page;
    if (before > 0) munmap(begin, before);
    if (before < large_page) munmap(begin + before + bytes, large_page - before);
    prefer_large_pages(begin + before, bytes);
    return Arena(begin + before, ArenaDeleter{bytes});
}

void prefer_large_pages(void* memory, std::size_t bytes) {
#ifdef MADV_HUGEPAGE
    const std::uintptr_t begin = (reinterpret_cast<std::uintptr_t>(memory) + large_page - 1) / large_page,
                         end = (reinterpret_cast<std::uintptr_t>(memory) + bytes) / large_page;
    if (begin < end)
        madvise(reinterpret_cast<void*>(begin * large_page), (end - begin) * large_page, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

}  // namespace linnet
