// A cache of fixed size from short words to their ids: two-way buckets, keys compared as whole 64-bit words.
#pragma once
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "text/tokenizer.h"

namespace linnet {

/// Words of up to 8 * Words bytes, at most Ids ids each.
template <int Words, int Ids>
class WordCache {
  public:
    static constexpr std::size_t max_bytes = 8 * Words;
    static constexpr std::size_t max_ids = Ids;

    struct Key {
        std::uint64_t word[Words];
        std::uint32_t size;
        std::uint64_t hash;
    };
    struct Entry {
        std::uint64_t word[Words];
        TokenId ids[Ids];
        std::uint8_t size;  // 0: free
        std::uint8_t count;
        std::uint16_t unused;
    };

    /// 2^bits buckets of two entries. Pages are zero until they are touched.
    explicit WordCache(int bits) : mask_((std::size_t{1} << bits) - 1) {
        entries_.reset(static_cast<Entry*>(std::calloc((mask_ + 1) * 2, sizeof(Entry))));
        if (!entries_) throw std::bad_alloc();
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
        std::uint64_t h = size;
        for (int i = 0; i < Words; i += 2) {
            unsigned __int128 product = static_cast<unsigned __int128>(k.word[i] ^ h ^ 0x9E3779B97F4A7C15u) *
                                        (k.word[i + 1] ^ 0xD1B54A32D192ED03u);
            h = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
        }
        k.hash = h;
        return k;
    }

    const Entry* find(const Key& k) const {
        const Entry* e = &entries_[(k.hash & mask_) * 2];
        if (same(*e, k)) return e;
        if (same(e[1], k)) return e + 1;
        return nullptr;
    }

    /// Remembers the word; the older of its bucket's two goes.
    void put(const Key& k, const TokenId* ids, std::size_t count) {
        Entry* e = &entries_[(k.hash & mask_) * 2];
        e[1] = e[0];
        std::memcpy(e->word, k.word, sizeof k.word);
        std::memcpy(e->ids, ids, count * sizeof(TokenId));
        e->size = static_cast<std::uint8_t>(k.size);
        e->count = static_cast<std::uint8_t>(count);
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
    struct Free {
        void operator()(Entry* p) const { std::free(p); }
    };
    std::unique_ptr<Entry[], Free> entries_;
    std::size_t mask_;
};

}  // namespace linnet
