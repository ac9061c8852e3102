// q4_1: 32 weights per block, two f16, the scale d and the minimum m, then 16 bytes, weight i in the low
// nibble of byte i, weight i + 16 in the high one: w = d · q + m.
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

struct BlockQ4_1 {
    static constexpr DType type = DType::q4_1;
    static constexpr int64_t elements = 32, bytes = 20, group = 32;
    static constexpr bool is_signed = false, has_offset = true;
    static constexpr int zero = 0, greatest = 15, halves = 2;

    template <int g>
    static Bytes32 codes(const char* from) {
        return nibbles_16(bytes_at(from, g * bytes + 4));
    }
    template <int p>
    static PartCodes codes_of_part(const char* from) {
        return nibbles_of_part<p, bytes>(bytes_at(from, 4));
    }
    static Scales scales(const char* from) {
        return {{halves_at<bytes>(from), all_of(0)}, {halves_at<bytes>(from + 2), all_of(0)}};
    }

    using Levels = Steps<0, 15>;
    static void quantize(const Real* x, const Real* importance, char* block) {
        Weights<elements> w(x, importance);
        Whole q[elements];
        Line line = fit_line<Levels, elements, false>(x, w.of);
        line.scale = as_half(line.scale, block), line.offset = as_half(line.offset, block + 2);
        choose<Levels, elements>(x, line.scale, line.offset, q);
        pack_nibbles<16>(q, 0, bytes_at(block, 4));
    }
};

}  // namespace
}  // namespace linnet
