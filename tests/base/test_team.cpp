#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#ifdef __GLIBC__
#include <pthread.h>
#endif

#include "base/aside.h"
#include "base/error.h"
#include "base/team.h"

using namespace linnet;

namespace {

/// Teams of more threads than this machine has processors.
struct Processors {
    int before;
    explicit Processors(int count) : before(assume_processors(count)) {}
    ~Processors() { assume_processors(before); }
};

/// The sums of a chain of stages, each of which reads what parts of the one before wrote. `disturb` may delay
/// a member.
template <class Disturb>
std::vector<double> chain(int threads, int stages, int each, Disturb disturb) {
    constexpr std::int64_t n = 1000;
    std::vector<double> from(n, 1), to(n);
    run_stages(threads, [&](StageWalker& walker) {
        double *a = from.data(), *b = to.data();
        for (int stage = 0; stage < stages; stage++, std::swap(a, b)) {
            disturb(walker.index(), stage);
            if (!walker.stage(1 + (each + stage) % each, [&](Worker part) {
                    Range range = part.share(n, 8);
                    for (std::int64_t i = range.begin; i < range.end; i++)
                        b[i] = std::sin(a[i]) + a[(i * 7 + stage) % n] / 3;
                }))
                return;
        }
    });
    return stages % 2 ? to : from;
}

}  // namespace

TEST_CASE("shares cover everything once, cut at the grain only") {
    for (std::int64_t n : {0, 1, 7, 64, 1000, 1001})
        for (std::int64_t grain : {1, 8, 48})
            for (int count : {1, 2, 3, 7, 64}) {
                std::int64_t next = 0;
                for (int index = 0; index < count; index++) {
                    Range range = Worker{index, count}.share(n, grain);
                    CHECK(range.begin == next);
                    CHECK(range.end >= range.begin);
                    if (range.end != n) CHECK(range.end % grain == 0);
                    next = range.end;
                }
                CHECK(next == n);
            }
}

TEST_CASE("what was written before a barrier is seen by all after it, with more threads than cores too") {
    Processors many(17);
    for (int threads : {1, 2, 3, 8, 17}) {
        const int rounds = threads <= 2 ? 5000 : 200;
        std::vector<int> slots(static_cast<std::size_t>(threads));
        std::atomic<int> wrong{0}, members{0};
        run_team(threads, [&](Worker worker) {
            members++;
            for (int round = 1; round <= rounds; round++) {
                // Not atomic: the barrier must order it.
                slots[static_cast<std::size_t>(worker.index)] = round;
                worker.sync();
                for (int i = 0; i < worker.count; i++) wrong += slots[static_cast<std::size_t>(i)] != round;
                worker.sync();
            }
        });
        CHECK(wrong == 0);
        CHECK(members == threads);
    }
}

TEST_CASE("an exception in one member frees those that wait, and comes out of run_team") {
    Processors many(4);
    for (int repeat = 0; repeat < 50; repeat++) {
        CHECK_THROWS_WITH_AS(run_team(4,
                                      [&](Worker worker) {
                                          for (int round = 0;; round++) {
                                              if (worker.index == 2 && round == repeat)
                                                  throw Error(Exit::io, "two");
                                              worker.sync();
                                          }
                                      }),
                             "two", Error);
    }
    CHECK_THROWS_WITH_AS(
        run_team(3, [](Worker worker) { throw Error(Exit::io, std::to_string(worker.index)); }), "0", Error);
    int ran = 0;
    run_team(1, [&](Worker worker) {
        worker.sync();
        ran++;
    });
    CHECK(ran == 1);
}

TEST_CASE("a team inside a team is refused") {
    CHECK_THROWS_AS(run_team(2, [](Worker) { run_team(2, [](Worker) {}); }), std::logic_error);
    CHECK_THROWS_AS(run_team(1, [](Worker) { run_team(1, [](Worker) {}); }), std::logic_error);
    CHECK_THROWS_AS(run_stages(2, [](StageWalker&) { run_team(1, [](Worker) {}); }), std::logic_error);
    CHECK_THROWS_AS(run_team(2, [](Worker) { run_stages(2, [](StageWalker&) {}); }), std::logic_error);
    CHECK_NOTHROW(run_team(2, [](Worker) {}));
}

TEST_CASE("a team has no more members than there are processors") {
    Processors two(2);
    std::atomic<int> members{0}, most{0};
    run_team(64, [&](Worker worker) {
        members++;
        CHECK(worker.count == 2);
    });
    CHECK(members == 2);
    run_stages(64, [&](StageWalker& walker) { most = walker.count(); });
    CHECK(most == 2);
}

TEST_CASE("a team that another thread has at work leaves a second one its own thread") {
    Processors two(2);
    std::promise<void> begun, end;
    auto other = aside([&] {
        run_team(2, [&](Worker worker) {
            if (worker.index > 0) return;
            begun.set_value();
            end.get_future().wait();
        });
    });
    begun.get_future().wait();
    int count = 0;
    run_team(2, [&](Worker worker) { count = worker.count; });
    CHECK(count == 1);
    CHECK(chain(2, 3, 2, [](int, int) {}) == chain(1, 3, 2, [](int, int) {}));
    end.set_value();
    other.get();
}

TEST_CASE("every part of a stage runs once, and stages give the same bits for any number of members") {
    Processors many(8);
    const std::vector<double> alone = chain(1, 50, 5, [](int, int) {});
    for (int threads : {2, 3, 8})
        for (int repeat = 0; repeat < 20; repeat++)
            CHECK(chain(threads, 50, 1 + repeat % 5, [](int, int) {}) == alone);
    for (int threads : {1, 2, 3, 8}) {
        std::mutex lock;
        std::vector<int> seen;
        run_stages(threads, [&](StageWalker& walker) {
            if (!walker.stage(3, [&](Worker part) {
                    std::lock_guard hold(lock);
                    seen.resize(static_cast<std::size_t>(part.count));
                    seen[static_cast<std::size_t>(part.index)]++;
                }))
                return;
        });
        CHECK(seen == std::vector<int>(threads == 1 ? 1 : static_cast<std::size_t>(threads) * 3, 1));
    }
}

TEST_CASE("members that are late, at any stage, hold up nobody and change nothing") {
    Processors many(8);
    const std::vector<double> alone = chain(1, 40, 3, [](int, int) {});
    for (int threads : {2, 3, 8}) {
        // Every other member stops at an early stage until the caller is at the last one.
        std::atomic<bool> over{false};
        auto delayed = [&](int index, int stage) {
            if (index == 0) over = stage == 39;
            if (index > 0 && stage == index)
                while (!over) std::this_thread::sleep_for(std::chrono::microseconds(100));
        };
        CHECK(chain(threads, 40, 3, delayed) == alone);
        for (int repeat = 0; repeat < 20; repeat++)
            CHECK(chain(threads, 40, 3, [&](int index, int stage) {
                      if ((index * 31 + stage * 17 + repeat) % 13 == 0)
                          std::this_thread::sleep_for(std::chrono::microseconds(100));
                  }) == alone);
    }
}

TEST_CASE("an exception in a part ends the stages and comes out of run_stages") {
    Processors many(4);
    for (int threads : {1, 2, 4})
        for (int bad = 0; bad < 20; bad++) {
            std::atomic<int> beyond{0};
            CHECK_THROWS_WITH_AS(run_stages(threads,
                                            [&](StageWalker& walker) {
                                                for (int stage = 0; stage < 30; stage++) {
                                                    if (!walker.stage(2, [&](Worker part) {
                                                            if (stage > bad) beyond++;
                                                            if (stage == bad && part.index == part.count - 1)
                                                                throw Error(Exit::io, "part");
                                                        }))
                                                        return;
                                                }
                                            }),
                                 "part", Error);
            CHECK(beyond == 0);
            CHECK(chain(threads, 5, 2, [](int, int) {}) == chain(1, 5, 2, [](int, int) {}));
        }
    // Of a walk, outside its parts, while others are at later stages.
    for (int repeat = 0; repeat < 20; repeat++)
        CHECK_THROWS_AS(run_stages(4,
                                   [&](StageWalker& walker) {
                                       for (int stage = 0; stage < 30; stage++) {
                                           if (walker.index() == 0 && stage == repeat)
                                               throw Error(Exit::io, "walk");
                                           if (!walker.stage(1, [](Worker) {})) return;
                                       }
                                   }),
                        Error);
    int ran = 0;
    run_team(4, [&](Worker worker) {
        worker.sync();
        if (worker.index == 0) ran++;
    });
    CHECK(ran == 1);
}

TEST_CASE("meeting in a stage is refused") {
    Processors two(2);
    CHECK_THROWS_AS(run_stages(2, [](StageWalker& w) { (void)w.stage(1, [](Worker part) { part.sync(); }); }),
                    std::logic_error);
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("where no thread can be had, fewer work, and what was for the side is done at once") {
    run_team(2, [](Worker) {});
    pthread_attr_t usual, huge;
    REQUIRE(pthread_getattr_default_np(&usual) == 0);
    REQUIRE(pthread_getattr_default_np(&huge) == 0);
    REQUIRE(pthread_attr_setstacksize(&huge, std::size_t{1} << 46) == 0);
    REQUIRE(pthread_setattr_default_np(&huge) == 0);  // no address space has room for such a stack
    Processors many(200);
    std::atomic<int> members{0};
    int count = 0;
    run_team(200, [&](Worker worker) {
        members++;
        worker.sync();
        if (worker.index == 0) count = worker.count;
    });
    std::vector<double> fewer = chain(200, 10, 3, [](int, int) {});
    std::vector<int> order;
    auto answer = aside([&] { return order.push_back(1), 42; });
    order.push_back(2);
    auto thrown = aside([]() -> int { throw Error(Exit::io, "aside"); });
    REQUIRE(pthread_setattr_default_np(&usual) == 0);
    CHECK(count < 200);
    CHECK(members == count);
    CHECK(fewer == chain(1, 10, 3, [](int, int) {}));
    CHECK(answer.get() == 42);
    CHECK(order == std::vector<int>{1, 2});
    CHECK_THROWS_AS(thrown.get(), Error);
}
#endif

TEST_CASE("there is at least one core") {
    CHECK(physical_cores() >= 1);
}
