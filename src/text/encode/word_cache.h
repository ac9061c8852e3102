// A cache of fixed size from short words to their ids: two-way buckets, keys compared as whole 64-bit words.
// The few ids of most words stand in the entry itself, so that a hit costs one cache line; more go to a pool.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "text/tokenizer.h"

namespace linnet {

/// Words of up to 8 * Words bytes, of any number of ids; Ids of them in the entry.
template <int Words, int Ids>
class WordCache {
  public:
    static_assert(Words % 2 == 0, "hash() takes two at a time");
    static constexpr std::size_t max_bytes = 8 * Words;

    struct Key {
        std::uint64_t word[Words];
        std::uint32_t size;
        std::uint64_t hash;
    };
    struct Entry {
        std::uint64_t word[Words];
        TokenId ids[Ids];    // more than Ids of them: ids[0] is where they begin in the pool
        std::uint16_t size;  // 0: free
        std::uint16_t count;
    };

    /// Begins with 2^first buckets of two entries, and has 2^last from the time that those would be full.
    WordCache(int first, int last)
        : full_mask_((std::size_t{1} << last) - 1),
          most_pooled_(std::min(std::size_t{32} << last, std::size_t{1} << 20)) {
        resize((std::size_t{1} << first) - 1);
    }

    /// The key of `size` (1 to max_bytes) bytes at p; the text may be read up to `limit`.
    static Key key(const char* p, std::size_t size, const char* limit) {
        Key k;
        if (static_cast<std::size_t>(limit - p) >= max_bytes) [[likely]] {
            std::memcpy(k.word, p, max_bytes);
            for (int i = 0; i < Words; i++) {
                const std::ptrdiff_t kept = static_cast<std::ptrdiff_t>(size) - 8 * i;
                k.word[i] &= kept >= 8 ? ~std::uint64_t{0} : kept <= 0 ? 0 : low_bytes(kept);
            }
        } else {
            std::memset(k.word, 0, sizeof k.word);
            std::memcpy(k.word, p, size);
        }
        k.size = static_cast<std::uint32_t>(size);
        k.hash = hash(k.word, size);
        return k;
    }

    /// Asks for the bucket of a key that will be looked for soon.
    void prefetch(std::uint64_t hash) const { __builtin_prefetch(bucket(hash)); }

    const Entry* find(const Key& k) const {
        const Entry* e = bucket(k.hash);
        if (same(*e, k)) return e;
        if (same(e[1], k)) return e + 1;
        return nullptr;
    }

    std::span<const TokenId> ids(const Entry& e) const {
        return {e.count <= Ids ? e.ids : &pool_[static_cast<std::size_t>(e.ids[0])], e.count};
    }

    /// Remembers the word; the older of its bucket's two goes. No more than 65 535 ids.
    void put(const Key& k, std::span<const TokenId> ids) {
        if (pool_.size() + ids.size() > most_pooled_) clear();
        if (++puts_ > mask_ && mask_ < full_mask_) resize(full_mask_);
        Entry* e = bucket(k.hash);
        e[1] = e[0];
        std::memcpy(e->word, k.word, sizeof k.word);
        e->size = static_cast<std::uint16_t>(k.size);
        e->count = static_cast<std::uint16_t>(ids.size());
        if (ids.size() <= Ids) {
            std::copy(ids.begin(), ids.end(), e->ids);
        } else {
            if (pool_.empty()) pool_.reserve(most_pooled_);  // what is not used is never touched
            e->ids[0] = static_cast<TokenId>(pool_.size());
            pool_.insert(pool_.end(), ids.begin(), ids.end());
        }
    }

    /// The ids of a word, which is not empty: those that it has here, or those that make() answers,
    /// remembered where the word is not too long.
    template <class Make>
    std::span<const TokenId> ids_of(std::string_view word, Make&& make) {
        if (word.size() > max_bytes) return make();
        const Key k = key(word.data(), word.size(), word.data() + word.size());
        if (const Entry* e = find(k)) return ids(*e);
        const std::span<const TokenId> made = make();
        put(k, made);
        return made;
    }

  private:
    static std::uint64_t low_bytes(std::ptrdiff_t n) {
        if constexpr (std::endian::native == std::endian::little)
            return ~std::uint64_t{0} >> (64 - 8 * n);
        else
            return ~std::uint64_t{0} << (64 - 8 * n);
    }
    static bool same(const Entry& e, const Key& k) {
        std::uint64_t differ = e.size ^ k.size;
        for (int i = 0; i < Words; i++) differ |= e.word[i] ^ k.word[i];
        return differ == 0;
    }
    static std::uint64_t hash(const std::uint64_t* word, std::size_t size) {
        std::uint64_t h = size;
        for (int i = 0; i < Words; i += 2) {
            unsigned __int128 product = static_cast<unsigned __int128>(word[i] ^ h ^ 0x9E3779B97F4A7C15u) *
                                        (word[i + 1] ^ 0xD1B54A32D192ED03u);
            h = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
        }
        return h;
    }
    Entry* bucket(std::uint64_t hash) const {
        return static_cast<Entry*>(memory_.get()) + (hash & mask_) * 2;
    }
    void resize(std::size_t mask) {
        Arena old = allocate_arena((mask + 1) * 2 * sizeof(Entry));
        old.swap(memory_);
        // A page that is read first is mapped twice, and the second time all threads are stopped.
        for (std::size_t at = 0; at < (mask + 1) * 2; at += 4096 / sizeof(Entry))
            static_cast<volatile Entry*>(memory_.get())[at].size = 0;
        const std::size_t entries = old ? (mask_ + 1) * 2 : 0;
        mask_ = mask;
        puts_ = 0;
        for (std::size_t i = 0; i < entries; i++) {
            const Entry& e = static_cast<const Entry*>(old.get())[i ^ 1];  // a bucket's older one first
            if (e.size == 0) continue;
            Entry* to = bucket(hash(e.word, e.size));
            to[1] = to[0];
            *to = e;
        }
    }

    void clear() {
        std::memset(memory_.get(), 0, (mask_ + 1) * 2 * sizeof(Entry));
        pool_.clear();
    }

    Arena memory_;
    std::vector<TokenId> pool_;
    std::size_t mask_ = 0, full_mask_, puts_ = 0;
    std::size_t most_pooled_;  // ids; at most 4 MiB of them, then all begins anew
};

}  // namespace linnet
