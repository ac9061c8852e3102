// Serial reading, parallel work, serial writing in the order of reading: what turns a stream into another
// with the same result for any number of threads.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "base/team.h"

namespace linnet {

/// The three stages of an item. Items are used again, with what an earlier use has left in them: their memory
/// stays warm, and no more than two per thread exist.
template <class Item>
struct OrderedStages {
    std::function<bool(Item&)> produce;  // the next item; false: there is none. One at a time, in order
    std::function<void(Item&)> work;     // any number at a time
    std::function<bool(Item&)> consume;  // one at a time, in order; false: no more are wanted
};

/// No thread belongs to a stage: one that is free takes the next item through `produce` and `work`, and the
/// one that has completed the item whose turn it is consumes it and those that are ready behind it. An
/// exception of any stage is rethrown when all items before it are consumed, and no item behind it is. One
/// thread is the caller's own.
template <class Item>
class OrderedRun {
  public:
    OrderedRun(int threads, OrderedStages<Item> stages)
        : stages_(std::move(stages)), slots_(static_cast<std::size_t>(threads) * 2) {}

    void member() {
        std::unique_lock lock(mutex_);
        for (;;) {
            room_.wait(lock,
                       [&] { return ended_ || (!producing_ && produced_ - consumed_ < slots_.size()); });
            if (ended_) return;
            Slot& slot = slot_at(produced_);
            producing_ = true;
            bool more = false;
            unlocked(lock, slot.error, [&] { more = stages_.produce(slot.item); });
            producing_ = false;
            if (more || slot.error) produced_++;
            if (!more) ended_ = true;
            room_.notify_all();
            if (!more && !slot.error) return;
            if (!slot.error) unlocked(lock, slot.error, [&] { stages_.work(slot.item); });
            slot.ready = true;
            if (!consuming_) consume_ready(lock);
        }
    }
    void rethrow() const {
        if (error_) std::rethrow_exception(error_);
    }

  private:
    struct Slot {
        Item item;
        std::exception_ptr error;
        bool ready = false;
    };
    Slot& slot_at(std::uint64_t index) { return slots_[index % slots_.size()]; }

    template <class F>
    static void unlocked(std::unique_lock<std::mutex>& lock, std::exception_ptr& error, F&& f) {
        lock.unlock();
        try {
            f();
        } catch (...) {
            error = std::current_exception();
        }
        lock.lock();
    }
    void consume_ready(std::unique_lock<std::mutex>& lock) {
        consuming_ = true;
        while (!stopped_ && consumed_ < produced_ && slot_at(consumed_).ready) {
            Slot& slot = slot_at(consumed_);
            bool more = false;
            if (!slot.error) unlocked(lock, slot.error, [&] { more = stages_.consume(slot.item); });
            if (slot.error) error_ = slot.error;
            slot.ready = false;
            consumed_++;
            if (!more || error_) stopped_ = ended_ = true;
            room_.notify_all();
        }
        consuming_ = false;
    }

    OrderedStages<Item> stages_;
    std::vector<Slot> slots_;
    std::mutex mutex_;
    std::condition_variable room_;
    std::uint64_t produced_ = 0, consumed_ = 0;
    bool producing_ = false, consuming_ = false;
    bool ended_ = false;    // nothing more is produced
    bool stopped_ = false;  // nothing more is consumed
    std::exception_ptr error_;
};

template <class Item>
void run_ordered(int threads, OrderedStages<Item> stages) {
    threads = std::max(threads, 1);
    OrderedRun<Item> run(threads, std::move(stages));
    if (threads == 1)
        run.member();
    else
        run_team(threads, [&](Worker) { run.member(); });
    run.rethrow();
}

}  // namespace linnet
