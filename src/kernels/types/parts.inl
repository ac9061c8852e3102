// What the block types share. All of them say the same sum: the weights of a block stand in groups, and a
// weight is scale · (code - zero) + offset with the scale and the offset of its group and a small whole
// number, its code. So a type's file says
//     elements, bytes, group    weights and bytes per block, weights per group (16 or 32)
//     is_signed                 whether codes are signed bytes; else they are unsigned, at most 63
//     zero, has_offset          the code of 0; whether there are offsets
//     halves                    of blocks of 32: half-precision numbers that a block begins with: its scale,
//                               and where there are 2 its offset; 0: the scale is another number
//     codes<g>(from)            the codes of weights 32g … 32g + 31 of the 256 that begin at `from`
//     codes_of_two<p>(from)     those of groups 2p and 2p + 1, where it is faster than joining two (optional;
//                               simd/lanes_512.h alone)
//     scales(from)              the scales and offsets of those 256 weights
// or, where a block of 256 has scales that are whole multiples of one number,
//     whole_scales(from)        those multiples, of which scales(from) follows (WholeScaled)
// and whatever reads blocks follows from it (load_run below, blocks/). Codes stay in registers: as
// bytes in memory, stored in pieces of 16 and loaded in pieces of 32, they waited for the stores and took
// twice the time. Layouts: ggml-common.h (the structs block_*), their meaning: ggml-quants.c
// (dequantize_row_*).
#pragma once
#include <utility>

#include "kernels/simd/common.inl"
#include "kernels/simd/lanes.h"

namespace linnet {
namespace {

using Byte = unsigned char;
using Whole = signed char;  // every type's (code - zero) fits into a byte

constexpr int64_t run_length = 256;  // weights that are unpacked together: the longest block of a type

inline const Byte* bytes_at(const char* block, int64_t offset) {
    return reinterpret_cast<const Byte*>(block + offset);
}
inline Byte* bytes_at(char* block, int64_t offset) {
    return reinterpret_cast<Byte*>(block + offset);
}

/// Of the eight groups of 32 weights in a run; [1]: of the second halves of the groups, where a group of the
/// type has 16 weights.
struct Scales {
    Floats8 scale[2], offset[2];
};

/// Those of the first `groups` groups, and zeros.
inline Scales first_scales(Scales s, int64_t groups) {
    const auto keep = Ints8{0, 1, 2, 3, 4, 5, 6, 7} < static_cast<int32_t>(groups);
    for (int half = 0; half < 2; half++) {
        s.scale[half] = keep ? s.scale[half] : all_of(0);
        s.offset[half] = keep ? s.offset[half] : all_of(0);
    }
    return s;
}

/// Scales and minima of 256 weights as whole numbers: of the eight groups of 32, first of their first halves,
/// then of the second ones (the same numbers again where a group of the type has 32 weights). A weight is d ·
/// scale · (code - zero) - dmin · minimum.
struct WholeScales {
    Shorts16 scale, minimum;
    float d, dmin;
};
inline Shorts16 join(Shorts8 first, Shorts8 second) {
    return __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
inline Shorts8 first_half(Shorts16 v) {
    return __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7);
}
inline Shorts8 second_half(Shorts16 v) {
    return __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
}
inline Floats8 floats_of(Shorts8 v) {
    return __builtin_convertvector(widen_shorts(v), Floats8);
}
/// What a type with whole scales inherits.
template <class Block>
struct WholeScaled {
    static Scales scales(const char* from) {
        const WholeScales w = Block::whole_scales(from);
        const Floats8 d = all_of(w.d), dmin = all_of(-w.dmin);
        return {{d * floats_of(first_half(w.scale)), d * floats_of(second_half(w.scale))},
                {dmin * floats_of(first_half(w.minimum)), dmin * floats_of(second_half(w.minimum))}};
    }
};
template <class Block>
concept has_whole_scales = __is_base_of(WholeScaled<Block>, Block);

/// Whether scale · code is not the weight itself, and what is to be added to it: the offset, or -scale ·
/// zero.
template <class Block>
constexpr bool adds_offset = Block::has_offset || Block::zero != 0;
template <class Block>
LINNET_INLINE Floats8 code_offset(const Scales& s, int half) {
    if constexpr (Block::has_offset) return s.offset[half];
    return s.scale[half] * all_of(-Block::zero);
}

/// The half-precision number at `p`, which may be misaligned.
inline float half_at(const char* p) {
    return static_cast<float>(one_half(get_vector<uint16_t>(p)));
}
/// Eight of them, `stride` bytes apart.
template <int64_t stride>
inline Floats8 halves_at(const char* p) {
#ifdef LINNET_WIDE_BYTES
    if constexpr (picks_shorts<stride>) return widen_halves(pick_shorts<stride>(p));
#endif
    auto half = [p](int i) { return get_vector<uint16_t>(p + i * stride); };
    return widen_halves(Halves8{half(0), half(1), half(2), half(3), half(4), half(5), half(6), half(7)});
}

// Bits of every byte: shifts move 64 bits at a time, and the mask takes away what came over from the
// neighbours.
using Longs4 = uint64_t __attribute__((vector_size(32)));
constexpr uint64_t every_byte = 0x0101010101010101u;

/// Bits of `v` from bit `from` on, moved to bit `to`; `mask` says which of them, where they arrive.
template <int from, int to>
inline Bytes32 bits(Bytes32 v, uint64_t mask) {
    auto wide = reinterpret_cast<Longs4>(v);
    wide = from < to ? wide << (from < to ? to - from : 0) : wide >> (from < to ? 0 : from - to);
    return reinterpret_cast<Bytes32>(wide & mask * every_byte);
}
inline Bytes32 get_32(const Byte* p) {
    return get_vector<Bytes32>(p);
}

/// 32 weights of 4 bits in 16 bytes: the low nibbles are the first 16.
inline Bytes32 nibbles_16(const Byte* p) {
    return reinterpret_cast<Bytes32>(load_twice<Longs4>(p) >> Longs4{0, 0, 4, 4} & 15 * every_byte);
}
/// The nibbles of 32 bytes, low or high.
template <bool high>
inline Bytes32 nibbles_32(const Byte* p) {
    return bits < high ? 4 : 0, 0 > (get_32(p), 15);
}

#ifdef LINNET_WIDE_BYTES
// The same of two groups: each in 16 bytes; the low and the high nibbles of 32.
inline Bytes64 nibbles_of_two_16(const Byte* first, const Byte* second) {
    return and_bytes(shifted_right<0, 4, 0, 4>(twice(first, second)), 15);
}
inline Bytes64 nibbles_of_two_32(const Byte* p) {
    return and_bytes(shifted_right<0, 0, 4, 4>(twice(p)), 15);
}
#endif

/// 32 weights of 5 bits: 16 bytes as above, and four bytes with the fifth bit of weight i at bit i.
inline Bytes32 five_bits_32(const Byte* fifth, const Byte* four) {
    constexpr uint64_t bit_i = 0x8040201008040201u;  // of byte i
    auto all = get_vector<int32_t>(fifth);
    auto four_times = reinterpret_cast<Bytes32>(Ints8{all, all, all, all, all, all, all, all});
    auto spread = reinterpret_cast<Longs4>(
        __builtin_shufflevector(four_times, four_times, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 18,
                                18, 18, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 19));
    auto set = reinterpret_cast<Bytes32>(reinterpret_cast<Bytes32>(spread & bit_i) != 0);
    return nibbles_16(four) | (set & 16);
}

/// Eight scales and eight minima of 6 bits in 12 bytes (q4_k, q5_k), of blocks that begin with d and dmin.
/// Those of groups 0 to 3 are the low bits of bytes 0–3 and 4–7; those of groups 4 to 7 have their low four
/// bits in bytes 8–11 and the high two on top of the others.
inline WholeScales scales_and_minima(const char* from) {
    const char* packed = from + 4;
    auto first = get_vector<uint32_t>(packed), second = get_vector<uint32_t>(packed + 4),
         third = get_vector<uint32_t>(packed + 8);
    constexpr uint32_t low_6 = 0x3F3F3F3F, low_4 = 0x0F0F0F0F, two_on_top = 0x30303030;
    auto both = [](uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; };
    uint64_t scale = both(first & low_6, (third & low_4) | (first >> 2 & two_on_top));
    uint64_t minimum = both(second & low_6, (third >> 4 & low_4) | (second >> 2 & two_on_top));
    Shorts8 scales = widen_bytes8(scale), minima = widen_bytes8(minimum);
    return {join(scales, scales), join(minima, minima), half_at(from), half_at(from + 2)};
}

// The same the other way: from whole numbers to bytes. q + zero is not negative.
template <int n>
inline void pack_nibbles(const Whole* q, int zero, Byte* bytes) {
    for (int i = 0; i < n; i++)
        bytes[i] = static_cast<Byte>(((q[i] + zero) & 15) | ((q[n + i] + zero) & 15) << 4);
}
/// Bit `bit` of q + zero, for weight i at bit i of four bytes.
inline void pack_fifth_32(const Whole* q, int zero, Byte* bytes) {
    for (int i = 0; i < 4; i++) bytes[i] = 0;
    for (int i = 0; i < 32; i++) bytes[i / 8] |= static_cast<Byte>(((q[i] + zero) >> 4 & 1) << i % 8);
}
/// Bits `shift` and `shift` + 1 of q + zero of 128 weights into 32 bytes: two bits of each 32 weights in
/// turn.
inline void pack_pairs_128(const Whole* q, int zero, int shift, Byte* bytes) {
    for (int i = 0; i < 32; i++) {
        int all = 0;
        for (int part = 0; part < 4; part++) all |= ((q[32 * part + i] + zero) >> shift & 3) << 2 * part;
        bytes[i] = static_cast<Byte>(all);
    }
}
inline void pack_six_bits(const int (&scale)[8], const int (&minimum)[8], Byte* p) {
    for (int i = 0; i < 4; i++) {
        p[i] = static_cast<Byte>(scale[i] | scale[i + 4] >> 4 << 6);
        p[i + 4] = static_cast<Byte>(minimum[i] | minimum[i + 4] >> 4 << 6);
        p[i + 8] = static_cast<Byte>((scale[i + 4] & 15) | (minimum[i + 4] & 15) << 4);
    }
}
/// Places in a table of 16, for 32 weights.
inline void pack_table_32(const Whole (&table)[16], const Whole* q, Byte* bytes) {
    Whole places[32] = {};
    for (int i = 0; i < 32; i++)
        while (table[places[i]] != q[i]) places[i]++;
    pack_nibbles<16>(places, 0, bytes);
}

/// The sixteen values of the types iq4: 4 bits of a distribution denser around 0.
alignas(16) constexpr Whole iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                              1,    13,   25,  38,  53,  69,  89,  113};

/// 32 weights whose nibbles are places in a table of 16.
inline Bytes32 table_32(const Whole (&table)[16], const Byte* p) {
    return look_up(get_vector<Bytes16>(table), nibbles_16(p));
}

/// Calls f.operator()<g>() for the eight groups of a run.
template <class F>
LINNET_INLINE void each_group(F f) {
    [&]<int... g>(std::integer_sequence<int, g...>) LINNET_LAMBDA_INLINE {
        (f.template operator()<g>(), ...);
    }
    (std::make_integer_sequence<int, run_length / 32>());
}

/// Bytes of a run of 256 weights.
template <class Block>
constexpr int64_t run_bytes = run_length / Block::elements* Block::bytes;

/// The run at `from`; where only `count` < 256 weights are left of the row, a copy of them, filled up with
/// zeros.
template <class Block>
inline const char* whole_run(const char* from, int64_t count, char (&copy)[run_bytes<Block>]) {
    if (count >= run_length) return from;
    __builtin_memset(copy, 0, sizeof copy);
    __builtin_memcpy(copy, from, static_cast<size_t>(count / Block::elements * Block::bytes));
    return copy;
}

/// `count` weights, a whole number of blocks and at most 256.
template <class Block>
inline void load_run(const char* from, int64_t count, Real* to) {
    char copy[run_bytes<Block>];
    from = whole_run<Block>(from, count, copy);
    const Scales s = Block::scales(from);
    each_group([&]<int g>() {
        if (32 * g >= count) return;
        Whole q[32];
        put_vector(q, Block::template codes<g>(from) - static_cast<Byte>(Block::zero));
        for (int64_t i = 0; i < 32; i += W) {
            constexpr bool halves = Block::group == 16;
            int half = halves && i >= 16;
            Vec w = set1(static_cast<Real>(s.scale[half][g])) * widen_bytes(q + i);
            if constexpr (Block::has_offset) w = w + set1(static_cast<Real>(s.offset[half][g]));
            store(to + 32 * g + i, w);
        }
    });
}

}  // namespace
}  // namespace linnet
