// The vectors of the product of writing (rows.inl): of 32 bytes, or of 64 where AVX-512 multiplies bytes
// (VNNI). Both give the same sums.
//
// Where groups of 32 codes have scales of their own (row_groups.inl), vectors hold eight codes of a group
// beside eight of the fourth group after it: four such vectors, with those of a row of activations in the
// same order, add up to two neighbouring words per group, which become floats and meet their scale with no
// shuffle between. Sums to one word per group took 1.5 times the time in cache (q4_0 on Zen 4).
#pragma once
#include "kernels/blocks/activations.inl"

namespace linnet {
namespace {

constexpr int64_t block_rows_at_once = 16;  // rows of A that share a column of W while it is in cache

/// A run's bytes in another order, `Piece` by `Piece`: from(i) is the one that comes to place i.
template <class Piece, class From>
inline void arrange(Whole* q, From from) {
    constexpr int count = run_length / sizeof(Piece);
    Piece pieces[count];
    for (int i = 0; i < count; i++) pieces[i] = get_vector<Piece>(q + sizeof(Piece) * from(i));
    __builtin_memcpy(q, pieces, sizeof pieces);
}

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
/// In each half of a vector: the sums of the four words of v[0], v[1], v[2] and v[3] there.
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
/// The sums of four vectors.
LINNET_INLINE Ints4 totals(const Ints8* v) {
    const Ints8 sums = sums_of_fours<Floats8>(v);
    return lower_half(sums) + upper_half(sums);
}
/// The same of floats, each in the order of total().
LINNET_INLINE Floats4 totals(const Floats8* v) {
    Floats4 four[4];
    for (int i = 0; i < 4; i++) four[i] = lower_half(v[i]) + upper_half(v[i]);
    auto sums_of_twos = [&four](int i) LINNET_LAMBDA_INLINE {
        return __builtin_shufflevector(four[i], four[i + 1], 0, 1, 4, 5) +
               __builtin_shufflevector(four[i], four[i + 1], 2, 3, 6, 7);
    };
    const Floats4 low = sums_of_twos(0), high = sums_of_twos(2);
    return __builtin_shufflevector(low, high, 0, 2, 4, 6) + __builtin_shufflevector(low, high, 1, 3, 5, 7);
}

#ifndef LINNET_WIDE_BYTES

struct NarrowLanes {
    using Codes = Bytes32;
    using Ints = Ints8;
    using Floats = Floats8;
    static constexpr int parts = 2;  // of the two words per group of a run

    /// Codes of a part as the instruction wants them; they stand for their value less `bias`.
    template <class Block, int p>
    static LINNET_INLINE PartCodes codes(const char* run) {
        return Block::template codes_of_part<p>(run);
    }
    /// The activations in the order of PartCodes: place i has eight numbers k = i / 4 % 4 of group
    /// 2 · (i / 16) + i / 2 % 2 + 4 · (i % 2).
    static void arrange_groups(Whole* q) {
        arrange<uint64_t>(q, [](int i) { return 4 * (i / 16 * 2 + i / 2 % 2 + i % 2 * 4) + i / 4 % 4; });
    }
    template <class Block>
    static constexpr int bias = Block::zero;
    /// To the sums of each column: the products of its four vectors with the bytes at `a`.
    template <class Block, int C>
    static LINNET_INLINE void add(Ints (&sums)[C], const PartCodes (&codes)[C], const Whole* a) {
        const Codes bytes[4] = {get_vector<Codes>(a), get_vector<Codes>(a + 32), get_vector<Codes>(a + 64),
                                get_vector<Codes>(a + 96)};
        LINNET_UNROLL
        for (int c = 0; c < C; c++) {
            if constexpr (!Block::is_signed) {
                sums[c] = add_small_codes(sums[c], codes[c].of, bytes);
            } else {
                LINNET_UNROLL
                for (int k = 0; k < 4; k++) sums[c] = add_signed(sums[c], codes[c].of[k], bytes[k]);
            }
        }
    }
    template <class Vector>
    static LINNET_INLINE Vector loaded(Vector v) {
        return v;
    }
    /// Numbers of the groups, each for its two words of part p.
    template <int p>
    static LINNET_INLINE Floats spread(Floats8 v) {
        constexpr int a = 2 * p, b = a + 4, c = a + 1, d = a + 5;
        return __builtin_shufflevector(v, v, a, a, b, b, c, c, d, d);
    }
    static LINNET_INLINE Floats8 join(const Floats (&sums)[2]) { return sums[0] + sums[1]; }

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
    /// Adds the scaled products of the runs of C columns with R rows, `apart` runs one from another, to
    /// sums[c · R + r].
    template <class Block, int R, int C>
    static LINNET_INLINE void add_runs(const char* const (&run)[C], const WholeScales (&scales)[C],
                                       const ActivationRun* a, int64_t apart, Ints* sums) {
        SpreadWords<Block::group == 16> spread[C];
        LINNET_UNROLL
        for (int c = 0; c < C; c++) spread[c].set(scales[c].scale);
        each_group([&]<int g>() LINNET_LAMBDA_INLINE {
            LINNET_UNROLL
            for (int c = 0; c < C; c++) {
                const Codes codes = Block::template codes<g>(run[c]);
                const Ints by = spread[c].template get<g>();
                LINNET_UNROLL
                for (int r = 0; r < R; r++)
                    sums[c * R + r] = add_scaled_codes(sums[c * R + r], codes,
                                                       get_vector<Codes>(a[r * apart].q + 32 * g), by);
            }
        });
    }
    template <class Block>
    static void arrange_run(Whole*) {}
    static LINNET_INLINE Ints first(Ints8 sums) { return sums; }
};

using RowLanes = NarrowLanes;

#else

/// The sums of four vectors.
LINNET_INLINE Ints4 totals(const Ints16* v) {
    const Ints16 sums = sums_of_fours<Floats16>(v);
    const Ints8 both = lower_half(sums) + upper_half(sums);
    return lower_half(both) + upper_half(both);
}

struct WideLanes {
    using Codes = Bytes64;
    using Ints = Ints16;
    using Floats = Floats16;
    static constexpr int parts = 1;

    /// The instruction wants codes without a sign: signed ones get 128 more.
    template <class Block, int p>
    static LINNET_INLINE PartCodes codes(const char* run) {
        PartCodes codes = Block::template codes_of_part<p>(run);
        if constexpr (Block::is_signed)
            for (Codes& of : codes.of) of ^= 128;
        return codes;
    }
    /// Place i has eight numbers k = i / 8 of group i / 2 % 4 + 4 · (i % 2).
    static void arrange_groups(Whole* q) {
        arrange<uint64_t>(q, [](int i) { return 4 * (i / 2 % 4 + i % 2 * 4) + i / 8; });
    }
    template <class Block>
    static constexpr int bias = Block::is_signed ? 128 : Block::zero;
    template <class Block, int C>
    static LINNET_INLINE void add(Ints (&sums)[C], const PartCodes (&codes)[C], const Whole* a) {
        LINNET_UNROLL
        for (int k = 0; k < 4; k++) {
            const Codes bytes = loaded(get_vector<Codes>(a + 64 * k));
            LINNET_UNROLL
            for (int c = 0; c < C; c++) sums[c] = add_dots(sums[c], codes[c].of[k], bytes);
        }
    }
    /// v, in a register from here on: GCC else loads it again for each column, and loads are what several
    /// rows are bound by (eight rows of q8_0 from cache, Zen 4: 10.5 GB/s without this, 12.3 with it).
    template <class Vector>
    static LINNET_INLINE Vector loaded(Vector v) {
        __asm__("" : "+v"(v));
        return v;
    }
    template <int>
    static LINNET_INLINE Floats spread(Floats8 v) {
        return spread_groups(v);
    }
    static LINNET_INLINE Floats8 join(const Floats (&sums)[1]) {
        return lower_half(sums[0]) + upper_half(sums[0]);
    }

    /// Sums of four products fit into 16 bits: those of two vectors become one, and meet their scales
    /// together.
    template <class Block, int R, int C>
    static LINNET_INLINE void add_runs(const char* const (&run)[C], const WholeScales (&scales)[C],
                                       const ActivationRun* a, int64_t apart, Ints* sums) {
        each_of<2>([&]<int pair>() LINNET_LAMBDA_INLINE {
            constexpr int p = 2 * pair;
            LINNET_UNROLL
            for (int c = 0; c < C; c++) {
                const Codes first = Block::template codes_of_two<p>(run[c]),
                            second = Block::template codes_of_two<p + 1>(run[c]);
                const Ints by = spread_scales<first_of_two<Block>(p), first_of_two<Block>(p + 1),
                                              Block::apart, Block::group == 16>(scales[c].scale);
                LINNET_UNROLL
                for (int r = 0; r < R; r++) {
                    const Whole* q = a[r * apart].q;
                    sums[c * R + r] = add_scaled_dots(
                        sums[c * R + r], add_dots(Ints{}, first, get_vector<Codes>(q + 64 * p)),
                        add_dots(Ints{}, second, get_vector<Codes>(q + 64 * (p + 1))), by);
                }
            }
        });
    }
    /// The activations in the order of codes_of_two: where place i has a group from.
    template <class Block>
    static constexpr int group_at(int i) {
        return first_of_two<Block>(i / 2) + i % 2 * Block::apart;
    }
    template <class Block>
    static void arrange_run(Whole* q) {
        arrange<Bytes32>(q, group_at<Block>);
    }
    static LINNET_INLINE Ints first(Ints8 sums) { return widened(sums); }
};
using RowLanes = WideLanes;
#endif

}  // namespace
}  // namespace linnet
