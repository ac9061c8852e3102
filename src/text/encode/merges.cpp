#include "text/encode/merges.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "base/error.h"
#include "base/keyed_hash.h"

namespace linnet {

void MergeTable::reserve(std::size_t merges) {
    ranks_.reserve(merges);
    joined_.reserve(merges);
}

bool MergeTable::add(TokenId left, TokenId right, std::uint32_t rank, TokenId joined) {
    if (rank >= no_merge || std::max(left, right) >= most_symbols)
        fail_input("tokenizer", "merges", "ranks below 2^22 - 1 of tokens below 2^21 - 1",
                   std::to_string(left) + " and " + std::to_string(right) + " at " + std::to_string(rank));
    if (!ranks_.add(static_cast<std::uint32_t>(left), static_cast<std::uint32_t>(right), rank)) return false;
    if (rank >= joined_.size()) joined_.resize(rank + std::size_t{1}, -1);
    TokenId& known = joined_[rank];
    if (known == -1) known = joined;
    const TokenId first = known < 0 ? first_of(known) : known;
    if (joined != first) {
        known = first_of(first);
        others_.emplace(std::pair(left, right), joined);
    }
    if (static_cast<std::uint32_t>(left | right) < 256) {
        if (bytes_.empty()) bytes_.assign(65536, no_merge);
        bytes_[static_cast<std::size_t>(left << 8 | right)] = rank;
    }
    return true;
}

std::vector<MergeTable::Ranked> MergeTable::in_order() const {
    // Ranks are places in a list of merges or tokens, so counting them is cheaper than comparing them.
    std::vector<std::uint32_t> place;
    ranks_.each([&](std::uint32_t, std::uint32_t, std::uint32_t rank) {
        if (rank + std::size_t{2} > place.size()) place.resize(rank + std::size_t{2});
        place[rank + 1]++;
    });
    std::partial_sum(place.begin(), place.end(), place.begin());
    std::vector<Ranked> merges(size());
    ranks_.each([&](std::uint32_t l, std::uint32_t r, std::uint32_t rank) {
        merges[place[rank]++] = {rank, static_cast<TokenId>(l), static_cast<TokenId>(r)};
    });
    for (auto begin = merges.begin(); begin != merges.end();) {
        const auto end =
            std::find_if(begin, merges.end(), [&](const Ranked& m) { return m.rank != begin->rank; });
        std::sort(begin, end);
        begin = end;
    }
    return merges;
}

void Merger::apply(const MergeTable& table) {
    // Up to about 48 the scan for the minimum is cheaper than lists (measured on source code and Chinese).
    if (symbols_.size() <= 16)
        apply_short<16>(table);
    else if (symbols_.size() <= 48)
        apply_short<48>(table);
    else
        apply_long(table);
}

template <std::size_t most>
void Merger::apply_short(const MergeTable& table) {
    ShortRow<most> row;
    std::copy(symbols_.begin(), symbols_.end(), row.start(symbols_.size()));
    row.begin(table);
    while (row.join(table)) row.renew(table);
    symbols_.clear();
    row.each([&](TokenId symbol) { symbols_.push_back(symbol); });
}

void Merger::apply_long(const MergeTable& table) {
    done_.clear();
    std::size_t begin = 0, size = window_, crossed = 0;
    while (true) {
        const std::size_t end = std::min(symbols_.size(), begin + size);
        merge(table, begin, end, tokens_);
        if (!done_.empty() &&
            is_crossed(table, done_.back().begin, begin, tokens_.size() > 1 ? tokens_[1].begin : end)) {
            crossed = std::max(crossed, begin);
            begin = done_.back().begin;
            done_.pop_back();
            size *= 2;
            continue;
        }
        std::size_t kept = tokens_.size();
        if (end < symbols_.size())
            while (kept > 1 && tokens_[kept - 1].begin > end - size / 16) kept--;
        done_.insert(done_.end(), tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(kept));
        if (end == symbols_.size()) break;
        if (kept == tokens_.size()) {  // the last token is too long to be sure of it
            begin = done_.back().begin;
            done_.pop_back();
            size *= 2;
            continue;
        }
        begin = tokens_[kept].begin;
        if (begin > crossed) size = window_;  // else the same border would be tried for ever
    }
    symbols_.clear();
    for (const Token& token : done_) symbols_.push_back(token.id);
}

/// Whether merges cross the border between two tokens, given the places of their symbols.
bool Merger::is_crossed(const MergeTable& table, std::size_t begin, std::size_t border, std::size_t end) {
    merge(table, begin, end, beside_);
    return beside_.size() != 2 || beside_[1].begin != border;
}

namespace {

/// The pairs of a row in turn: by rank, then by position. Positions wait in a list per rank, which is sorted
/// when its turn comes; those that a merge adds at a rank that is not above the current one (possible with
/// scores, not with trained ranks) go through `urgent_`.
class Turns {
  public:
    /// A pair of the row as it was.
    void wait(std::uint32_t rank, std::int32_t at) {
        if (rank != last_rank_ || !last_list_) {
            auto [it, fresh] = waiting_.try_emplace(rank);
            if (fresh) ranks_.push(rank);
            last_rank_ = rank;
            last_list_ = &it->second;
        }
        last_list_->push_back(at);
    }
    /// A pair that a merge has made.
    void add(std::uint32_t rank, std::int32_t at) {
        if (rank <= current_)
            urgent_.push(std::uint64_t{rank} << 32 | static_cast<std::uint32_t>(at));
        else
            wait(rank, at);
    }
    /// The next pair, which may be gone by now; false where there is none.
    bool next(std::uint32_t& rank, std::int32_t& at) {
        if (next_ == list_.size() && urgent_.empty() && !next_list()) return false;
        const std::uint64_t turn =
            next_ < list_.size() ? std::uint64_t{current_} << 32 | static_cast<std::uint32_t>(list_[next_])
                                 : UINT64_MAX;
        rank = current_;
        if (!urgent_.empty() && urgent_.top() < turn) {
            rank = static_cast<std::uint32_t>(urgent_.top() >> 32);
            at = static_cast<std::int32_t>(urgent_.top() & 0xFFFFFFFFu);
            urgent_.pop();
        } else {
            at = list_[next_++];
        }
        return true;
    }

  private:
    bool next_list() {
        if (ranks_.empty()) return false;
        current_ = ranks_.top();
        ranks_.pop();
        const auto it = waiting_.find(current_);
        list_ = std::move(it->second);
        waiting_.erase(it);
        last_list_ = nullptr;
        next_ = 0;
        if (!std::is_sorted(list_.begin(), list_.end())) std::sort(list_.begin(), list_.end());
        return true;
    }

    std::unordered_map<std::uint32_t, std::vector<std::int32_t>, KeyedHash> waiting_;
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ranks_;
    std::priority_queue<std::uint64_t, std::vector<std::uint64_t>, std::greater<>> urgent_;
    std::uint32_t last_rank_ = no_merge;
    std::vector<std::int32_t>* last_list_ = nullptr;  // of that rank, where it waits still
    std::vector<std::int32_t> list_;                  // whose turn it is, of rank `current_`, from next_
    std::size_t next_ = 0;
    std::uint32_t current_ = 0;
};

}  // namespace

/// The symbols in [begin, end) as a row of their own.
void Merger::merge(const MergeTable& table, std::size_t begin, std::size_t end, std::vector<Token>& out) {
    const std::int32_t n = static_cast<std::int32_t>(end - begin);
    symbol_.assign(symbols_.begin() + static_cast<std::ptrdiff_t>(begin),
                   symbols_.begin() + static_cast<std::ptrdiff_t>(end));
    rank_.assign(end - begin, no_merge);
    previous_.resize(end - begin);
    next_.resize(end - begin);
    Turns turns;
    auto look = [&](std::int32_t left, std::int32_t right) {
        steps_++;
        return rank_[left] = table.rank(symbol_[left], symbol_[right]);
    };
    for (std::int32_t i = 0; i < n; i++) {
        previous_[i] = i - 1;
        next_[i] = i + 1 < n ? i + 1 : -1;
        if (i + 1 < n && look(i, i + 1) != no_merge) turns.wait(rank_[i], i);
    }
    auto renew = [&](std::int32_t left, std::int32_t right) {
        if (const std::uint32_t rank = look(left, right); rank != no_merge) turns.add(rank, left);
    };
    std::uint32_t rank = 0;
    for (std::int32_t at = 0; turns.next(rank, at);) {
        if (rank_[at] != rank) continue;
        const std::int32_t right = next_[at], after = next_[right], before = previous_[at];
        symbol_[at] = table.joined(symbol_[at], symbol_[right], rank);
        rank_[at] = rank_[right] = no_merge;
        symbol_[right] = -1;
        next_[at] = after;
        if (after >= 0) {
            previous_[after] = at;
            renew(at, after);
        }
        if (before >= 0) renew(before, at);
    }
    out.clear();
    for (std::int32_t i = 0; i < n; i++)
        if (symbol_[i] >= 0) out.push_back({symbol_[i], begin + static_cast<std::size_t>(i)});
}

void Merger::trim() {
    if (symbols_.capacity() < (1u << 20)) return;
    *this = Merger(window_);
}

}  // namespace linnet
