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
        if (static_cast<std::uint32_t>(left | right) < 256 && !bytes_.empty())
            return bytes_[static_cast<std::size_t>(left << 8 | right)];
        const std::uint64_t key = pack(left, right), hash = key * 0x9E3779B97F4A7C15u;
        // Whether a pair merges cannot be predicted, so the common answers are selected, not branched to.
        const bool may_be = filter_[hash >> filter_shift_ >> 6] >> (hash >> filter_shift_ & 63) & 1;
        const Slot* slot = may_be ? &slots_[hash >> shift_] : &no_slot;
        while (slot->key != key && slot->key != free_key)
            [[unlikely]] slot = slot == &slots_[mask_] ? &slots_[0] : slot + 1;
        return slot->merge;
    }
    std::size_t size() const { return size_; }
    /// f(left, right, rank, joined) for every merge, in no order.
    template <class F>
    void each(F&& f) const {
        for (const Slot& s : slots_)
            if (s.key != free_key)
                f(static_cast<TokenId>(s.key >> 32), static_cast<TokenId>(s.key & 0xFFFFFFFFu), s.merge.rank,
                  s.merge.id);
    }

  private:
    struct Slot {
        std::uint64_t key;
        Merge merge;
    };
    static constexpr std::uint64_t free_key = UINT64_MAX;
    static constexpr Slot no_slot{free_key, {no_merge, -1}};
    static std::uint64_t pack(TokenId left, TokenId right) {
        return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
    }
    void put(const Slot& slot);
    std::vector<Slot> slots_ = std::vector<Slot>(16, no_slot);
    std::size_t mask_ = 15, size_ = 0;
    int shift_ = 60;
    // Most pairs asked for do not merge: one bit a hash, four a slot, answers nine tenths of those from a
    // table that stays in the second-level cache, where the slots of a large vocabulary do not.
    std::vector<std::uint64_t> filter_ = std::vector<std::uint64_t>(1);
    int filter_shift_ = 58;
    // [left][right] for ids below 256, where a byte-level vocabulary keeps its bytes.
    std::vector<Merge> bytes_;
};

/// Scratch space of one thread; symbols go in, the merged symbols come out in the same vector.
class Merger {
  public:
    std::vector<TokenId>& symbols() { return symbols_; }
    void apply(const MergeTable& table);
    /// Frees what a giant word has made large.
    void trim();

  private:
    template <std::size_t most>
    void apply_short(const MergeTable& table);
    void apply_long(const MergeTable& table);
    std::vector<TokenId> symbols_;
    std::vector<std::uint32_t> rank_;
    std::vector<TokenId> joined_;
    std::vector<std::int32_t> previous_, next_;
};

}  // namespace linnet
