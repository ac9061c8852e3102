// q8_0: 32 weights per block, one f16 scale d, then 32 signed bytes: w = d · q.
#pragma once
#include "kernels/types/fit.inl"

namespace linnet {
namespace {

struct BlockQ8_0 {
    static constexpr DType type = DType::q8_0;
    static constexpr int64_t elements = 32, bytes = 34, group = 32;
    static constexpr bool is_signed = true, has_offset = false;
    static constexpr int zero = 0, greatest = 128, halves = 1;

    template <int g>
    static Bytes32 codes(const char* from) {
        return piece(from, g * bytes + 2);
    }
    template <int p>
    static PartCodes codes_of_part(const char* from) {
        return bytes_of_part<p, bytes>(bytes_at(from, 2));
    }
    static Scales scales(const char* from) {
        return {{halves_at<bytes>(from), all_of(0)}, {all_of(0), all_of(0)}};
    }

    using Levels = Steps<-127, 127>;
    /// Without importances as llama.cpp does it, to the bit: halves are rounded away from 0. (Keys and values
    /// come here as they are.)
    static void quantize(const Real* x, const Real* importance, char* block) {
        if (importance) {
            Whole q[elements];
            fit_block<Levels, elements>(x, importance, block, q);
            for (int64_t i = 0; i < elements; i++) block[2 + i] = static_cast<char>(q[i]);
            return;
        }
        if (!all_finite<elements>(x)) return spoil_block<bytes>(block);
        Real extreme = 0;
        for (int64_t i = 0; i < elements; i++) extreme = most_of(extreme, magnitude(x[i]));
        Real d = extreme / 127, inverse = inverse_of(d);
        as_half(d, block);
        for (int64_t i = 0; i < elements; i++) {
            Real v = x[i] * inverse, whole = static_cast<Real>(static_cast<int>(v)), rest = v - whole;
            int step = rest >= Real(0.5) ? 1 : rest <= Real(-0.5) ? -1 : 0;
            block[2 + i] = static_cast<char>(static_cast<int>(whole) + step);
        }
    }
};

}  // namespace
}  // namespace linnet
