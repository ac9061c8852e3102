// A library to load before the program (LD_PRELOAD): it counts the calls that change files, those that start a thread
// and those that ask for memory, and makes the n-th of a kind go wrong.
//
//   LINNET_FAULT=N:KIND   of the calls that change files: kill (SIGKILL instead of the call), after (SIGKILL after it),
//                         EIO, ENOSPC, EINTR (once), short (half of a write), zero (a write that answers 0);
//                         of threads: thread (the n-th is refused), no-thread (the n-th and all after it);
//                         of memory: memory, no-memory, likewise
//   LINNET_FAULT_COUNT=FILE  gets the numbers of calls when the program ends: files, threads, memory
//   LINNET_FAULT_WAYS=FILE   gets the numbers of the calls for memory that were the first to come from where they did:
//                            an allocation fails alike for every line of a text, so one of them will do
//
// With KIND "EINTR", N = 0 breaks off every third call. Counted is from main() on: before it nothing can be caught.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls, threads, requests;
static atomic_int started;  // main() was
static long at = -1;
static char kind[16];
static FILE* ways;

__attribute__((constructor)) static void read_environment(void) {
    const char* fault = getenv("LINNET_FAULT");
    if (fault) sscanf(fault, "%ld:%15s", &at, kind);
    const char* path = getenv("LINNET_FAULT_WAYS");
    void* first[1];
    if (path && (ways = fopen(path, "w"))) backtrace(first, 1);  // loads what it needs
}

__attribute__((destructor)) static void write_count(void) {
    atomic_store(&started, 0);
    if (ways) fclose(ways);
    const char* path = getenv("LINNET_FAULT_COUNT");
    FILE* file = path ? fopen(path, "w") : NULL;
    if (file) fprintf(file, "%ld %ld %ld\n", calls, threads, requests), fclose(file);
}

enum { go_on, fail_now, cut_short, answer_zero, die_after };

/// What is to become of a call on a file.
static int verdict(int writes) {
    const long n = atomic_fetch_add(&calls, 1) + 1;
    if (at == 0 && !strcmp(kind, "EINTR")) {
        errno = EINTR;
        return n % 3 == 1 ? fail_now : go_on;
    }
    if (n != at) return go_on;
    if (!strcmp(kind, "kill")) raise(SIGKILL);
    if (!strcmp(kind, "after")) return die_after;
    if (!strcmp(kind, "short")) return writes ? cut_short : go_on;
    if (!strcmp(kind, "zero")) return writes ? answer_zero : go_on;
    errno = !strcmp(kind, "EIO") ? EIO : !strcmp(kind, "ENOSPC") ? ENOSPC : !strcmp(kind, "EINTR") ? EINTR : 0;
    return errno ? fail_now : go_on;
}

/// Whether a call for a thread or for memory is refused: the one that fits `once`, or `ever` and any before it.
static int refused(atomic_long* counted, const char* once, const char* ever) {
    if (!atomic_load(&started)) return 0;
    const long n = atomic_fetch_add(counted, 1) + 1;
    return at > 0 && ((n == at && !strcmp(kind, once)) || (n >= at && !strcmp(kind, ever)));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) {
    if (refused(&threads, "thread", "no-thread")) return EAGAIN;
    return ((__typeof__(&pthread_create))dlsym(RTLD_NEXT, "pthread_create"))(thread, attributes, run, argument);
}

/// Writes down the request's number where none has come by this way before.
static void note_way(void) {
    static __thread int inside __attribute__((tls_model("initial-exec")));
    static _Atomic uint64_t seen[1 << 16];
    if (!ways || inside || !atomic_load(&started)) return;
    inside = 1;
    const int saved = errno;
    void* from[7];
    const int depth = backtrace(from, sizeof from / sizeof *from);
    uint64_t hash = 1;
    for (int i = 2; i < depth; i++) hash = (hash ^ (uintptr_t)from[i]) * 0x9E3779B97F4A7C15u, hash ^= hash >> 29;
    for (uint64_t i = hash % (1 << 16);; i = (i + 1) % (1 << 16)) {
        uint64_t other = 0;
        if (atomic_compare_exchange_strong(&seen[i], &other, hash)) {
            fprintf(ways, "%ld\n", atomic_load(&requests) + 1);
            break;
        }
        if (other == hash) break;
    }
    errno = saved;
    inside = 0;
}

static int without_memory(void) {
    note_way();
    if (!refused(&requests, "memory", "no-memory")) return 0;
    errno = ENOMEM;
    return 1;
}

void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void* malloc(size_t size) {
    return without_memory() ? NULL : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
    return without_memory() ? NULL : __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
    return without_memory() ? NULL : __libc_realloc(old, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
    return without_memory() ? NULL : __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
    return without_memory() || !(*memory = __libc_memalign(alignment, size)) ? ENOMEM : 0;
}

/// Files, too, are mapped where there is room.
void* mmap(void* where, size_t size, int protection, int flags, int fd, off_t offset) {
    if (without_memory()) return MAP_FAILED;
    return ((__typeof__(&mmap))dlsym(RTLD_NEXT, "mmap"))(where, size, protection, flags, fd, offset);
}
void* mmap64(void* where, size_t size, int protection, int flags, int fd, off64_t offset) {
    return mmap(where, size, protection, flags, fd, offset);
}

static int (*program)(int, char**, char**);
static int start(int count, char** words, char** environment) {
    atomic_store(&started, 1);
    return program(count, words, environment);
}
int __libc_start_main(int (*real)(int, char**, char**), int count, char** words, void (*begin)(void),
                      void (*end)(void), void (*loader)(void), void* stack) {
    program = real;
    return ((__typeof__(&__libc_start_main))dlsym(RTLD_NEXT, "__libc_start_main"))(start, count, words, begin, end,
                                                                                   loader, stack);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/// Defines `name` so that it asks verdict() first, where `counted`.
#define WRAP(result, name, parameters, arguments, counted)   \
    result name parameters {                                 \
        const int v = (counted) ? verdict(0) : go_on;        \
        if (v == fail_now) return -1;                        \
        const result answer = REAL(name) arguments;          \
        if (v == die_after) raise(SIGKILL);                  \
        return answer;                                       \
    }

/// The same for calls that write `size` bytes.
#define WRAP_WRITE(name, parameters, whole, half)            \
    ssize_t name parameters {                                \
        const int v = fd > 2 ? verdict(1) : go_on;           \
        if (v == fail_now) return -1;                        \
        if (v == answer_zero) return 0;                      \
        const ssize_t answer = v == cut_short && size > 1 ? REAL(name) half : REAL(name) whole; \
        if (v == die_after) raise(SIGKILL);                  \
        return answer;                                       \
    }

WRAP_WRITE(write, (int fd, const void* data, size_t size), (fd, data, size), (fd, data, size / 2))
WRAP_WRITE(pwrite, (int fd, const void* data, size_t size, off_t to), (fd, data, size, to), (fd, data, size / 2, to))
WRAP_WRITE(pwrite64, (int fd, const void* data, size_t size, off64_t to), (fd, data, size, to),
           (fd, data, size / 2, to))

WRAP(int, fsync, (int fd), (fd), 1)
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), 1)
WRAP(int, ftruncate64, (int fd, off64_t size), (fd, size), 1)
WRAP(int, rename, (const char* from, const char* to), (from, to), 1)
WRAP(int, renameat2, (int a, const char* from, int b, const char* to, unsigned flags), (a, from, b, to, flags), 1)
WRAP(int, link, (const char* from, const char* to), (from, to), 1)
WRAP(int, unlink, (const char* path), (path), 1)
WRAP(int, unlinkat, (int folder, const char* path, int flags), (folder, path, flags), 1)
WRAP(int, remove, (const char* path), (path), 1)
WRAP(int, rmdir, (const char* path), (path), 1)
WRAP(int, mkdir, (const char* path, mode_t mode), (path, mode), 1)

#define MODE                                                 \
    mode_t mode = 0;                                         \
    if (flags & (O_CREAT | __O_TMPFILE)) {                   \
        va_list rest;                                        \
        va_start(rest, flags);                               \
        mode = va_arg(rest, mode_t);                         \
        va_end(rest);                                        \
    }
/// Also files opened for reading and folders: whatever opens must take an interruption.
#define WRAP_OPEN(name, parameters, arguments)               \
    int name parameters {                                    \
        MODE;                                                \
        const int changes = (flags & (O_WRONLY | O_RDWR | O_CREAT)) != 0; \
        const int v = changes || (at == 0 && !strcmp(kind, "EINTR")) ? verdict(0) : go_on; \
        if (v == fail_now) return -1;                        \
        const int answer = REAL(name) arguments;             \
        if (v == die_after) raise(SIGKILL);                  \
        return answer;                                       \
    }
WRAP_OPEN(open, (const char* path, int flags, ...), (path, flags, mode))
WRAP_OPEN(open64, (const char* path, int flags, ...), (path, flags, mode))
WRAP_OPEN(openat, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))
WRAP_OPEN(openat64, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))
