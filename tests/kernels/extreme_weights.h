// Blocks whose stored bits are the farthest from 0 that their type can hold, for products whose sums must not
// overflow.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "weight_product.h"

namespace linnet::test {

/// How such blocks of a type are made.
struct Extremes {
    DType type;
    int ones[2];                      // where halves stand, which become 1; -1: none
    int scales_begin, scales_end;     // bytes of the groups' scales
    unsigned char scale[2], code[2];  // what those are filled with, and the rest
};
constexpr Extremes extremes[] = {
    {DType::q4_0, {0, -1}, 0, 0, {}, {0x00, 0xFF}},
    {DType::q4_1, {0, 2}, 0, 0, {}, {0x00, 0xFF}},
    {DType::q5_0, {0, -1}, 0, 0, {}, {0x00, 0xFF}},
    {DType::q5_1, {0, 2}, 0, 0, {}, {0x00, 0xFF}},
    {DType::q8_0, {0, -1}, 0, 0, {}, {0x80, 0x7F}},
    {DType::q2_k, {80, 82}, 0, 16, {0x0F, 0xFF}, {0x00, 0xFF}},  // without and with minima
    {DType::q3_k, {108, -1}, 96, 108, {0x00, 0xFF}, {0x00, 0xFF}},
    {DType::q4_k, {0, 2}, 4, 16, {0xFF, 0xFF}, {0x00, 0xFF}},
    {DType::q5_k, {0, 2}, 4, 16, {0xFF, 0xFF}, {0x00, 0xFF}},
    {DType::q6_k, {208, -1}, 192, 208, {0x80, 0x7F}, {0x00, 0xFF}},
    {DType::iq4_nl, {0, -1}, 0, 0, {}, {0x00, 0xFF}},
    {DType::iq4_xs, {0, -1}, 2, 8, {0x00, 0xFF}, {0x00, 0xFF}},
    {DType::mxfp4, {-1, -1}, 0, 1, {128, 128}, {0x77, 0xFF}},
    {DType::tq2_0, {64, -1}, 0, 0, {}, {0x00, 0xFF}},
};

/// Fills blocks of the type: the rest with code(i) at byte i.
template <class Code>
void fill(const Extremes& e, int scale, Code code, std::vector<std::byte>& blocks) {
    const auto bytes = static_cast<std::size_t>(info(e.type).bytes);
    for (std::size_t i = 0; i < blocks.size(); i++) {
        const auto at = static_cast<int>(i % bytes);
        const bool scales = at >= e.scales_begin && at < e.scales_end;
        blocks[i] = scales ? std::byte{e.scale[scale]} : std::byte{code(i)};
        for (int one : e.ones)
            if (one >= 0 && (at == one || at == one + 1)) blocks[i] = std::byte(at == one ? 0x00 : 0x3C);
    }
}

/// Calls f(type, its extremes) for every type of weights that is stored in blocks.
template <class F>
void each_extreme_type(F f) {
    for (const DTypeInfo& type : dtypes()) {
        if (type.block == 1 || !type.is_weight) continue;
        const auto* found = std::find_if(std::begin(extremes), std::end(extremes),
                                         [&](const Extremes& e) { return e.type == type.type; });
        REQUIRE_MESSAGE(found != std::end(extremes), type.name);
        f(type, *found);
    }
}

/// Calls check(product, what it is) for products of such weights with activations that all become 127, or
/// -127.
template <class Check>
void each_extreme_product(Check check) {
    each_extreme_type([&](const DTypeInfo& type, const Extremes& e) {
        for (std::int64_t k : {std::int64_t{512}, type.block == 256 ? std::int64_t{256} : std::int64_t{288}})
            for (std::int64_t rows : {1, 13}) {
                WeightProduct product(type.type, rows, 17, k);
                for (int all = 0; all < 8; all++) {
                    const int scale = all & 1, code = all >> 1 & 1, sign = all >> 2;
                    fill(
                        e, scale, [&](std::size_t) { return e.code[code]; }, product.w);
                    for (std::int64_t i = 0; i < rows * (k + 1); i++)
                        product.a[i] = i % (k + 1) == k ? NAN : sign ? -1.0f : 1.0f;
                    check(product, std::string(type.name) + " K " + std::to_string(k) + " rows " +
                                       std::to_string(rows) + " scale " + std::to_string(scale) + " code " +
                                       std::to_string(code) + (sign ? " negative" : " positive"));
                }
            }
    });
}

}  // namespace linnet::test
