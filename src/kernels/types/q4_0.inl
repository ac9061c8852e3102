// q4_0: 32 weights per block, one f16 scale d, then 16 bytes, weight i in the low nibble of byte i, weight i
// + 16 in the high one: w = d · (q - 8).
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

struct BlockQ4_0 {
    static constexpr DType type = DType::q4_0;
    static constexpr int64_t elements = 32, bytes = 18, group = 32;
    static constexpr bool is_signed = false, has_offset = false;
    static constexpr int zero = 8, greatest = 15, halves = 1;

    template <int g>
    static Bytes32 codes(const char* from) {
        return nibbles_16(bytes_at(from, g * bytes + 2));
    }
    template <int p>
    static PartCodes codes_of_part(const char* from) {
        return nibbles_of_part<p, bytes>(bytes_at(from, 2));
    }
    static Scales scales(const char* from) {
        return {{halves_at<bytes>(from), all_of(0)}, {all_of(0), all_of(0)}};
    }

    using Levels = Steps<-8, 7>;
    /// Without importances as llama.cpp does it, to the bit: the weight farthest from 0 becomes -8.
    static void quantize(const Real* x, const Real* importance, char* block) {
        Whole q[elements];
        if (importance) {
            fit_block<Levels, elements>(x, importance, block, q);
        } else {
            Real extreme = 0;
            for (int64_t i = 0; i < elements; i++)
                if (magnitude(x[i]) > magnitude(extreme)) extreme = x[i];
            Real d = extreme / -8, inverse = inverse_of(d);
            as_half(d, block);
            for (int64_t i = 0; i < elements; i++) {
                Real level = x[i] * inverse + Real(8.5);
                level = level < 15 ? level : 15;  // of infinities, too, of which it is NaN
                q[i] = static_cast<Whole>(static_cast<int>(level) - 8);
            }
        }
        pack_nibbles<16>(q, 8, bytes_at(block, 2));
    }
};

}  // namespace
}  // namespace linnet
