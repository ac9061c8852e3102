// q3_k: 256 weights per block in 16 groups of 16. 32 bytes with the third bit, 64 bytes with the low two, 12
// bytes with the groups' scales s of 6 bits, one f16 scale d: w = d · (s - 32) · (q - 4). Of each 32 of the
// 64 bytes, bits 0–1 are the weights 0–31 of a run of 128, bits 2–3 the next 32, and so on; bit j of the
// first 32 bytes belongs to the j-th 32 weights of the block. Scales: the low four bits of groups 0–7 and
// 8–15 are the nibbles of bytes 0–7, the high two of groups g, g + 4, g + 8, g + 12 the bit pairs of byte 8 +
// g.
#pragma once
#include "kernels/block_fit.inl"

namespace linnet {
namespace {

struct BlockQ3_K {
    static constexpr DType type = DType::q3_k;
    static constexpr int64_t elements = 256, bytes = 110, group = 16;
    static constexpr bool has_offset = false;

    static void whole(const char* block, Whole* q) {
        const Byte *third = bytes_at(block, 0), *two = bytes_at(block, 32);
        for (int run = 0; run < 2; run++)
            for (int part = 0; part < 4; part++)
                for (int i = 0; i < 32; i++) {
                    int low = two[32 * run + i] >> 2 * part & 3, high = third[i] >> (4 * run + part) & 1;
                    q[128 * run + 32 * part + i] = static_cast<Whole>(low + 4 * high - 4);
                }
    }
    static void scales(const char* block, Real* scale, Real*) {
        const Byte* packed = bytes_at(block, 96);
        Real d = half_at(block + 108);
        for (int g = 0; g < 16; g++) {
            int low = g < 8 ? packed[g] & 15 : packed[g - 8] >> 4,
                high = packed[8 + g % 4] >> 2 * (g / 4) & 3;
            scale[g] = d * static_cast<Real>(low + 16 * high - 32);
        }
    }

    using Levels = Steps<-4, 3>;
    static void quantize(const Real* x, const Real* importance, char* block) {
        Weights<elements, Missing::magnitude> w(x, importance);
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
