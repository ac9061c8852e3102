// q5_0: 32 weights per block, one f16 scale d, 4 bytes with the fifth bit of weight i at bit i, then 16 bytes
// with the other four, weight i in the low nibble of byte i, weight i + 16 in the high one: w = d · (q - 16).
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

struct BlockQ5_0 {
    static constexpr DType type = DType::q5_0;
    static constexpr int64_t elements = 32, bytes = 22, group = 32;
    static constexpr bool is_signed = false, has_offset = false;
    static constexpr int zero = 16, greatest = 31, halves = 1;

    template <int g>
    static Bytes32 codes(const char* from) {
        return five_bits_32(bytes_at(from, g * bytes + 2), bytes_at(from, g * bytes + 6));
    }
    template <int p>
    static PartCodes codes_of_part(const char* from) {
        return five_bits_of_part<p, bytes>(bytes_at(from, 2), bytes_at(from, 6));
    }
    static Scales scales(const char* from) {
        return {{halves_at<bytes>(from), all_of(0)}, {all_of(0), all_of(0)}};
    }

    using Levels = Steps<-16, 15>;
    static void quantize(const Real* x, const Real* importance, char* block) {
        Whole q[elements];
        fit_block<Levels, elements>(x, importance, block, q);
        pack_fifth_32(q, 16, bytes_at(block, 2));
        pack_nibbles<16>(q, 16, bytes_at(block, 6));
    }
};

}  // namespace
}  // namespace linnet
