// iq4_nl: 32 weights per block, one f16 scale d, then 16 bytes, weight i in the low nibble of byte i, weight
// i + 16 in the high one; a nibble is a place in iq4_values: w = d · iq4_values[nibble].
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

struct BlockIQ4_NL {
    static constexpr DType type = DType::iq4_nl;
    static constexpr int64_t elements = 32, bytes = 18, group = 32;
    static constexpr bool is_signed = true, has_offset = false;
    static constexpr int zero = 0, greatest = 127, halves = 1;

    template <int g>
    static Bytes32 codes(const char* from) {
        return table_32(iq4_values, bytes_at(from, g * bytes + 2));
    }
    template <int p>
    static PartCodes codes_of_part(const char* from) {
        return table_of_part<p, bytes>(iq4_values, bytes_at(from, 2));
    }
    static Scales scales(const char* from) {
        return {{halves_at<bytes>(from), all_of(0)}, {all_of(0), all_of(0)}};
    }

    using Levels = Table<iq4_values, 16>;
    static void quantize(const Real* x, const Real* importance, char* block) {
        Whole q[elements];
        fit_block<Levels, elements>(x, importance, block, q);
        pack_table_32(iq4_values, q, bytes_at(block, 2));
    }
};

}  // namespace
}  // namespace linnet
