// Byte pair encoding's core: a table of merges and the procedure that applies them to a row of symbols.
//
// The answer is defined by the slow procedure (Sennrich et al., "Neural machine translation of rare words
// with subword units", ACL 2016, section 3.2): of all adjacent pairs take the one of lowest rank, of equal
// ranks the leftmost, join it, repeat. Short rows do exactly that on an array; long ones keep positions in
// one list per rank, so that a million equal letters cost a million steps (a binary heap over positions costs
// 20 times as many).
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "text/encode/packed_pairs.h"
#include "text/tokenizer.h"

namespace linnet {

/// (left, right) -> (rank, joined). Symbols are non-negative and below 2^21 - 1, ranks below 2^22 - 1; -1 as
/// a symbol merges with nothing.
class MergeTable {
    using Ranks = PackedPairs<21, 21>;

  public:
    static constexpr std::uint32_t no_merge = Ranks::none;
    static constexpr TokenId most_symbols = (TokenId{1} << 21) - 1;

    void reserve(std::size_t merges);
    /// False where the pair is there already (the first stays). Error(Exit::input) for numbers that are too
    /// large.
    bool add(TokenId left, TokenId right, std::uint32_t rank, TokenId joined);
    /// The pair's rank, or no_merge.
    std::uint32_t rank(TokenId left, TokenId right) const {
        if (static_cast<std::uint32_t>(left | right) < 256 && !bytes_.empty())
            return bytes_[static_cast<std::size_t>(left << 8 | right)];
        return ranks_.find(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right));
    }
    /// What a pair of this rank joins to.
    TokenId joined(TokenId left, TokenId right, std::uint32_t rank) const {
        const TokenId id = joined_[rank];
        if (id >= 0) [[likely]]
            return id;
        const auto other = others_.find({left, right});
        return other == others_.end() ? first_of(id) : other->second;
    }
    std::size_t size() const { return ranks_.size(); }
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
        ranks_.each([&](std::uint32_t l, std::uint32_t r, std::uint32_t rank) {
            const auto left = static_cast<TokenId>(l), right = static_cast<TokenId>(r);
            f(left, right, rank, joined(left, right, rank));
        });
    }

  private:
    Ranks ranks_;
    // [left][right] for ids below 256, where a byte-level vocabulary keeps its bytes.
    std::vector<std::uint32_t> bytes_;
    // By rank; none: -1. Where several tokens share a rank (scores may be equal), -2 less the first of them,
    // and the others by pair.
    std::vector<TokenId> joined_;
    std::map<std::pair<TokenId, TokenId>, TokenId> others_;
    static TokenId first_of(TokenId several) { return -2 - several; }
};
inline constexpr std::uint32_t no_merge = MergeTable::no_merge;

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
    bool join(const MergeTable& table) {
        auto first = [](std::uint64_t a, std::uint64_t b) { return a < b ? a : b; };
        std::uint64_t turn = UINT64_MAX;
        for (const std::uint64_t* t = turn_; t < turn_ + size_; t += 8)
            turn = first(turn, first(first(first(t[0], t[1]), first(t[2], t[3])),
                                     first(first(t[4], t[5]), first(t[6], t[7]))));
        if (turn >> 32 >= no_merge) return false;
        at_ = turn & 0xFFFFFFFFu;
        const std::size_t gone = next_[at_], after = next_[gone];
        symbol_[at_] = table.joined(symbol_[at_], symbol_[gone], static_cast<std::uint32_t>(turn >> 32));
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
    /// Calls f with the symbols that are left.
    template <class F>
    void each(F&& f) const {
        for (std::size_t i = 1; i <= size_; i = next_[i]) f(symbol_[i]);
    }

  private:
    void look(const MergeTable& table, std::size_t left, std::size_t right) {
        turn_[left] = std::uint64_t{table.rank(symbol_[left], symbol_[right])} << 32 | left;
    }
    std::size_t size_ = 0, at_ = 0;
    // Positions 1 … size, between the two ends.
    TokenId symbol_[most + 2];
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
    /// Pairs that were looked up for rows of more than 48 symbols; the measure of their work.
    std::size_t steps() const { return steps_; }

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

    std::size_t window_, steps_ = 0;
    std::vector<TokenId> symbols_;
    std::vector<Token> done_, tokens_, beside_;
    std::vector<TokenId> symbol_;
    std::vector<std::uint32_t> rank_;
    std::vector<std::int32_t> previous_, next_;
};

}  // namespace linnet
