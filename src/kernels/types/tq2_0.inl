// tq2_0: 256 weights of -1, 0 or 1 per block, for models trained to have them (Ma et al. 2024, "The era of
// 1-bit LLMs"): 64 bytes with 2 bits per weight, then one f16 scale d: w = d · (q - 1). Bits lie as in q2_k.
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

struct BlockTQ2_0 : WholeScaled<BlockTQ2_0> {
    static constexpr DType type = DType::tq2_0;
    static constexpr int64_t elements = 256, bytes = 66, group = 32;
    static constexpr bool is_signed = false, has_offset = false;
    static constexpr int zero = 1, greatest = 3;
    static constexpr int64_t first_piece = 0, pieces = 2;

    template <int g, class From>
    static auto codes(const From& from) {
        return bits<g % 4 * 2, 0>(piece(from, first_piece + g / 4 * 32), 3);
    }
#ifdef LINNET_WIDE_BYTES
    static constexpr int apart = 4;
    template <int p>
    static Bytes64 codes_of_two(const char* from) {
        return bits_down<2 * p>(get_vector<Bytes64>(from), 3);
    }
    static constexpr int64_t scales_at = 0;  // there are none
    static void scale_bytes(const Bytes64 (&)[4], Bytes64 (&scale)[4], Bytes64 (&)[4]) {
        for (Bytes64& of : scale) of = Bytes64{} + 1;
    }
#endif
    static uint32_t numbers(const char* from) {
        return half_at(from + 64);
    }
    static WholeScales whole_scales(const char* from) {
        return {Shorts16{} + 1, Shorts16{}, numbers(from)};
    }

    using Levels = Steps<-1, 1>;
    static void quantize(const Real* x, const Real* importance, char* block) {
        Whole q[elements];
        fit_block<Levels, elements>(x, importance, block + 64, q);
        for (int run = 0; run < 2; run++) pack_pairs_128(q + 128 * run, 1, 0, bytes_at(block, 32 * run));
    }
};

}  // namespace
}  // namespace linnet
