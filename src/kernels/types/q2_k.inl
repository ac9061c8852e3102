// q2_k: 256 weights per block in 16 groups of 16. 16 bytes, a group's scale s in the low nibble and its
// minimum m in the high one; 64 bytes with 2 bits per weight; then two f16, d and dmin: w = d · s · q - dmin
// · m. Of each 32 of those bytes, bits 0–1 are the weights 0–31 of a run of 128, bits 2–3 the next 32, and so
// on.
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

struct BlockQ2_K : WholeScaled<BlockQ2_K> {
    static constexpr DType type = DType::q2_k;
    static constexpr int64_t elements = 256, bytes = 84, group = 16;
    static constexpr bool is_signed = false, has_offset = true;
    static constexpr int zero = 0, greatest = 3;
    static constexpr int64_t first_piece = 16, pieces = 2;

    template <int g, class From>
    static auto codes(const From& from) {
        return bits<g % 4 * 2, 0>(piece(from, first_piece + g / 4 * 32), 3);
    }
#ifdef LINNET_WIDE_BYTES
    static constexpr int apart = 4;
    template <int p>
    static Bytes64 codes_of_two(const char* from) {
        return bits_down<2 * p>(get_vector<Bytes64>(from + first_piece), 3);
    }
    static constexpr int64_t scales_at = 0;
    static void scale_bytes(const Bytes64 (&packed)[4], Bytes64 (&scale)[4], Bytes64 (&minimum)[4]) {
        for (int i = 0; i < 4; i++)
            scale[i] = nibbles<false>(packed[i]), minimum[i] = nibbles<true>(packed[i]);
    }
#endif
    static uint32_t numbers(const char* from) {
        return get_vector<uint32_t>(from + 80);
    }
    static WholeScales whole_scales(const char* from) {
        auto packed = get_vector<Halves8>(from);
        auto shorts = [](Halves8 v) { return reinterpret_cast<Shorts8>(v); };
        return {join(shorts(packed & 15), shorts(packed >> 8 & 15)),
                join(shorts(packed >> 4 & 15), shorts(packed >> 12)), numbers(from)};
    }

    using Levels = Steps<0, 3>;
    static void quantize(const Real* x, const Real* importance, char* block) {
        Weights<elements> w(x, importance, Lean::steep);
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
