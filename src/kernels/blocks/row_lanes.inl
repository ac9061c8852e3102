// How many groups of 32 weights a vector holds in the product of writing (rows.inl): one, or two where
// vectors of 512 bits multiply bytes (AVX-512 with VNNI), which takes fewer instructions: of the time on Zen
// 5, in cache, q8_0 and q4_0 keep 0.75, q4_k 0.8 and q6_k 0.5. The sums are whole numbers, the same of both.
#pragma once
#include "kernels/blocks/activations.inl"

namespace linnet {
namespace {

/// Of each half (of 16 bytes) of two vectors: their first two words in turn, or the last two; their first
/// pairs of words, or the second ones. As floats: integers GCC moves across halves, which takes longer.
inline Floats8 first_words(Floats8 a, Floats8 b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13);
}
inline Floats8 last_words(Floats8 a, Floats8 b) {
    return __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15);
}
inline Floats8 first_pairs(Floats8 a, Floats8 b) {
    return __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13);
}
inline Floats8 last_pairs(Floats8 a, Floats8 b) {
    return __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15);
}
#ifdef LINNET_WIDE_BYTES
inline Floats16 first_words(Floats16 a, Floats16 b) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
}
inline Floats16 last_words(Floats16 a, Floats16 b) {
    return __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}
inline Floats16 first_pairs(Floats16 a, Floats16 b) {
    return __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
}
inline Floats16 last_pairs(Floats16 a, Floats16 b) {
    return __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}
#endif
/// Four vectors in fours of words, which are matrices: each becomes its transpose.
template <class Floats, class Codes>
LINNET_INLINE void transpose_fours(Codes* v) {
    auto at = [v](int i) LINNET_LAMBDA_INLINE { return reinterpret_cast<Floats>(v[i]); };
    const Floats low = first_words(at(0), at(1)), high = last_words(at(0), at(1)),
                 low2 = first_words(at(2), at(3)), high2 = last_words(at(2), at(3));
    v[0] = reinterpret_cast<Codes>(first_pairs(low, low2));
    v[1] = reinterpret_cast<Codes>(last_pairs(low, low2));
    v[2] = reinterpret_cast<Codes>(first_pairs(high, high2));
    v[3] = reinterpret_cast<Codes>(last_pairs(high, high2));
}

/// The sums of the fours of v[0], v[1], v[2], v[3] in turn.
template <class Floats, class Ints>
LINNET_INLINE Ints sums_of_fours(const Ints* v) {
    auto sums_of_twos = [v](int i) LINNET_LAMBDA_INLINE {
        const auto a = reinterpret_cast<Floats>(v[i]), b = reinterpret_cast<Floats>(v[i + 1]);
        return reinterpret_cast<Floats>(reinterpret_cast<Ints>(first_words(a, b)) +
                                        reinterpret_cast<Ints>(last_words(a, b)));
    };
    const Floats low = sums_of_twos(0), high = sums_of_twos(2);
    return reinterpret_cast<Ints>(first_pairs(low, high)) + reinterpret_cast<Ints>(last_pairs(low, high));
}

/// One group per vector.
struct OneGroup {
    static constexpr int groups = 1;
    using Codes = Bytes32;
    using Ints = Ints8;

    template <class Block, int g>
    static LINNET_INLINE Codes codes(const char* run) {
        return Block::template codes<g>(run);
    }
    /// Whole numbers of the first halves of eight groups and of their second ones: each in both halves of a
    /// word. Spread as floats: of integers GCC makes vectors one by one.
    template <bool halves>
    struct SpreadWords {
        alignas(32) float of_group[2][8];

        static LINNET_INLINE Ints8 twice(Shorts8 v) {
            const Ints8 wide = widen_shorts(v);
            return (wide & 0xFFFF) | wide << 16;
        }
        LINNET_INLINE void set(Shorts16 numbers) {
            put_vector(of_group[0], twice(first_half(numbers)));
            if constexpr (halves) put_vector(of_group[1], twice(second_half(numbers)));
            __asm__("" : "+m"(of_group));
        }
        template <int g>
        LINNET_INLINE Ints get() const {
            Floats8 spread = all_of(of_group[0][g]);
            if constexpr (halves)
                spread = __builtin_shufflevector(spread, all_of(of_group[1][g]), 0, 1, 2, 3, 12, 13, 14, 15);
            return reinterpret_cast<Ints8>(spread);
        }
    };
    /// Codes as the instruction wants them; they stand for their value less `bias`.
    template <class Block>
    static LINNET_INLINE Codes factor(Codes codes) {
        return codes;
    }
    template <class Block>
    static constexpr int bias = Block::zero;
    template <class Block>
    static LINNET_INLINE Ints add(Ints sums, Codes factor, Codes a) {
        return Block::is_signed ? add_signed(sums, factor, a) : add_codes(sums, factor, a);
    }
    /// The words of eight groups, so that those of a group stand in one lane, or two, of four vectors.
    static LINNET_INLINE void regroup(Codes (&v)[8]) {
        transpose_fours<Floats8>(v);
        transpose_fours<Floats8>(v + 4);
    }
    /// Of sums of four vectors each, the groups' sums.
    static LINNET_INLINE Ints8 of_groups(const Ints (&v)[2]) {
        return __builtin_shufflevector(v[0], v[1], 0, 1, 2, 3, 8, 9, 10, 11) +
               __builtin_shufflevector(v[0], v[1], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    /// Of sums that are a group's each, the groups' sums.
    static LINNET_INLINE Ints8 of_groups(const Ints (&v)[8]) {
        const Ints both[2] = {sums_of_fours<Floats8>(v), sums_of_fours<Floats8>(v + 4)};
        return of_groups(both);
    }
    static Ints8 total_of(const Ints (&chains)[2]) { return chains[0] + chains[1]; }
};

#ifndef LINNET_WIDE_BYTES
using RowLanes = OneGroup;
#else

/// Groups 2p and 2p + 1 in the halves of vector p.
struct TwoGroups {
    static constexpr int groups = 2;
    using Codes = Bytes64;
    using Ints = Ints16;

    template <class Block, int p>
    static LINNET_INLINE Codes codes(const char* run) {
        if constexpr (requires { Block::template codes_of_two<p>(run); })
            return Block::template codes_of_two<p>(run);
        else
            return join(Block::template codes<2 * p>(run), Block::template codes<2 * p + 1>(run));
    }
    template <bool>
    struct SpreadWords {
        Shorts16 numbers;

        LINNET_INLINE void set(Shorts16 v) { numbers = v; }
        template <int p>
        LINNET_INLINE Ints get() const {
            return spread_words_of_two<2 * p>(numbers);
        }
    };
    /// The instruction wants codes without a sign: signed ones get 128 more.
    template <class Block>
    static LINNET_INLINE Codes factor(Codes codes) {
        return Block::is_signed ? codes ^ 128 : codes;
    }
    template <class Block>
    static constexpr int bias = Block::is_signed ? 128 : Block::zero;
    template <class Block>
    static LINNET_INLINE Ints add(Ints sums, Codes factor, Codes a) {
        return add_dots(sums, factor, a);
    }
    static LINNET_INLINE void regroup(Codes (&v)[4]) { transpose_fours<Floats16>(v); }
    static LINNET_INLINE Ints8 of_groups(const Ints (&v)[1]) {
        // In fours: parts of groups 0 2 4 6, twice, and of 1 3 5 7, twice.
        return __builtin_shufflevector(v[0], v[0], 0, 8, 1, 9, 2, 10, 3, 11) +
               __builtin_shufflevector(v[0], v[0], 4, 12, 5, 13, 6, 14, 7, 15);
    }
    static LINNET_INLINE Ints8 of_groups(const Ints (&v)[4]) {
        const Ints all[1] = {sums_of_fours<Floats16>(v)};
        return of_groups(all);
    }
    static Ints8 total_of(const Ints (&chains)[1]) { return lower_group(chains[0]) + upper_group(chains[0]); }
};
using RowLanes = TwoGroups;
#endif

/// Calls f.operator()<p>() for the vectors of a run.
template <class F>
LINNET_INLINE void each_part(F f) {
    [&]<int... p>(std::integer_sequence<int, p...>) LINNET_LAMBDA_INLINE {
        (f.template operator()<p>(), ...);
    }
    (std::make_integer_sequence<int, run_length / 32 / RowLanes::groups>());
}

}  // namespace
}  // namespace linnet
