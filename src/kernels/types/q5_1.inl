// q5_1: 32 weights per block, two f16, the scale d and the minimum m, 4 bytes with the fifth bit of weight i
// at bit i, then 16 bytes with the other four, weight i in the low nibble of byte i, weight i + 16 in the
// high one: w = d · q + m.
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

struct BlockQ5_1 {
    static constexpr DType type = DType::q5_1;
    static constexpr int64_t elements = 32, bytes = 24, group = 32;
    static constexpr bool is_signed = false, has_offset = true;
    static constexpr int zero = 0, greatest = 31, halves = 2;

    template <int g>
    static Bytes32 codes(const char* from) {
        return five_bits_32(bytes_at(from, g * bytes + 4), bytes_at(from, g * bytes + 8));
    }
    template <int p>
    static PartCodes codes_of_part(const char* from) {
        return five_bits_of_part<p, bytes>(bytes_at(from, 4), bytes_at(from, 8));
    }
    static Scales scales(const char* from) {
        return {{halves_at<bytes>(from), all_of(0)}, {halves_at<bytes>(from + 2), all_of(0)}};
    }

    using Levels = Steps<0, 31>;
    static void quantize(const Real* x, const Real* importance, char* block) {
        Weights<elements> w(x, importance);
        Whole q[elements];
        Line line = fit_line<Levels, elements, false>(x, w.of);
        line.scale = as_half(line.scale, block), line.offset = as_half(line.offset, block + 2);
        choose<Levels, elements>(x, line.scale, line.offset, q);
        pack_fifth_32(q, 0, bytes_at(block, 4));
        pack_nibbles<16>(q, 0, bytes_at(block, 8));
    }
};

}  // namespace
}  // namespace linnet
