// iq4_xs: 256 weights per block in 8 groups of 32. One f16 scale d; 2 bytes with the high two bits of the
// groups' scales s (bits 2g and 2g + 1), 4 bytes with the low four (the nibbles of byte g / 2); then 16 bytes
// per group, weight i in the low nibble of byte i, weight i + 16 in the high one; a nibble is a place in
// iq4_values: w = d · (s - 32) · iq4_values[nibble].
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

struct BlockIQ4_XS : WholeScaled<BlockIQ4_XS> {
    static constexpr DType type = DType::iq4_xs;
    static constexpr int64_t elements = 256, bytes = 136, group = 32;
    static constexpr bool is_signed = true, has_offset = false;
    static constexpr int zero = 0, greatest = 127, halves = 0;

    template <int g>
    static Bytes32 codes(const char* from) {
        return table_32(iq4_values, bytes_at(from, 8 + 16 * g));
    }
    template <int p>
    static PartCodes codes_of_part(const char* from) {
        return table_of_part<p, 16>(iq4_values, bytes_at(from, 8));
    }
    static WholeScales whole_scales(const char* from) {
        uint64_t low = get_vector<uint32_t>(from + 4), high = get_vector<uint16_t>(from + 2);
        // Nibble g to byte g, and the pair of bits g likewise.
        low = (low | low << 16) & 0x0000FFFF0000FFFFu, low = (low | low << 8) & 0x00FF00FF00FF00FFu;
        low = (low | low << 4) & 15 * every_byte;
        high = (high | high << 24) & 0x000000FF000000FFu, high = (high | high << 12) & 0x000F000F000F000Fu;
        high = (high | high << 6) & 3 * every_byte;
        Shorts8 scales = widen_bytes8(low | high << 4) - 32;
        return {join(scales, Shorts8{}), Shorts16{}, half_at(from)};
    }

    using Levels = Table<iq4_values, 16>;
    static void quantize(const Real* x, const Real* importance, char* block) {
        Weights<elements> w(x, importance);
        Whole q[elements];
        ScaledCodes<8> best;
        fit_scaled<BlockIQ4_XS, Levels>(x, w.of, -32, 31, best, q);
        as_half(best.d, block);
        Byte *high = bytes_at(block, 2), *low = bytes_at(block, 4);
        for (int i = 0; i < 6; i++) high[i] = 0;
        for (int g = 0; g < 8; g++) {
            int s = best.code[g] + 32;
            low[g / 2] |= static_cast<Byte>((s & 15) << 4 * (g % 2));
            high[g / 4] |= static_cast<Byte>(s >> 4 << 2 * (g % 4));
            pack_table_32(iq4_values, q + 32 * g, bytes_at(block, 8 + 16 * g));
        }
    }
};

}  // namespace
}  // namespace linnet
