// q3_k: 256 weights per block in 16 groups of 16. 32 bytes with the third bit, 64 bytes with the low two, 12
// bytes with the groups' scales s of 6 bits, one f16 scale d: w = d · (s - 32) · (q - 4). Of each 32 of the
// 64 bytes, bits 0–1 are the weights 0–31 of a run of 128, bits 2–3 the next 32, and so on; bit j of the
// first 32 bytes belongs to the j-th 32 weights of the block. Scales: the low four bits of groups 0–7 and
// 8–15 are the nibbles of bytes 0–7, the high two of groups g, g + 4, g + 8, g + 12 the bit pairs of byte 8 +
// g.
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

struct BlockQ3_K : WholeScaled<BlockQ3_K> {
    static constexpr DType type = DType::q3_k;
    static constexpr int64_t elements = 256, bytes = 110, group = 16;
    static constexpr bool is_signed = false, has_offset = false;
    static constexpr int zero = 4, greatest = 7;
    static constexpr int64_t first_piece = 0, pieces = 3;

    template <int g, class From>
    static auto codes(const From& from) {
        const auto two = piece(from, first_piece + 32 + g / 4 * 32), third = piece(from, first_piece);
        return bits<g % 4 * 2, 0>(two, 3) | bits<g, 2>(third, 4);
    }
#ifdef LINNET_WIDE_BYTES
    static constexpr int apart = 4;
    template <int p>
    static Bytes64 codes_of_two(const char* from) {
        const Bytes64 third = rotated_left<2 - p, -2 - p>(twice(from));
        return bits_down<2 * p>(get_vector<Bytes64>(from + 32), 3) | bits_down<0>(third, 4);
    }
    static constexpr int64_t scales_at = 92;  // and four bytes before them
    static void scale_bytes(const Bytes64 (&packed)[4], Bytes64 (&scale)[4], Bytes64 (&)[4]) {
        each_of<4>([&]<int i>() LINNET_LAMBDA_INLINE {
            scale[i] = (nibbles<i / 2 == 1>(packed[1 + i % 2]) | bits<2 * i, 4>(packed[3], 48)) - 32;
        });
    }
#endif
    static uint32_t numbers(const char* from) {
        return half_at(from + 108);
    }
    static WholeScales whole_scales(const char* from) {
        auto low = get_vector<uint64_t>(from + 96);
        uint64_t high = get_vector<uint32_t>(from + 104);
        constexpr uint64_t nibble = 15 * every_byte, pair = 3 * every_byte;
        using Words = uint64_t __attribute__((vector_size(16)));
        Words six = {(low & nibble) | ((high | high >> 2 << 32) & pair) << 4,
                     (low >> 4 & nibble) | ((high >> 4 | high >> 6 << 32) & pair) << 4};
        auto packed = reinterpret_cast<Shorts8>(six);
        return {join((packed & 63) - 32, (packed >> 8) - 32), Shorts16{}, numbers(from)};
    }

    using Levels = Steps<-4, 3>;
    static void quantize(const Real* x, const Real* importance, char* block) {
        Weights<elements> w(x, importance, Lean::steep);
        Whole q[elements];
        ScaledCodes<16> best;
        fit_scaled<BlockQ3_K, Levels>(x, w.of, -32, 31, best, q);
        Byte *third = bytes_at(block, 0), *packed = bytes_at(block, 96);
        for (int i = 0; i < 32; i++) {
            third[i] = 0;
            for (int part = 0; part < 8; part++)
                third[i] |= static_cast<Byte>((q[32 * part + i] + 4) >> 2 << part);
        }
        for (int run = 0; run < 2; run++) pack_pairs_128(q + 128 * run, 4, 0, bytes_at(block, 32 + 32 * run));
        for (int i = 0; i < 12; i++) packed[i] = 0;
        for (int g = 0; g < 16; g++) {
            int s = best.code[g] + 32;
            packed[g % 8] |= static_cast<Byte>((s & 15) << 4 * (g / 8));
            packed[8 + g % 4] |= static_cast<Byte>(s >> 4 << 2 * (g / 4));
        }
        as_half(best.d, block + 108);
    }
};

}  // namespace
}  // namespace linnet
