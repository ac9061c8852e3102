// q5_k: 256 weights per block in 8 groups of 32. Two f16, d and dmin; 12 bytes with the groups' scales s and
// minima m of 6 bits (SixBits); 32 bytes, bit g of which is the fifth bit of the weights of group
// g; 128 bytes with the other four, of each 32 of which the low nibbles are one group and the high ones the
// next: w = d · s · q - dmin · m.
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

struct BlockQ5_K : SixBitScaled<BlockQ5_K> {
    static constexpr DType type = DType::q5_k;
    static constexpr int64_t elements = 256, bytes = 176, group = 32;
    static constexpr bool is_signed = false, has_offset = true;
    static constexpr int zero = 0, greatest = 31;
    static constexpr int64_t first_piece = 16, pieces = 5;

    template <int g, class From>
    static auto codes(const From& from) {
        const auto fifth = piece(from, first_piece);
        return nibbles<g % 2 == 1>(piece(from, first_piece + 32 + g / 2 * 32)) | bits<g, 4>(fifth, 16);
    }
#ifdef LINNET_WIDE_BYTES
    static constexpr int apart = 2;
    template <int p>
    static Bytes64 codes_of_two(const char* from) {
        constexpr int g = first_of_two<BlockQ5_K>(p);
        const Bytes64 fifth = rotated_left<4 - g, 2 - g>(twice(from + first_piece));
        return nibbles<p % 2 == 1>(get_vector<Bytes64>(from + first_piece + 32 + p / 2 * 64)) |
               bits_down<0>(fifth, 16);
    }
#endif

    using Levels = Steps<0, 31>;
    static void quantize(const Real* x, const Real* importance, char* block) {
        Weights<elements> w(x, importance);
        Whole q[elements];
        LineCodes<8> best;
        fit_lines<BlockQ5_K, Levels>(x, w.of, 63, best, q);
        as_half(best.d, block);
        as_half(best.dmin, block + 2);
        pack_six_bits(best.s, best.m, bytes_at(block, 4));
        Byte* fifth = bytes_at(block, 16);
        for (int i = 0; i < 32; i++) {
            fifth[i] = 0;
            for (int g = 0; g < 8; g++) fifth[i] |= static_cast<Byte>(q[32 * g + i] >> 4 << g);
        }
        for (int pair = 0; pair < 4; pair++)
            pack_nibbles<32>(q + 64 * pair, 0, bytes_at(block, 48 + 32 * pair));
    }
};

}  // namespace
}  // namespace linnet
