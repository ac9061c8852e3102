// Products on matrix units, on machines that have none: the same source over tiles in plain C++, which give
// AMX's bits.
#include <doctest/doctest.h>

#include <cstring>

#include "kernels/kernels.h"

// The plainest primitives, as in isa_scalar.cpp.
#include "kernels/simd/scalar.h"

#include "kernels/tile_panels.inl"

#include "weight_product.h"

using namespace linnet;
using namespace linnet::test;

namespace {

/// Numbers below the normal ones count as 0, on the way in and out.
float flushed(float x) {
    return std::fabs(x) < 0x1p-126f ? 0 : x;
}
float bf16(std::uint16_t x) {
    float f;
    std::uint32_t bits = std::uint32_t{x} << 16;
    std::memcpy(&f, &bits, sizeof f);
    return flushed(f);
}

/// TDPBF16PS as measured: each sum gets the chain over even k plus the chain over odd k, both from 0. A
/// product of two bf16 has 16 bits, so that a·b + c has one rounding, like an fma's.
struct EmulatedTiles {
    static inline unsigned char tile[8][16][64];
    static inline bool configured = false;

    static void begin() { configured = true; }
    static void end() { configured = false; }
    template <int t>
    static void clear() {
        std::memset(tile[t], 0, sizeof tile[t]);
    }
    template <int t>
    static void load(const void* from, std::int64_t stride) {
        REQUIRE(configured);
        for (int r = 0; r < 16; r++) std::memcpy(tile[t][r], static_cast<const char*>(from) + r * stride, 64);
    }
    template <int t>
    static void store(void* to, std::int64_t stride) {
        for (int r = 0; r < 16; r++) std::memcpy(static_cast<char*>(to) + r * stride, tile[t][r], 64);
    }
    template <int c, int a, int b>
    static void multiply() {
        for (int r = 0; r < 16; r++) {
            std::uint16_t x[32];
            std::memcpy(x, tile[a][r], sizeof x);
            float sums[16];
            std::memcpy(sums, tile[c][r], sizeof sums);
            for (int j = 0; j < 16; j++) {
                float chain[2] = {0, 0};
                for (int p = 0; p < 16; p++) {
                    std::uint16_t y[2];
                    std::memcpy(y, tile[b][p] + 4 * j, sizeof y);
                    for (int i = 0; i < 2; i++)
                        chain[i] = flushed(chain[i] + bf16(x[2 * p + i]) * bf16(y[i]));
                }
                sums[j] = flushed(sums[j] + flushed(chain[0] + chain[1]));
            }
            std::memcpy(tile[c][r], sums, sizeof sums);
        }
    }
};

using Product = void (*)(const Gemm<float>&, void*);

std::vector<float> run(WeightProduct& product, Product of = linnet::tile_panels<EmulatedTiles>) {
    return product.run(of, sizeof(linnet::TilePanels));
}

/// Calls f(type, largest error) for every type that panels on matrix units take.
template <class F>
void each_tile_type(F f) {
    for (const DTypeInfo& type : dtypes()) {
        if (type.type == DType::f16 || type.type == DType::bf16)
            f(type, 2e-5);
        else if (type.block > 1 && type.is_weight)
            f(type, 4e-3);
    }
}

}  // namespace

TEST_CASE("tiles give the product of the stored weights, and the machine's own the same bits") {
    each_tile_type([](const DTypeInfo& type, double allowed) {
        const std::int64_t shapes[][3] = {
            {1, 40, 32}, {17, 33, 96}, {40, 50, 64}, {19, 37, 1056}, {515, 2, 32}};
        for (const auto& shape : shapes) {
            WeightProduct product(type.type, shape[0], shape[1],
                                  (shape[2] + type.block - 1) / type.block * type.block);
            std::vector<float> c = run(product);
            CHECK_MESSAGE(relative_error(c, product.expected()) < allowed, type.name << " K " << product.k);
            for (const KernelTable<float>* table : usable_kernels())
                if (table->block.panels_take_halves())
                    CHECK_MESSAGE(run(product, table->block.panels) == c, table->name << " " << type.name);
        }
    });
}

TEST_CASE("f16 and bf16 weights may have rows of any length in tiles") {
    for (DType type : {DType::f16, DType::bf16})
        for (std::int64_t k : {1, 31, 33, 513}) {
            WeightProduct product(type, 5, 3, k);
            CHECK(relative_error(run(product), product.expected()) < 2e-5);
        }
}

TEST_CASE("an output of tiles does not depend on the part that is asked for") {
    for (DType type : {DType::f16, DType::q4_k})
        CHECK(same_in_part({type, 37, 50, 512}, [](WeightProduct& product) { return run(product); }));
}
