// Memory in whole pages from the operating system.
#pragma once
#include <cstddef>
#include <memory>
#include <new>

namespace linnet {

struct ArenaDeleter {
    std::size_t bytes = 0;
    void operator()(void* memory) const;
};

/// What is thrown where memory cannot be had, here and by operator new (commands/out_of_memory.cpp): it knows
/// what was asked for. Nothing in it is allocated.
class MemoryRefused : public std::bad_alloc {
  public:
    explicit MemoryRefused(std::size_t bytes, const char* use = nullptr, std::size_t all = 0)
        : bytes_(bytes), use_(use), all_(all) {}
    const char* what() const noexcept override { return "memory"; }
    std::size_t bytes() const { return bytes_; }
    const char* use() const { return use_; }  // what for, where that is known; else null
    std::size_t all() const { return all_; }  // what the task needs in all, where that is known; else 0

  private:
    std::size_t bytes_;
    const char* use_;
    std::size_t all_;
};

/// Zeroed and aligned for any vector. What is never touched costs nothing.
using Arena = std::unique_ptr<void, ArenaDeleter>;

std::size_t arena_bytes(std::size_t bytes);  // rounded up to whole pages, as ArenaDeleter needs it

/// From `large_from` bytes it lies in large pages: they spare matrix products and table look-ups most of
/// their TLB misses, and would only pad what is small or touched here and there. MemoryRefused, with `use`.
Arena allocate_arena(std::size_t bytes, const char* use = nullptr,
                     std::size_t large_from = std::size_t{16} << 20);

/// The same for memory that another has allocated or mapped and that will be filled, or read, from its
/// beginning: a hint.
void prefer_large_pages(void* memory, std::size_t bytes);

inline constexpr std::size_t large_page = std::size_t{2} << 20;

/// For a large vector that is filled from its beginning: what it frees goes back to the system. A small one
/// lies where any other does.
template <class T>
struct LargePageAllocator {
    using value_type = T;
    LargePageAllocator() = default;
    template <class U>
    LargePageAllocator(const LargePageAllocator<U>&) {}
    T* allocate(std::size_t n) {
        if (is_small(n)) return std::allocator<T>().allocate(n);
        return static_cast<T*>(allocate_arena(n * sizeof(T), nullptr, large_page).release());
    }
    void deallocate(T* memory, std::size_t n) {
        if (is_small(n)) return std::allocator<T>().deallocate(memory, n);
        ArenaDeleter{arena_bytes(n * sizeof(T))}(memory);
    }
    bool operator==(const LargePageAllocator&) const { return true; }

  private:
    static bool is_small(std::size_t n) { return n < large_page / sizeof(T); }
};

}  // namespace linnet
