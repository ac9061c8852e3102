// Byte pair encoding's core: a table of merges and the procedure that applies them to a row of symbols.
//
// The answer is defined by the slow procedure (Sennrich et al., "Neural machine translation of rare words
// with subword units", ACL 2016, section 3.2): of all adjacent pairs take the one of lowest rank, of equal
// ranks the leftmost, join it, repeat. Short rows do exactly that on an array; long ones keep positions in
// one list a rank, so that a million equal letters cost a million steps (a binary heap over positions costs
// 20 times as many).
#pragma once
#include <cstdint>
#include <vector>

#include "text/tokenizer.h"

namespace linnet {

struct Merge {
    std::uint32_t rank;  // no_merge: this pair does not merge
    TokenId id;
};
inline constexpr std::uint32_t no_merge = UINT32_MAX;

/// (left, right) -> (rank, joined), flat and open-addressed. Symbols are non-negative.
class MergeTable {
  public:
    void reserve(std::size_t merges);
    /// False where the pair is there already (the first stays).
    bool add(TokenId left, TokenId right, std::uint32_t rank, TokenId joined);
    Merge find(TokenId left, TokenId right) const {
        const std::uint64_t key = pack(left, right);
        for (std::size_t i = home(key);; i = (i + 1) & mask_) {
            if (slots_[i].key == key) return {slots_[i].rank, slots_[i].id};
            if (slots_[i].key == free_key) return {no_merge, -1};
        }
    }
    void prefetch(TokenId left, TokenId right) const { __builtin_prefetch(&slots_[home(pack(left, right))]); }
    std::size_t size() const { return size_; }
    /// f(left, right, rank, joined) for every merge, in no order.
    template <class F>
    void each(F&& f) const {
        for (const Slot& s : slots_)
            if (s.key != free_key)
                f(static_cast<TokenId>(s.key >> 32), static_cast<TokenId>(s.key & 0xFFFFFFFFu), s.rank, s.id);
    }

  private:
    struct Slot {
        std::uint64_t key;
        std::uint32_t rank;
        TokenId id;
    };
    static constexpr std::uint64_t free_key = UINT64_MAX;
    static std::uint64_t pack(TokenId left, TokenId right) {
        return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
    }
    std::size_t home(std::uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_ & mask_; }
    void grow();
    std::vector<Slot> slots_ = std::vector<Slot>(2, Slot{free_key, 0, 0});
    std::size_t mask_ = 1, size_ = 0;
    int shift_ = 63;
};

/// Scratch space of one thread; symbols go in, the merged symbols come out in the same vector.
class Merger {
  public:
    std::vector<TokenId>& symbols() { return symbols_; }
    void apply(const MergeTable& table);
    /// Frees what a giant word has made large.
    void trim();

  private:
    void apply_short(const MergeTable& table);
    void apply_long(const MergeTable& table);
    std::vector<TokenId> symbols_;
    std::vector<std::uint32_t> rank_;
    std::vector<TokenId> joined_;
    std::vector<std::int32_t> previous_, next_;
};

}  // namespace linnet
