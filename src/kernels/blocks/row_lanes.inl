// How many groups of 32 weights a vector holds in the product of writing (rows.inl): one, or two where
// vectors of 512 bits multiply bytes (AVX-512 with VNNI), which takes fewer instructions: of the time on Zen
// 5, in cache, q8_0 keeps 0.63, q4_0 0.71, q4_k 0.8 and q6_k 0.5. Both have the same chains of additions, and
// so the same bits.
#pragma once
#include "kernels/types/parts.inl"

namespace linnet {
namespace {

/// One group per vector.
struct OneGroup {
    static constexpr int groups = 1;
    using Codes = Bytes32;
    using Ints = Ints8;
    using Floats = Floats8;

    template <class Block, int g>
    static LINNET_INLINE Codes codes(const char* run) {
        return Block::template codes<g>(run);
    }
    /// Eight numbers, of which that of a vector's group is spread over its lanes. In memory, because a load
    /// does that at no cost, where shuffles would be half of the work.
    struct Spread {
        alignas(32) float of_group[8];

        LINNET_INLINE explicit Spread(Floats8 numbers) {
            put_vector(of_group, numbers);
            __asm__("" : "+m"(of_group));  // or compilers keep them in registers after all
        }
        template <int g>
        LINNET_INLINE Floats get() const {
            return all_of(of_group[g]);
        }
    };
    /// Whole numbers of the first halves of eight groups and of their second ones: each in both halves of a
    /// word. Spread as floats: of integers GCC makes vectors one by one.
    template <bool halves>
    struct SpreadWords {
        alignas(32) float of_group[2][8];

        static LINNET_INLINE Ints8 twice(Shorts8 v) {
            const Ints8 wide = widen_shorts(v);
            return (wide & 0xFFFF) | wide << 16;
        }
        LINNET_INLINE explicit SpreadWords(Shorts16 numbers) {
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
    static Floats8 total_of(const Floats (&chains)[4]) {
        return (chains[0] + chains[1]) + (chains[2] + chains[3]);
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
    using Floats = Floats16;

    template <class Block, int p>
    static LINNET_INLINE Codes codes(const char* run) {
        if constexpr (requires { Block::template codes_of_two<p>(run); })
            return Block::template codes_of_two<p>(run);
        else
            return join(Block::template codes<2 * p>(run), Block::template codes<2 * p + 1>(run));
    }
    struct Spread {
        Floats8 numbers;

        LINNET_INLINE explicit Spread(Floats8 v) : numbers(v) {}
        template <int p>
        LINNET_INLINE Floats get() const {
            return spread_two<2 * p>(numbers);
        }
    };
    template <bool>
    struct SpreadWords {
        Shorts16 numbers;

        LINNET_INLINE explicit SpreadWords(Shorts16 v) : numbers(v) {}
        template <int p>
        LINNET_INLINE Ints get() const {
            return spread_words_of_two<2 * p>(numbers);
        }
    };
    static Floats8 total_of(const Floats (&chains)[2]) {
        return (lower_group(chains[0]) + upper_group(chains[0])) +
               (lower_group(chains[1]) + upper_group(chains[1]));
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
