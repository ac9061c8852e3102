// What the block types share. All of them say the same sum: the weights of a block stand in groups, and
// weight i of group g is scale[g] · q[i] + offset[g] with a small whole number q. So a type's file says
//     elements, bytes, group       weights and bytes per block, weights per group
//     has_offset                   whether there is an offset
//     whole(block, q)              q[elements], in the order of the weights
//     scales(block, scale, offset) [elements / group] each; offset is left alone where there is none
// and load_block follows from it. The loops are short, of fixed length and over bytes, so that compilers make
// vectors of them. Layouts: ggml-common.h (the structs block_*), their meaning: ggml-quants.c
// (dequantize_row_*).
#pragma once
#include "kernels/common.inl"

namespace linnet {
namespace {

using Byte = unsigned char;
using Whole = signed char;  // q: every type's fits into a byte

inline const Byte* bytes_at(const char* block, int64_t offset) {
    return reinterpret_cast<const Byte*>(block + offset);
}

/// The half-precision number at `p`, which may be misaligned.
inline Real half_at(const char* p) {
    uint16_t half;
    __builtin_memcpy(&half, p, sizeof half);
    return one_half(half);
}

/// 16 bytes as one vector of any instruction set (GCC's and Clang's extension): left to themselves compilers
/// unroll loops over 16 bytes into single ones.
using Bytes16 = Byte __attribute__((vector_size(16)));
using Longs2 = uint64_t __attribute__((vector_size(16)));

inline Bytes16 get_16(const Byte* p) {
    Bytes16 v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
inline void put_16(Whole* p, Bytes16 v) {
    __builtin_memcpy(p, &v, sizeof v);
}

/// 2n weights of 4 bits in n bytes: the low nibbles are the first n; less `zero`.
template <int n>
inline void nibbles(const Byte* bytes, Byte zero, Whole* q) {
    for (int i = 0; i < n; i += 16) {
        Bytes16 v = get_16(bytes + i);
        put_16(q + i, (v & 15) - zero);
        put_16(q + n + i, (v >> 4) - zero);
    }
}

/// 32 weights of 5 bits: 16 bytes as above, and four bytes with the fifth bit of weight i at bit i.
inline void five_bits_32(const Byte* fifth, const Byte* bytes, Byte zero, Whole* q) {
    constexpr uint64_t every_byte = 0x0101010101010101u, byte_i_bit_i = 0x8040201008040201u;
    auto sixteen = [&](const Byte* two) {
        auto spread = Longs2{two[0] * every_byte, two[1] * every_byte} & byte_i_bit_i;
        return reinterpret_cast<Bytes16>(reinterpret_cast<Bytes16>(spread) != 0) & 16;
    };
    Bytes16 v = get_16(bytes);
    put_16(q, ((v & 15) | sixteen(fifth)) - zero);
    put_16(q + 16, ((v >> 4) | sixteen(fifth + 2)) - zero);
}

/// Eight scales and eight minima of 6 bits in 12 bytes (q4_k, q5_k). Those of groups 0 to 3 are the low bits
/// of bytes 0–3 and 4–7; those of groups 4 to 7 have their low four bits in bytes 8–11 and the high two on
/// top of the others.
inline void six_bits(const Byte* p, Byte (&scale)[8], Byte (&minimum)[8]) {
    for (int i = 0; i < 4; i++) {
        scale[i] = p[i] & 63;
        minimum[i] = p[i + 4] & 63;
        scale[i + 4] = static_cast<Byte>((p[i + 8] & 15) | p[i] >> 6 << 4);
        minimum[i + 4] = static_cast<Byte>(p[i + 8] >> 4 | p[i + 4] >> 6 << 4);
    }
}

inline void scales_and_minima(Real d, Real dmin, const Byte* packed, Real* scale, Real* offset) {
    Byte s[8], m[8];
    six_bits(packed, s, m);
    for (int g = 0; g < 8; g++) {
        scale[g] = d * static_cast<Real>(s[g]);
        offset[g] = -(dmin * static_cast<Real>(m[g]));
    }
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
inline void table_32(const Whole (&table)[16], const Byte* bytes, Whole* q) {
    Whole places[32];
    nibbles<16>(bytes, 0, places);
    look_up_16(table, reinterpret_cast<const Byte*>(places), q);
    look_up_16(table, reinterpret_cast<const Byte*>(places) + 16, q + 16);
}

inline Byte* bytes_at(char* block, int64_t offset) {
    return reinterpret_cast<Byte*>(block + offset);
}

template <class Block>
inline void load_block(const char* block, Real* to) {
    constexpr int64_t group = Block::group, groups = Block::elements / group;
    Whole q[Block::elements];
    Real scale[groups], offset[groups];
    Block::whole(block, q);
    Block::scales(block, scale, offset);
    for (int64_t g = 0; g < groups; g++) {
        for (int64_t i = g * group; i < (g + 1) * group; i += W) {
            Vec w = set1(scale[g]) * widen_bytes(q + i);
            if constexpr (Block::has_offset) w = w + set1(offset[g]);
            store(to + i, w);
        }
    }
}

}  // namespace
}  // namespace linnet
