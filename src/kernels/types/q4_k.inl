// q4_k: 256 weights per block in 8 groups of 32. Two f16, d and dmin; 12 bytes with the groups' scales s and
// minima m of 6 bits (SixBits); 128 bytes, of each 32 of which the low nibbles are one group and
// the high ones the next: w = d · s · q - dmin · m.
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

struct BlockQ4_K : SixBitScaled<BlockQ4_K> {
    static constexpr DType type = DType::q4_k;
    static constexpr int64_t elements = 256, bytes = 144, group = 32;
    static constexpr bool is_signed = false, has_offset = true;
    static constexpr int zero = 0, greatest = 15;
    static constexpr int64_t first_piece = 16, pieces = 4;

    template <int g, class From>
    static auto codes(const From& from) {
        return nibbles<g % 2 == 1>(piece(from, first_piece + g / 2 * 32));
    }
#ifdef LINNET_WIDE_BYTES
    static constexpr int apart = 2;
    template <int p>
    static Bytes64 codes_of_two(const char* from) {
        return nibbles<p % 2 == 1>(get_vector<Bytes64>(from + first_piece + p / 2 * 64));
    }
#endif

    using Levels = Steps<0, 15>;
    static void quantize(const Real* x, const Real* importance, char* block) {
        Weights<elements> w(x, importance);
        Whole q[elements];
        LineCodes<8> best;
        fit_lines<BlockQ4_K, Levels>(x, w.of, 63, best, q);
        as_half(best.d, block);
        as_half(best.dmin, block + 2);
        pack_six_bits(best.s, best.m, bytes_at(block, 4));
        for (int pair = 0; pair < 4; pair++)
            pack_nibbles<32>(q + 64 * pair, 0, bytes_at(block, 16 + 32 * pair));
    }
};

}  // namespace
}  // namespace linnet
