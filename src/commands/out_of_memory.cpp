#include "commands/out_of_memory.h"

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#endif
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "base/arena.h"
#include "base/error.h"
#include "base/system.h"

namespace linnet {
namespace {

std::atomic<bool> ran_out{false};
std::atomic<int> done{-1};

[[noreturn]] void refuse(std::size_t bytes) {
    ran_out = true;
    throw MemoryRefused(bytes);
}

struct Amount {
    char text[32] = "";
    explicit Amount(std::size_t bytes) {
        const bool small = bytes < (std::size_t{10} << 20);
        std::snprintf(text, sizeof text, "%zu %s", bytes >> (small ? 10 : 20), small ? "KiB" : "MiB");
    }
};

/// `refused` null: it is not known what was asked for, as libraries of C do not say it.
int complain(const MemoryRefused* refused) noexcept {
    char line[400];
    const Amount more(refused ? refused->bytes() + 1023 : 0), all(refused ? refused->all() : 0);
    const bool use = refused && refused->use(), in_all = refused && refused->all();
    const int length = std::snprintf(line, sizeof line,
                                     "linnet: error: memory: %s%sexpected %s%s, got less (%s%s%sa smaller "
                                     "model, context or batch, or fewer "
                                     "threads need less)\n",
                                     use ? refused->use() : "", use ? ": " : "",
                                     refused ? more.text : "enough for this task", refused ? " more" : "",
                                     in_all ? "the task needs about " : "", in_all ? all.text : "",
                                     in_all ? " in all; " : "");
    if (length > 0) write_all(STDERR_FILENO, line, static_cast<std::size_t>(length));
    return static_cast<int>(Exit::io);
}

[[noreturn]] void end() {
    if (done >= 0) ::_exit(done);
    if (const std::exception_ptr error = std::current_exception()) try {
            std::rethrow_exception(error);
        } catch (const std::bad_alloc& refused) {
            ::_exit(complain_of_memory(refused));
        } catch (...) {
            std::abort();
        }
    // Some functions of the standard library, and nlohmann's assertions, end here without an exception at
    // hand.
    if (!ran_out) std::abort();
    ::_exit(complain(nullptr));
}

// Before constants that need memory are made, which is before main().
#ifdef __ELF__
[[gnu::constructor(101)]]
#else
[[gnu::constructor]]
#endif
void watch_from_the_start() {
    std::set_terminate(end);
}

}  // namespace

int complain_of_memory(const std::bad_alloc& refused) noexcept {
    return complain(dynamic_cast<const MemoryRefused*>(&refused));
}

void end_in_order_without_memory() {
#if __has_include(<execinfo.h>)
    // An exception that passes glibc's own functions (std::call_once) needs libgcc, which glibc loads when it
    // first needs it, and ends the program where there is no memory for that: this loads it.
    void* here[1];
    (void)::backtrace(here, 1);
#endif
}

void work_is_done(int code) {
    done = code;
}

}  // namespace linnet

// The standard library's own, which the array forms and those with a size call as well. They lie over
// malloc() as its own do. (The nothrow form would call the first one, too, but under AddressSanitizer, which
// then sees memory of its own new that our delete frees.)

void* operator new(std::size_t bytes) {
    if (void* memory = std::malloc(bytes ? bytes : 1)) return memory;
    linnet::refuse(bytes);
}

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    return std::malloc(bytes ? bytes : 1);
}

void* operator new(std::size_t bytes, std::align_val_t alignment) {
    void* memory = nullptr;
    if (::posix_memalign(&memory, static_cast<std::size_t>(alignment), bytes ? bytes : 1) == 0) return memory;
    linnet::refuse(bytes);
}

void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}
