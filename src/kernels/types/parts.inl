// What the block types share. All of them say the same sum: the weights of a block stand in groups, and a
// weight is scale · (code - zero) + offset with the scale and the offset of its group and a small whole
// number, its code. So a type's file says
//     elements, bytes, group    weights and bytes per block, weights per group (16 or 32)
//     is_signed                 whether codes are signed bytes; else they are unsigned
//     zero, has_offset          the code of 0; whether there are offsets
//     greatest                  the greatest magnitude of a code that a block can hold, whoever made it
//     halves                    of blocks of 32: half-precision numbers that a block begins with: its scale,
//                               and where there are 2 its offset; 0: the scale is another number
//     codes<g>(from)            the codes of weights 32g … 32g + 31 of the 256 that begin at `from`
//     scales(from)              the scales and offsets of those 256 weights
// or, where a block of 256 has scales that are whole multiples of one number,
//     whole_scales(from)        those multiples, of which scales(from) follows (WholeScaled)
//     numbers(from)             that number d, and above it dmin, in half precision
//     first_piece, pieces       where the codes are: so many times 32 bytes, which codes<g> asks for by
//                               piece(from, at); `from` is whatever has those
// Where groups have scales of their own, or codes have signs,
//     codes_of_part<p>(from)    the codes in the order of PartCodes
// else, for vectors of 64 bytes (simd/lanes_512.h),
//     apart, codes_of_two<p>(from)  of two groups that lie together, the second one `apart` behind the first
//                               (first_of_two)
//     whole_scales_of_four      whole_scales of four blocks, where that is faster (optional)
//     scales_at, scale_bytes    where 16 bytes with all scales and minima are, and those as bytes, a block in
//                               each lane (blocks/run_columns.inl): word 0 has those of groups 0 to 3, or of
//                               both halves of groups 0 and 1
// and whatever reads blocks follows from it (load_run below, blocks/). Codes stay in registers: as
// bytes in memory, stored in pieces of 16 and loaded in pieces of 32, they waited for the stores and took
// twice the time. Layouts: ggml-common.h (the structs block_*), their meaning: ggml-quants.c
// (dequantize_row_*).
#pragma once
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

/// Scales and minima of 256 weights as whole numbers. A weight is d · scale · (code - zero) - dmin · minimum.
struct WholeScales {
    Shorts16 scale;    // of groups of 16: of the first halves of each 32 weights, then of the second ones; of
                       // groups of 32: their scales, then their minima
    Shorts16 minimum;  // of groups of 16, likewise
    uint32_t numbers;  // d, and above it dmin, in half precision
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
/// Where the groups of a run lie in pairs, the second `apart` behind the first, the first one of pair p.
template <class Block>
constexpr int first_of_two(int p) {
    return p / Block::apart * 2 * Block::apart + p % Block::apart;
}
/// What a type with whole scales inherits.
template <class Block>
struct WholeScaled {
    static Scales scales(const char* from) {
        const WholeScales w = Block::whole_scales(from);
        const auto number = [&w](int at) { return one_half(static_cast<uint16_t>(w.numbers >> at)); };
        const Floats8 d = all_of(number(0)), dmin = all_of(-number(16));
        const Floats8 first = floats_of(first_half(w.scale)), second = floats_of(second_half(w.scale));
        if constexpr (Block::group == 32) return {{d * first, d * first}, {dmin * second, dmin * second}};
        return {{d * first, d * second},
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

/// Calls f.operator()<g>() for the eight groups of a run.
template <class F>
LINNET_INLINE void each_group(F f) {
    each_of<run_length / 32>(f);
}

/// The bits of the half-precision number at `p`, which may be misaligned.
inline uint16_t half_at(const char* p) {
    return get_vector<uint16_t>(p);
}
/// Eight of them, `stride` bytes apart.
template <int64_t stride>
inline Floats8 halves_at(const char* p) {
#ifdef LINNET_WIDE_BYTES
    return widen_halves(pick_shorts<stride>(p));
#else
    auto half = [p](int i) { return half_at(p + i * stride); };
    return widen_halves(Halves8{half(0), half(1), half(2), half(3), half(4), half(5), half(6), half(7)});
#endif
}

// Bits of every byte: shifts move 64 bits at a time, and the mask takes away what came over from the
// neighbours.
constexpr uint64_t every_byte = 0x0101010101010101u;

/// Bits of `v` from bit `from` on, moved to bit `to`; `mask` says which of them, where they arrive.
template <int from, int to, class V>
inline V bits(V v, uint64_t mask) {
    auto wide = longs_of(v);
    wide = from < to ? wide << (from < to ? to - from : 0) : wide >> (from < to ? 0 : from - to);
    return reinterpret_cast<V>(wide & mask * every_byte);
}
template <int down, class V>
inline V bits_down(V v, uint64_t mask) {
    return bits<down, 0>(v, mask);
}
/// 32 bytes of a block.
inline Bytes32 piece(const char* block, int64_t at) {
    return get_vector<Bytes32>(block + at);
}
/// The nibbles of bytes, low or high.
template <bool high, class V>
inline V nibbles(V v) {
    return bits < high ? 4 : 0, 0 > (v, 15);
}

/// 32 weights of 4 bits in 16 bytes: the low nibbles are the first 16.
inline Bytes32 nibbles_16(const Byte* p) {
    return reinterpret_cast<Bytes32>(load_twice<Longs4>(p) >> Longs4{0, 0, 4, 4} & 15 * every_byte);
}
/// 32 weights of 5 bits: 16 bytes as above, and four bytes with the fifth bit of weight i at bit i.
inline Bytes32 five_bits_32(const Byte* fifth, const Byte* four) {
    return add_where(nibbles_16(four), get_vector<uint32_t>(fifth), 16);
}

#ifdef LINNET_WIDE_BYTES
using CodeVector = Bytes64;
#else
using CodeVector = Bytes32;
#endif
/// 16 bytes, as often as fits, `stride` bytes apart.
template <int64_t stride>
inline CodeVector gather_16(const Byte* from) {
    return gather_16<stride>(from, static_cast<CodeVector*>(nullptr));
}
/// A vector holds codes of so many groups beside codes of the fourth group after each.
constexpr int groups_of_vector = sizeof(CodeVector) / 16;
/// The codes of part p of a run: of[k] has codes 8k … 8k + 7 of groups g, g + 4, g + 1, g + 5, …, where g is
/// groups_of_vector · p.
struct PartCodes {
    CodeVector of[4];
};
/// 16 bytes of each group, whose blocks are `stride` bytes apart: the first eight of each, and the others.
template <int p, int64_t stride>
inline Pairs<CodeVector> eights(const Byte* from) {
    from += groups_of_vector * p * stride;
    return by_eights(gather_16<stride>(from), gather_16<stride>(from + 4 * stride));
}
/// Codes of 8 bits.
template <int p, int64_t stride>
inline PartCodes bytes_of_part(const Byte* from) {
    const auto first = eights<p, stride>(from), second = eights<p, stride>(from + 16);
    return {{first.low, first.high, second.low, second.high}};
}
/// nibbles_16 of the groups.
template <int p, int64_t stride>
inline PartCodes nibbles_of_part(const Byte* from) {
    const auto all = eights<p, stride>(from);
    return {{bits_down<0>(all.low, 15), bits_down<0>(all.high, 15), bits_down<4>(all.low, 15),
             bits_down<4>(all.high, 15)}};
}
/// five_bits_32 of the groups.
template <int p, int64_t stride>
inline PartCodes five_bits_of_part(const Byte* fifth, const Byte* four) {
    CodeVector first[2], second[2];  // halves of the codes of groups_of_vector groups
    for (int i = 0; i < 2; i++) {
        const int64_t at = (groups_of_vector * p + 4 * i) * stride;
        uint64_t low = 0, high = 0;
        for (int g = groups_of_vector - 1; g >= 0; g--) {
            low = low << 16 | get_vector<uint16_t>(fifth + at + g * stride);
            high = high << 16 | get_vector<uint16_t>(fifth + at + g * stride + 2);
        }
        const auto all = gather_16<stride>(four + at);
        first[i] = add_where(bits_down<0>(all, 15), low, 16);
        second[i] = add_where(bits_down<4>(all, 15), high, 16);
    }
    const auto a = by_eights(first[0], first[1]), b = by_eights(second[0], second[1]);
    return {{a.low, a.high, b.low, b.high}};
}

/// Eight scales and eight minima of 6 bits in three words of four bytes (q4_k, q5_k): those of groups 0 to 3
/// are the low bits of the first and of the second word; those of groups 4 to 7 have their low four bits in
/// the third one and the high two on top of the others. Here they are bytes of two words each.
template <class Word>
struct SixBits {
    Word scale[2], minimum[2];

    SixBits(Word first, Word second, Word third)
        : scale{first & low_6, (third & low_4) | (first >> 2 & two_on_top)},
          minimum{second & low_6, (third >> 4 & low_4) | (second >> 2 & two_on_top)} {}

  private:
    static constexpr int low_6 = 0x3F3F3F3F, low_4 = 0x0F0F0F0F, two_on_top = 0x30303030;
};
/// What types of a block that begins with d, dmin and those three words inherit.
template <class Block>
struct SixBitScaled : WholeScaled<Block> {
    static uint32_t numbers(const char* from) { return get_vector<uint32_t>(from); }
    static WholeScales whole_scales(const char* from) {
        auto word = [from](int64_t at) { return get_vector<uint32_t>(from + at); };
        auto both = [](const uint32_t(&words)[2]) {
            return widen_bytes8(uint64_t{words[1]} << 32 | words[0]);
        };
        const SixBits<uint32_t> six(word(4), word(8), word(12));
        return {join(both(six.scale), both(six.minimum)), Shorts16{}, numbers(from)};
    }
#ifdef LINNET_WIDE_BYTES
    static void whole_scales_of_four(const char* const (&from)[4], WholeScales (&to)[4]) {
        const Bytes64 all = six_bits(join(from[0], from[1], from[2], from[3]));
        each_of<4>([&]<int i>() LINNET_LAMBDA_INLINE {
            to[i] = {widen_quarter<i>(all), Shorts16{}, numbers(from[i])};
        });
    }
    static constexpr int64_t scales_at = 0;
    static void scale_bytes(const Bytes64 (&packed)[4], Bytes64 (&scale)[4], Bytes64 (&minimum)[4]) {
        auto word = [&packed](int i) { return reinterpret_cast<Ints16>(packed[i]); };
        const SixBits<Ints16> six(word(1), word(2), word(3));
        for (int i = 0; i < 2; i++) {
            scale[i] = reinterpret_cast<Bytes64>(six.scale[i]);
            minimum[i] = reinterpret_cast<Bytes64>(six.minimum[i]);
        }
    }
#endif
};

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

/// table_32 of the groups.
template <int p, int64_t stride>
inline PartCodes table_of_part(const Whole (&table)[16], const Byte* from) {
    PartCodes codes = nibbles_of_part<p, stride>(from);
    for (CodeVector& of : codes.of) of = look_up(get_vector<Bytes16>(table), of);
    return codes;
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
        Vec code[32 / W];
        widen_bytes(Block::template codes<g>(from) - static_cast<Byte>(Block::zero), code);
        for (int64_t i = 0; i < 32; i += W) {
            constexpr bool halves = Block::group == 16;
            int half = halves && i >= 16;
            Vec w = set1(static_cast<Real>(s.scale[half][g])) * code[i / W];
            if constexpr (Block::has_offset) w = w + set1(static_cast<Real>(s.offset[half][g]));
            store(to + 32 * g + i, w);
        }
    });
}

}  // namespace
}  // namespace linnet
