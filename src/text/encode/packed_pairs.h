// A flat hash table from pairs of small numbers to a number; a pair and its value take eight bytes, so that
// the tables of a large vocabulary stay near the processor.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/arena.h"
#include "base/keyed_hash.h"

namespace linnet {

/// Open-addressed, up to four fifths full. Pairs are of left_bits and right_bits, values of the 64 bits'
/// rest, but for `none`.
template <int left_bits, int right_bits>
class PackedPairs {
  public:
    static constexpr int value_bits = 64 - left_bits - right_bits;
    static constexpr std::uint32_t none = static_cast<std::uint32_t>((std::uint64_t{1} << value_bits) - 1);

    void reserve(std::size_t pairs) {
        const std::size_t want = std::bit_ceil(std::max<std::size_t>(pairs + pairs / 4, 16));
        if (want <= slots_.size()) return;
        Slots old(want, free_slot);
        old.swap(slots_);
        mask_ = slots_.size() - 1;
        shift_ = 64 - std::countr_zero(slots_.size());
        filter_.assign(slots_.size() * 8 / 64, 0);
        filter_shift_ = shift_ - 3;
        for (const std::uint64_t slot : old)
            if (slot != free_slot) enter(slot);
    }
    /// All three are within their bits. False where the pair is there already; its value stays.
    bool add(std::uint32_t left, std::uint32_t right, std::uint32_t value) {
        if (slots_.size() < (size_ + 1) + (size_ + 1) / 4) reserve(size_ + 1);
        const bool is_new = enter(pack(left, right) << value_bits | value);
        size_ += is_new;
        return is_new;
    }
    /// The value, or none. UINT32_MAX, on either side, is in no pair, unless pairs have a right of all ones.
    std::uint32_t find(std::uint32_t left, std::uint32_t right) const {
        const std::uint64_t key = pack(left, right), hash = hash_of(key);
        // Whether a pair is there cannot be predicted, so the common answers are selected, not branched to.
        const bool may_be = filter_[hash >> filter_shift_ >> 6] >> (hash >> filter_shift_ & 63) & 1;
        const auto there = reinterpret_cast<std::uintptr_t>(&slots_[hash >> shift_]),
                   nowhere = reinterpret_cast<std::uintptr_t>(&free_slot);
        const auto* slot = reinterpret_cast<const std::uint64_t*>(
            nowhere ^ ((there ^ nowhere) & (std::uintptr_t{0} - std::uintptr_t{may_be})));
        while (*slot >> value_bits != key && *slot != free_slot)
            [[unlikely]] slot = slot == &slots_[mask_] ? &slots_[0] : slot + 1;
        return static_cast<std::uint32_t>(*slot & none);
    }
    /// The most slots that a find() of a pair that is there looks at.
    std::size_t longest_probe() const {
        std::size_t longest = 0;
        for (std::size_t i = 0; i < slots_.size(); i++)
            if (slots_[i] != free_slot)
                longest = std::max(longest, ((i - (hash_of(slots_[i] >> value_bits) >> shift_)) & mask_) + 1);
        return longest;
    }
    std::size_t size() const { return size_; }
    /// f(left, right, value) for every pair, in no order.
    template <class F>
    void each(F&& f) const {
        for (const std::uint64_t slot : slots_)
            if (slot != free_slot)
                f(static_cast<std::uint32_t>(slot >> (64 - left_bits)),
                  static_cast<std::uint32_t>(slot >> value_bits & ((std::uint64_t{1} << right_bits) - 1)),
                  static_cast<std::uint32_t>(slot & none));
    }

  private:
    static constexpr std::uint64_t free_slot = UINT64_MAX;
    static std::uint64_t pack(std::uint32_t left, std::uint32_t right) {
        return std::uint64_t{left} << right_bits | right;
    }
    std::uint64_t hash_of(std::uint64_t key) const { return key * odd_; }
    bool enter(std::uint64_t slot) {
        const std::uint64_t key = slot >> value_bits, hash = hash_of(key);
        std::size_t i = hash >> shift_;
        for (; slots_[i] != free_slot; i = (i + 1) & mask_)
            if (slots_[i] >> value_bits == key) return false;
        slots_[i] = slot;
        filter_[hash >> filter_shift_ >> 6] |= std::uint64_t{1} << (hash >> filter_shift_ & 63);
        return true;
    }
    using Slots = std::vector<std::uint64_t, LargePageAllocator<std::uint64_t>>;
    Slots slots_ = Slots(16, free_slot);
    std::uint64_t odd_ = hash_secret.odd;  // beside what find() reads anyway
    std::size_t mask_ = 15, size_ = 0;
    int shift_ = 60;
    // Most pairs asked for are absent: one bit per hash, eight per slot, answers nine tenths of those from a
    // table that stays in the second-level cache, where the slots of a large vocabulary do not.
    std::vector<std::uint64_t> filter_ = std::vector<std::uint64_t>(2);
    int filter_shift_ = 57;
};

}  // namespace linnet
