#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

#include "base/error.h"
#include "base/team.h"

using namespace linnet;

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
    for (int threads : {1, 2, 3, 8, 17}) {
        const int rounds = threads <= 3 ? 20000 : 500;
        std::vector<int> slots(static_cast<std::size_t>(threads));
        std::atomic<int> wrong{0}, members{0};
        run_team(threads, [&](Worker worker) {
            members++;
            for (int round = 1; round <= rounds; round++) {
                slots[static_cast<std::size_t>(worker.index)] =
                    round;  // not atomic: the barrier must order it
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
    CHECK_NOTHROW(run_team(2, [](Worker) {}));
}

TEST_CASE("there is at least one core") {
    CHECK(physical_cores() >= 1);
}
