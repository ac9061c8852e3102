// The two containers of the merger: pairs by key, and their lists of words.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/arena.h"
#include "base/keyed_hash.h"

namespace linnet {

struct Pair {
    std::uint64_t key = 0;  // as stored: see PairTable
    std::uint64_t count = 0;
    /// Ascending; may hold words that lost the pair since. Null: look everywhere.
    const std::uint32_t* words = nullptr;
    std::uint32_t word_count = 0;
};

inline std::uint64_t pair_key(std::uint32_t left, std::uint32_t right) {
    return std::uint64_t{left} << 32 | right;
}

/// Open addressing with backward-shift deletion. Key 0, the pair (0, 0), is stored as all ones.
class PairTable {
    using Slots = std::vector<Pair, LargePageAllocator<Pair>>;

  public:
    PairTable() : slots_(1 << 12) {}
    Pair* find(std::uint64_t key) {
        std::uint64_t k = stored(key);
        for (std::size_t i = home(k);; i = (i + 1) & mask()) {
            if (slots_[i].key == k) return &slots_[i];
            if (slots_[i].key == 0) return nullptr;
        }
    }
    /// The entry of `key`, made where it is missing. Valid until the next call.
    Pair& at(std::uint64_t key) {
        if (Pair* found = find(key)) return *found;
        if (full()) grow();
        size_++;
        Pair& free = slots_[vacancy(stored(key))];
        free = {stored(key), 0, nullptr, 0};
        return free;
    }
    void erase(Pair* entry) {
        size_--;
        std::size_t hole = static_cast<std::size_t>(entry - slots_.data());
        for (std::size_t i = (hole + 1) & mask(); slots_[i].key != 0; i = (i + 1) & mask()) {
            std::size_t distance = (i - home(slots_[i].key)) & mask();
            if (distance < ((i - hole) & mask())) continue;
            slots_[hole] = slots_[i];
            hole = i;
        }
        slots_[hole] = {};
    }
    void clear() {
        slots_ = Slots(1 << 12);
        size_ = 0;
    }
    template <class Visit>
    void each(Visit visit) {
        for (Pair& pair : slots_)
            if (pair.key != 0) visit(pair);
    }
    static std::uint64_t key(const Pair& pair) { return pair.key == ~std::uint64_t{0} ? 0 : pair.key; }
    std::size_t size() const { return size_; }
    std::size_t memory() const { return slots_.size() * sizeof(Pair); }
    std::size_t longest_probe() const {  // the most slots that find() looks at for a pair that is there
        std::size_t longest = 0;
        for (std::size_t i = 0; i < slots_.size(); i++)
            if (slots_[i].key != 0) longest = std::max(longest, ((i - home(slots_[i].key)) & mask()) + 1);
        return longest;
    }
    bool full() const { return (size_ + 1) * 10 > slots_.size() * 7; }  // a new key makes it grow

  private:
    static std::uint64_t stored(std::uint64_t key) { return key == 0 ? ~std::uint64_t{0} : key; }
    std::size_t mask() const { return slots_.size() - 1; }
    std::size_t home(std::uint64_t key) const { return keyed_hash(key) >> 32 & mask(); }
    std::size_t vacancy(std::uint64_t key) const {
        std::size_t i = home(key);
        while (slots_[i].key != 0) i = (i + 1) & mask();
        return i;
    }
    void grow() {
        Slots old(slots_.size() * 2);
        old.swap(slots_);
        for (Pair& pair : old)
            if (pair.key != 0) slots_[vacancy(pair.key)] = pair;
    }
    Slots slots_;
    std::size_t size_ = 0;
};

/// Lists of words, never freed one by one.
class ListArena {
  public:
    std::uint32_t* allocate(std::size_t n) {
        if (n > left_) {
            std::size_t size = std::max(n, chunk);
            chunks_.push_back(allocate_arena(size * sizeof(std::uint32_t)));
            memory_ += size * sizeof(std::uint32_t);
            auto* memory = static_cast<std::uint32_t*>(chunks_.back().get());
            if (size > chunk) return memory;  // a long list has a chunk of its own
            next_ = memory;
            left_ = size;
        }
        std::uint32_t* list = next_;
        next_ += n;
        left_ -= n;
        return list;
    }
    void clear() {
        chunks_.clear();
        next_ = nullptr;
        left_ = memory_ = 0;
    }
    std::size_t memory() const { return memory_; }

  private:
    static constexpr std::size_t chunk = std::size_t{1} << 18;
    std::vector<Arena> chunks_;
    std::uint32_t* next_ = nullptr;
    std::size_t left_ = 0, memory_ = 0;
};

}  // namespace linnet
