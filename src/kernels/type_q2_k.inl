// q2_k: 256 weights per block in 16 groups of 16. 16 bytes, a group's scale s in the low nibble and its
// minimum m in the high one; 64 bytes with 2 bits per weight; then two f16, d and dmin: w = d · s · q - dmin
// · m. Of each 32 of those bytes, bits 0–1 are the weights 0–31 of a run of 128, bits 2–3 the next 32, and so
// on.
#pragma once
#include "kernels/block_fit.inl"

namespace linnet {
namespace {

struct BlockQ2_K {
    static constexpr DType type = DType::q2_k;
    static constexpr int64_t elements = 256, bytes = 84, group = 16;
    static constexpr bool has_offset = true;

    static void whole(const char* block, Whole* q) {
        const Byte* two = bytes_at(block, 16);
        for (int run = 0; run < 2; run++)
            for (int part = 0; part < 4; part++)
                for (int i = 0; i < 32; i++)
                    q[128 * run + 32 * part + i] = static_cast<Whole>(two[32 * run + i] >> 2 * part & 3);
    }
    static void scales(const char* block, Real* scale, Real* offset) {
        const Byte* packed = bytes_at(block, 0);
        Real d = half_at(block + 80), dmin = half_at(block + 82);
        for (int g = 0; g < 16; g++) {
            scale[g] = d * static_cast<Real>(packed[g] & 15);
            offset[g] = -(dmin * static_cast<Real>(packed[g] >> 4));
        }
    }

    using Levels = Steps<0, 3>;
    static void quantize(const Real* x, const Real* importance, char* block) {
        Weights<elements, Missing::magnitude> w(x, importance);
        Whole q[elements];
        LineCodes<16> best;
        fit_lines<BlockQ2_K, Levels>(x, w.of, 15, best, q);
        for (int g = 0; g < 16; g++) bytes_at(block, 0)[g] = static_cast<Byte>(best.s[g] | best.m[g] << 4);
        for (int run = 0; run < 2; run++) pack_pairs_128(q + 128 * run, 0, 0, bytes_at(block, 16 + 32 * run));
        as_half(best.d, block + 80);
        as_half(best.dmin, block + 82);
    }
};

}  // namespace
}  // namespace linnet
