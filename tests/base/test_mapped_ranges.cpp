// Pages of a mapped file that are lost.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/mapped_ranges.h"
#include "support.h"

using namespace linnet;

// ThreadSanitizer lets no process start threads that was forked beside some.
#if !defined(__SANITIZE_THREAD__)

namespace {

constexpr int threads = 2;
constexpr std::size_t page = 4096;

/// Maps a file, makes it shorter, and reads a page of it in each of several threads at once; writes to `err`.
[[noreturn]] void lose_pages(const std::string& path, int err) {
    ::dup2(err, STDERR_FILENO);
    const MappedFile file(path);
    report_lost_pages();
    if (::truncate(path.c_str(), 0) != 0) ::_exit(98);
    std::atomic<int> ready{0};
    std::vector<std::thread> readers;
    for (std::size_t i = 0; i < threads; i++)
        readers.emplace_back([&, i] {
            const volatile std::byte* at = file.bytes().data() + i * page;
            for (ready++; ready < threads;) std::this_thread::yield();
            (void)*at;
        });
    for (std::thread& reader : readers) reader.join();
    ::_exit(99);  // nothing was lost
}

}  // namespace

TEST_CASE("a page that several threads lose at once is one line and exit code 4") {
    test::Scratch scratch;
    const std::string path = scratch / "weights";
    for (int repeat = 0; repeat < 60; repeat++) {
        test::write_text(path, std::string(threads * page, 'x'));
        int ends[2];
        REQUIRE(::pipe(ends) == 0);
        const pid_t child = ::fork();
        if (child == 0) lose_pages(path, ends[1]);
        ::close(ends[1]);
        std::string err;
        char part[512];
        for (ssize_t got; (got = ::read(ends[0], part, sizeof part)) > 0;)
            err.append(part, static_cast<std::size_t>(got));
        ::close(ends[0]);
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        REQUIRE(WIFEXITED(status));
        REQUIRE(WEXITSTATUS(status) == static_cast<int>(Exit::io));
        REQUIRE(err == "linnet: error: " + path +
                           ": expected a file that stays as it is, got one that became shorter while it was "
                           "read, or a disk that fails\n");
    }
}

#endif
