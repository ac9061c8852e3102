// mxfp4: 32 weights per block (Open Compute Project, Microscaling Formats 1.0): one byte e, the scale 2^(e -
// 127), then 16 bytes, weight i in the low nibble of byte i, weight i + 16 in the high one; a nibble is a
// float of 1 sign bit, 2 bits of exponent and 1 of mantissa. Twice that float is whole, so the scale here is
// half the block's.
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

alignas(16) constexpr Whole mxfp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
constexpr Whole mxfp4_sorted[16] = {-12, -8, -6, -4, -3, -2, -1, 0, 1, 2, 3, 4, 6, 8, 12, 12};

struct BlockMXFP4 {
    static constexpr DType type = DType::mxfp4;
    static constexpr int64_t elements = 32, bytes = 17, group = 32;
    static constexpr bool is_signed = true, has_offset = false;
    static constexpr int zero = 0, greatest = 12, halves = 0;

    template <int g>
    static Bytes32 codes(const char* from) {
        return table_32(mxfp4_values, bytes_at(from, g * bytes + 1));
    }
    template <int p>
    static PartCodes codes_of_part(const char* from) {
        return table_of_part<p, bytes>(mxfp4_values, bytes_at(from, 1));
    }
    static Scales scales(const char* from) {
        auto e = [from](int g) { return static_cast<int32_t>(bytes_at(from, g * bytes)[0]); };
        Ints8 exponent = {e(0), e(1), e(2), e(3), e(4), e(5), e(6), e(7)};
        // 2^(e - 128) by its bits; below 2 it is subnormal.
        Ints8 small = exponent < 2;
        Ints8 bits = (small & (0x00200000 << (exponent & 1))) | (~small & ((exponent - 1) << 23));
        return {{reinterpret_cast<Floats8>(bits), all_of(0)}, {all_of(0), all_of(0)}};
    }

    using Levels = Table<mxfp4_sorted, 15>;
    /// The scale is a power of two: those from a quarter to twice the one at which the farthest weight is the
    /// highest level are tried.
    static void quantize(const Real* x, const Real* importance, char* block) {
        Weights<elements> w(x, importance);
        Real extreme = 0;
        for (int64_t i = 0; i < elements; i++) extreme = most_of(extreme, magnitude(x[i]));
        float level = static_cast<float>(extreme) / 12;
        int middle = static_cast<int>(__builtin_bit_cast(uint32_t, level) >> 23) + 1;
        Real error = -1, scale = 0;
        for (int e = middle - 2; e <= middle + 1; e++) {
            if (e < 2 || e > 254) continue;  // below: no reciprocal in f32
            char byte = static_cast<char>(e);
            auto d = static_cast<Real>(__builtin_bit_cast(float, (e - 1) << 23));
            Real here = measure<Levels, elements>(x, w.of, d, 0).error;
            if (error >= 0 && here >= error) continue;
            error = here, scale = d, block[0] = byte;
        }
        Whole q[elements];
        choose<Levels, elements>(x, scale, 0, q);
        pack_table_32(mxfp4_values, q, bytes_at(block, 1));
    }
};

}  // namespace
}  // namespace linnet
