// Ranks (.tiktoken's tokens, by rank) that one thread reads while another derives merges from them.
#pragma once
#include <condition_variable>
#include <mutex>
#include <span>
#include <string_view>

namespace linnet {

class RankFeed {
  public:
    using Ranks = std::span<const std::string_view>;  // bytes of a token; none: no such rank

    /// The reader's: these are known now, and stay what and where they are until nobody asks any more. All
    /// single bytes are among the first that are published.
    void publish(Ranks known) { set(known, false); }
    /// There are no more; none at all where the reader has failed.
    void finish(Ranks all) { set(all, true); }

    /// Waits for more than `count` ranks, or for the end, and gives those that are known.
    Ranks more_than(std::size_t count) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ended_ || known_.size() > count; });
        return known_;
    }
    /// Waits for the end.
    Ranks all() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ended_; });
        return known_;
    }

  private:
    void set(Ranks known, bool ended) {
        const std::lock_guard lock(mutex_);
        known_ = known;
        ended_ = ended;
        changed_.notify_all();
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    Ranks known_;
    bool ended_ = false;
};

}  // namespace linnet
