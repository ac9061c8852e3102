// q6_k: 256 weights per block in 16 groups of 16. 128 bytes with the low four bits, 64 bytes with the high
// two, 16 signed bytes with the groups' scales s, one f16 scale d: w = d · s · (q - 32). Of a run of 128
// weights, the first 64 are the low nibbles of 64 bytes, the others the high ones; of its 32 bytes of high
// bits, bits 0–1 are the weights 0–31, bits 2–3 the next 32, and so on.
#pragma once
#include "kernels/block_fit.inl"

namespace linnet {
namespace {

struct BlockQ6_K {
    static constexpr DType type = DType::q6_k;
    static constexpr int64_t elements = 256, bytes = 210, group = 16;
    static constexpr bool has_offset = false;

    static void whole(const char* block, Whole* q) {
        const Byte *four = bytes_at(block, 0), *two = bytes_at(block, 128);
        for (int run = 0; run < 2; run++) {
            nibbles<64>(four + 64 * run, 32, q + 128 * run);
            for (int part = 0; part < 4; part++)
                for (int i = 0; i < 32; i++) {
                    Whole& to = q[128 * run + 32 * part + i];
                    to = static_cast<Whole>(to + (two[32 * run + i] >> 2 * part & 3) * 16);
                }
        }
    }
    static void scales(const char* block, Real* scale, Real*) {
        const auto* s = reinterpret_cast<const Whole*>(block + 192);
        Real d = half_at(block + 208);
        for (int g = 0; g < 16; g++) scale[g] = d * static_cast<Real>(s[g]);
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
