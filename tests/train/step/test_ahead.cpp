// Batches in their order, made ahead or not.
#include "train/step/ahead.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace linnet;

namespace {

/// Waits until `reached()`; false after ten seconds.
template <class Reached>
bool comes(Reached reached) {
    for (int i = 0; i < 10'000; i++) {
        if (reached()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
}

void number(std::int64_t n, Batch& batch) {
    batch = Batch();
    batch.tokens.assign(static_cast<std::size_t>(n) + 1, static_cast<std::int32_t>(n));
}

}  // namespace

TEST_CASE("batches come in their order, each made once and none behind the end, ahead or not") {
    for (const bool ahead : {false, true}) {
        CAPTURE(ahead);
        std::vector<std::int64_t> made;
        std::vector<bool> here;
        const std::thread::id caller = std::this_thread::get_id();
        {
            BatchesAhead batches(
                [&](std::int64_t n, Batch& batch) {
                    made.push_back(n), here.push_back(std::this_thread::get_id() == caller);
                    number(n, batch);
                },
                ahead);
            for (std::int64_t n = 3; n < 8; n++) {
                const Batch batch = batches.take(n, 8);
                CHECK(batch.tokens.size() == static_cast<std::size_t>(n) + 1);
                CHECK(batch.tokens.back() == n);
            }
        }
        CHECK(made == std::vector<std::int64_t>{3, 4, 5, 6, 7});
        CHECK(here == std::vector<bool>{true, !ahead, !ahead, !ahead, !ahead});
    }
}

TEST_CASE("the next batch is made while the one before is in use") {
    std::atomic<std::int64_t> made = -1;
    BatchesAhead batches([&](std::int64_t n, Batch& batch) { number(n, batch), made = n; }, true);
    for (std::int64_t n = 0; n < 3; n++) {
        const Batch batch = batches.take(n, 4);
        CHECK(comes([&] { return made == n + 1; }));
        CHECK(batch.tokens.back() == n);
    }
}

TEST_CASE("another batch than the next is what it is, too, and the end may move") {
    BatchesAhead batches(number, true);
    for (const auto& [n, end] : {std::pair{0, 9}, {5, 9}, {6, 7}, {7, 9}, {2, 3}, {2, 9}, {3, 4}})
        CHECK(batches.take(n, end).tokens.back() == n);
}

TEST_CASE("what goes wrong with the batch ahead is told where that is taken, and never where it is not") {
    std::atomic<int> thrown = 0;
    const auto make = [&](std::int64_t n, Batch& batch) {
        if (n == 2 && thrown++ == 0) throw std::runtime_error("number 2");
        number(n, batch);
    };
    {
        BatchesAhead batches(make, true);
        batches.take(0, 9);
        CHECK(batches.take(1, 9).tokens.back() == 1);
        REQUIRE(comes([&] { return thrown == 1; }));
        CHECK_THROWS_WITH(batches.take(2, 9), "number 2");
        CHECK(batches.take(2, 9).tokens.back() == 2);
        CHECK(batches.take(3, 9).tokens.back() == 3);
    }
    thrown = 0;
    {
        BatchesAhead batches(make, true);
        batches.take(1, 9);
        CHECK(batches.take(5, 9).tokens.back() == 5);
        CHECK(thrown == 1);
        CHECK(batches.take(6, 9).tokens.back() == 6);
    }
    thrown = 0;
    BatchesAhead(make, true).take(1, 9);
    CHECK(thrown == 1);
}

TEST_CASE("the end of a run waits for the batch that is being made, and for none where none is") {
    { const BatchesAhead unused(number, true); }
    std::atomic<bool> begun = false, done = false;
    auto batches = std::make_unique<BatchesAhead>(
        [&](std::int64_t n, Batch& batch) {
            number(n, batch);
            if (n == 0) return;
            begun = true;
            std::this_thread::sleep_for(std::chrono::milliseconds(30));
            done = true;
        },
        true);
    batches->take(0, 9);
    REQUIRE(comes([&] { return begun.load(); }));
    batches.reset();
    CHECK(done);
}
