#include <doctest/doctest.h>

#include <atomic>
#include <set>
#include <stdexcept>
#include <string>

#include "base/ordered.h"

using namespace linnet;

namespace {

struct Item {
    int number = 0, squared = 0;
};

/// Squares of 0 … 999 in the order in which they are consumed; a stage throws at `bad`.
struct Squares {
    int produced = 0, bad_produce = -1, bad_work = -1, bad_consume = -1, stop_at = -1;
    std::vector<int> consumed;
    std::set<const Item*> items;

    void run(int threads) {
        run_ordered<Item>(threads, {[this](Item& item) {
                                        if (produced == 1000) return false;
                                        if (produced == bad_produce) throw std::runtime_error("produce");
                                        item.number = produced++;
                                        items.insert(&item);
                                        return true;
                                    },
                                    [this](Item& item) {
                                        if (item.number == bad_work) throw std::runtime_error("work");
                                        if (item.number == bad_work + 1 && bad_work > 0)
                                            throw std::runtime_error("later work");
                                        item.squared = item.number * item.number;
                                    },
                                    [this](Item& item) {
                                        if (item.number == bad_consume) throw std::runtime_error("consume");
                                        consumed.push_back(item.squared);
                                        return item.number != stop_at;
                                    }});
    }
    void check(std::size_t count) const {
        CHECK(consumed.size() == count);
        for (std::size_t i = 0; i < consumed.size(); i++) CHECK(consumed[i] == static_cast<int>(i * i));
    }
};

}  // namespace

TEST_CASE("items are consumed in order, for any number of threads, and used again") {
    for (int threads : {1, 2, 3, 7}) {
        Squares squares;
        squares.run(threads);
        squares.check(1000);
        CHECK(squares.items.size() <= static_cast<std::size_t>(threads) * 4);
    }
}

TEST_CASE("consuming may end the run") {
    for (int threads : {1, 3}) {
        Squares squares;
        squares.stop_at = 400;
        squares.run(threads);
        squares.check(401);
    }
}

TEST_CASE("the first error in order is rethrown behind all that precedes it") {
    for (int threads : {1, 2, 5}) {
        Squares produce, work, consume;
        produce.bad_produce = work.bad_work = consume.bad_consume = 300;
        CHECK_THROWS_WITH(produce.run(threads), "produce");
        CHECK_THROWS_WITH(work.run(threads), "work");
        CHECK_THROWS_WITH(consume.run(threads), "consume");
        for (Squares* squares : {&produce, &work, &consume}) squares->check(300);
    }
}
