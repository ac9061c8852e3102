// The batches of a run in their order: the next one is prepared while one is learned.
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>

#include "base/wait_word.h"
#include "ops/batch.h"

namespace linnet {

/// One thread prepares the batch ahead and sleeps until one is taken. (A thread for each, as base/aside.h
/// starts them, would take as long as a small batch does.)
class BatchesAhead {
  public:
    /// Micro-batch `number` of the run, put in the place of what `batch` held: the same whoever makes it, and
    /// when. Called by one thread at a time, so that it may keep something from one call to the next.
    using Make = std::function<void(std::int64_t number, Batch& batch)>;

    /// `ahead` false: each batch is made when it is taken; so it is where the system has no thread left.
    BatchesAhead(Make make, bool ahead);
    /// Waits for the batch that is being made.
    ~BatchesAhead();
    BatchesAhead(const BatchesAhead&) = delete;

    /// Micro-batch `number`; where the run, of `end` ones, has another behind it, that is prepared from now
    /// on. Throws what making this one has thrown: of one that is not taken nothing is told.
    Batch take(std::int64_t number, std::int64_t end);

  private:
    enum State : std::uint32_t { idle, wanted, made, over };
    static constexpr std::int64_t none = -1;
    void live();
    void wait_for_batch();

    Make make_;
    WaitWord state_;
    // Of the batch ahead; the thread's while it is wanted, else the caller's.
    std::int64_t number_ = none;
    Batch batch_;
    std::exception_ptr failure_;
    std::thread thread_;
};

}  // namespace linnet
