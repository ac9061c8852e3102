// Byte pair encoding's core: a table of merges and the procedure that applies them to a row of symbols.
//
// The answer is defined by the slow procedure (Sennrich et al., "Neural machine translation of rare words
// with subword units", ACL 2016, section 3.2): of all adjacent pairs take the one of lowest rank, of equal
// ranks the leftmost, join it, repeat. Short rows do exactly that on an array; long ones keep positions in
// one list a rank, so that a million equal letters cost a million steps (a binary heap over positions costs
// 20 times as many).
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/arena.h"
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
        const std::uint64_t key = pack(left, right), hash = hash_of(key);
        // Whether a pair merges cannot be predicted, so the common answers are selected, not branched to.
        const bool may_be = filter_[hash >> filter_shift_ >> 6] >> (hash >> filter_shift_ & 63) & 1;
        const auto there = reinterpret_cast<std::uintptr_t>(&slots_[hash >> shift_]),
                   nowhere = reinterpret_cast<std::uintptr_t>(&no_slot);
        const auto* slot = reinterpret_cast<const Slot*>(
            nowhere ^ ((there ^ nowhere) & (std::uintptr_t{0} - std::uintptr_t{may_be})));
        while (slot->key != key && slot->key != free_key)
            [[unlikely]] slot = slot == &slots_[mask_] ? &slots_[0] : slot + 1;
        return slot->merge;
    }
    /// For a find() or add() of this pair that will come soon.
    void prefetch(TokenId left, TokenId right) const {
        __builtin_prefetch(&slots_[hash_of(pack(left, right)) >> shift_]);
    }
    std::size_t size() const { return size_; }
    struct Ranked {
        std::uint32_t rank;
        TokenId left, right;
        bool operator<(const Ranked& other) const {
            return std::tie(rank, left, right) < std::tie(other.rank, other.left, other.right);
        }
    };
    /// All merges in order of rank; those of one rank (.tiktoken may imply several) in order of their
    /// symbols.
    std::vector<Ranked> in_order() const;
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
    static std::uint64_t hash_of(std::uint64_t key) { return key * 0x9E3779B97F4A7C15u; }
    void put(const Slot& slot);
    using Slots = std::vector<Slot, LargePageAllocator<Slot>>;
    Slots slots_ = Slots(16, no_slot);
    std::size_t mask_ = 15, size_ = 0;
    int shift_ = 60;
    // Most pairs asked for do not merge: one bit a hash, four a slot, answers nine tenths of those from a
    // table that stays in the second-level cache, where the slots of a large vocabulary do not.
    std::vector<std::uint64_t> filter_ = std::vector<std::uint64_t>(1);
    int filter_shift_ = 58;
    // [left][right] for ids below 256, where a byte-level vocabulary keeps its bytes.
    std::vector<Merge> bytes_;
};

/// A row of up to `most` symbols that is merged in place, by links between positions. What merges cannot be
/// predicted, so no branch depends on it: the minimum is selected, in steps of eight, and the row's ends are
/// symbols that merge with nothing.
template <std::size_t most>
class ShortRow {
  public:
    TokenId* start(std::size_t n) {  // where the symbols go; then begin()
        size_ = n;
        return symbol_ + 1;
    }
    void begin(const MergeTable& table) {
        std::fill(std::begin(turn_), std::end(turn_), UINT64_MAX);
        symbol_[0] = symbol_[size_ + 1] = -1;
        for (std::size_t i = 1; i <= size_; i++) {
            next_[i] = static_cast<std::uint8_t>(i + 1);
            previous_[i] = static_cast<std::uint8_t>(i - 1);
        }
        for (std::size_t i = 1; i < size_; i++) look(table, i, i + 1);
    }
    /// Joins the next pair in turn; false where nothing merges.
    bool join() {
        auto first = [](std::uint64_t a, std::uint64_t b) { return a < b ? a : b; };
        std::uint64_t turn = UINT64_MAX;
        for (const std::uint64_t* t = turn_; t < turn_ + size_; t += 8)
            turn = first(turn, first(first(first(t[0], t[1]), first(t[2], t[3])),
                                     first(first(t[4], t[5]), first(t[6], t[7]))));
        if (turn >> 32 == no_merge) return false;
        at_ = turn & 0xFFFFFFFFu;
        const std::size_t gone = next_[at_], after = next_[gone];
        symbol_[at_] = joined_[at_];
        next_[at_] = static_cast<std::uint8_t>(after);
        previous_[after] = static_cast<std::uint8_t>(at_);
        turn_[gone] = UINT64_MAX;
        return true;
    }
    /// After join(): the merges of the joined symbol with its neighbours.
    void renew(const MergeTable& table) {
        look(table, at_, next_[at_]);
        look(table, previous_[at_], at_);
    }
    void prefetch(const MergeTable& table) const {
        table.prefetch(symbol_[at_], symbol_[next_[at_]]);
        table.prefetch(symbol_[previous_[at_]], symbol_[at_]);
    }
    /// Calls f with the symbols that are left.
    template <class F>
    void each(F&& f) const {
        for (std::size_t i = 1; i <= size_; i = next_[i]) f(symbol_[i]);
    }
    /// The symbols, where two are left.
    bool is_pair(TokenId& left, TokenId& right) const {
        const std::size_t second = next_[1];
        if (second > size_ || next_[second] <= size_) return false;
        left = symbol_[1];
        right = symbol_[second];
        return true;
    }

  private:
    void look(const MergeTable& table, std::size_t left, std::size_t right) {
        const Merge m = table.find(symbol_[left], symbol_[right]);
        turn_[left] = std::uint64_t{m.rank} << 32 | left;
        joined_[left] = m.id;
    }
    std::size_t size_ = 0, at_ = 0;
    // Positions 1 … size, between the two ends.
    TokenId symbol_[most + 2], joined_[most + 2];
    std::uint64_t turn_[(most + 9) / 8 * 8];  // rank and position of the merge with the next symbol
    std::uint8_t next_[most + 2], previous_[most + 2];
};

/// Scratch space of one thread; symbols go in, the merged symbols come out in the same vector.
///
/// Rows longer than `window` are merged window by window, so that the work stays in the second-level cache:
/// what each window makes of its last sixteenth is merged again with what follows. That is the whole row's
/// answer if no border between two windows is one that merges cross. To know that it is enough to merge the
/// two tokens beside it: had the whole row a first merge across the border, the row of those two would make
/// it too, as until then both do the same there, in the same order. Where one does cross, the window begins a
/// token earlier and is twice as long.
class Merger {
  public:
    explicit Merger(std::size_t window = 8192) : window_(window) {}
    std::vector<TokenId>& symbols() { return symbols_; }
    void apply(const MergeTable& table);
    /// Frees what a giant word has made large.
    void trim();

  private:
    struct Token {
        TokenId id;
        std::size_t begin;  // the place of its first symbol in the row
    };
    template <std::size_t most>
    void apply_short(const MergeTable& table);
    void apply_long(const MergeTable& table);
    void merge(const MergeTable& table, std::size_t begin, std::size_t end, std::vector<Token>& out);
    bool is_crossed(const MergeTable& table, std::size_t begin, std::size_t border, std::size_t end);

    std::size_t window_;
    std::vector<TokenId> symbols_;
    std::vector<Token> done_, tokens_, beside_;
    std::vector<TokenId> symbol_, joined_;
    std::vector<std::uint32_t> rank_;
    std::vector<std::int32_t> previous_, next_;
};

}  // namespace linnet
