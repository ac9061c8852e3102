// A library to load before the program (LD_PRELOAD): it counts the calls that change files, and makes the n-th of
// them go wrong.
//
//   LINNET_FAULT=N:KIND   KIND: kill (SIGKILL instead of the call), after (SIGKILL after it), EIO, ENOSPC, EINTR (once),
//                         short (half of a write), zero (a write that answers 0)
//   LINNET_FAULT_COUNT=FILE  gets the number of calls when the program ends
//
// With KIND "EINTR", N = 0 breaks off every third call.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_long calls;
static long at = -1;
static char kind[16];

__attribute__((constructor)) static void read_environment(void) {
    const char* fault = getenv("LINNET_FAULT");
    if (fault) sscanf(fault, "%ld:%15s", &at, kind);
}

__attribute__((destructor)) static void write_count(void) {
    const char* path = getenv("LINNET_FAULT_COUNT");
    FILE* file = path ? fopen(path, "w") : NULL;
    if (file) fprintf(file, "%ld\n", atomic_load(&calls)), fclose(file);
}

enum { go_on, fail_now, cut_short, answer_zero, die_after };

/// What is to become of a call.
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
    errno = !strcmp(kind, "EIO") ? EIO : !strcmp(kind, "ENOSPC") ? ENOSPC : EINTR;
    return fail_now;
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
