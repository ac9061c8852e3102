// Which tokens may come next.
#pragma once
#include <cstdint>
#include <vector>

#include "text/tokenizer.h"

namespace linnet {

/// A bit for each token of a vocabulary; few of them are listed, too, in order.
class TokenMask {
  public:
    static constexpr std::size_t few = 1024;

    bool has(std::size_t id) const { return id / 64 < words_.size() && (words_[id / 64] >> id % 64 & 1); }
    std::size_t count() const { return count_; }
    bool listed() const { return count_ <= few; }
    const std::vector<TokenId>& list() const { return list_; }  // where listed()

    /// All bits off, for ids below `size`.
    void clear(std::size_t size) { words_.assign((size + 63) / 64, 0); }
    void set(std::size_t id) { words_[id / 64] |= std::uint64_t{1} << id % 64; }
    void remove(std::size_t id) {
        words_[id / 64] &= ~(std::uint64_t{1} << id % 64);
        finish();
    }
    std::vector<std::uint64_t>& words() { return words_; }
    /// After the last set() or change of words(): counts and lists.
    void finish();

  private:
    std::vector<std::uint64_t> words_;
    std::vector<TokenId> list_;
    std::size_t count_ = 0;
};

}  // namespace linnet
