// q6_k: 256 weights per block in 16 groups of 16. 128 bytes with the low four bits, 64 bytes with the high
// two, 16 signed bytes with the groups' scales s, one f16 scale d: w = d · s · (q - 32). Of a run of 128
// weights, the first 64 are the low nibbles of 64 bytes, the others the high ones; of its 32 bytes of high
// bits, bits 0–1 are the weights 0–31, bits 2–3 the next 32, and so on.
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

struct BlockQ6_K : WholeScaled<BlockQ6_K> {
    static constexpr DType type = DType::q6_k;
    static constexpr int64_t elements = 256, bytes = 210, group = 16;
    static constexpr bool is_signed = false, has_offset = false;
    static constexpr int zero = 32, greatest = 63;
    static constexpr int64_t first_piece = 0, pieces = 6;

    template <int g, class From>
    static auto codes(const From& from) {
        constexpr int part = g % 4;
        const auto two = piece(from, first_piece + 128 + g / 4 * 32);
        return nibbles<part / 2 == 1>(piece(from, first_piece + g / 4 * 64 + part % 2 * 32)) |
               bits<2 * part, 4>(two, 48);
    }
#ifdef LINNET_WIDE_BYTES
    static constexpr int apart = 1;
    template <int p>
    static Bytes64 codes_of_two(const char* from) {
        constexpr int part = 2 * p % 4;  // of the four whose upper two bits share 32 bytes
        const Bytes64 two = rotated_left<4 - 2 * part, 2 - 2 * part>(twice(from + 128 + p / 2 * 32));
        return nibbles<part == 2>(get_vector<Bytes64>(from + first_piece + p / 2 * 64)) |
               bits_down<0>(two, 48);
    }
    static constexpr int64_t scales_at = 192;
    static void scale_bytes(const Bytes64 (&packed)[4], Bytes64 (&scale)[4], Bytes64 (&)[4]) {
        for (int i = 0; i < 4; i++) scale[i] = packed[i];
    }
#endif
    static uint32_t numbers(const char* from) {
        return half_at(from + 208);
    }
    static WholeScales whole_scales(const char* from) {
        auto both = get_vector<Shorts8>(from + 192);
        return {join(both << 8 >> 8, both >> 8), Shorts16{}, numbers(from)};
    }

    using Levels = Steps<-32, 31>;
    static void quantize(const Real* x, const Real* importance, char* block) {
        Weights<elements> w(x, importance);
        Whole q[elements];
        ScaledCodes<16> best;
        fit_scaled<BlockQ6_K, Levels>(x, w.of, -128, 127, best, q);
        for (int run = 0; run < 2; run++) {
            pack_nibbles<64>(q + 128 * run, 32, bytes_at(block, 64 * run));
            pack_pairs_128(q + 128 * run, 32, 4, bytes_at(block, 128 + 32 * run));
        }
        for (int g = 0; g < 16; g++) block[192 + g] = static_cast<char>(best.code[g]);
        as_half(best.d, block + 208);
    }
};

}  // namespace
}  // namespace linnet
