// Products on matrix units, on machines that have none: the same source over tiles in plain C++, which give
// AMX's bits.
#include <doctest/doctest.h>

#include <cstring>

#include "kernels/kernels.h"

// The plainest primitives, as in isa_scalar.cpp; nothing here passes their vectors to another file.
#pragma GCC diagnostic ignored "-Wpsabi"
#include "kernels/simd/scalar.h"

#include "kernels/tile_panels.inl"

#include "kernel_support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

float bf16(std::uint16_t x) {
    float f;
    std::uint32_t bits = std::uint32_t{x} << 16;
    std::memcpy(&f, &bits, sizeof f);
    return std::fabs(f) < 0x1p-126f ? 0
                                    : f;  // numbers below the normal ones count as 0, on the way in and out
}
float flushed(float x) {
    return std::fabs(x) < 0x1p-126f ? 0 : x;
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

struct TileProduct {
    std::int64_t m, n, k;
    Values<float> a, bias, add;
    std::vector<std::byte> w;
    Gemm<float> g;

    TileProduct(DType type, std::int64_t m_, std::int64_t n_, std::int64_t k_)
        : m(m_), n(n_), k(k_), a(m * (k + 1), 1, 1), bias(n, 2), add(m * n, 3), w(bytes_for(type, n * k)) {
        Values<float> wide(n * k, 4);
        const KernelTable<float>& scalar = **usable_kernels().begin();
        if (info(type).block > 1)
            scalar.quantize(n * k, type, wide.data(), nullptr, w.data());
        else
            scalar.store(n * k, type, wide.data(), w.data());
        g.m = g.m_end = m, g.n = g.n_end = n, g.k = k;
        g.a = {a.data(), DType::f32, k + 1, 1};
        g.b = {w.data(), type, 1, k};
        g.c_row = n;
        g.bias = bias.data(), g.add = add.data(), g.add_row = n;
    }
    static std::size_t bytes_for(DType type, std::int64_t count) {
        return static_cast<std::size_t>(count / info(type).block * info(type).bytes);
    }
    std::vector<double> expected() const {
        std::vector<double> weights(static_cast<std::size_t>(n * k)), out;
        double_kernels().load(n * k, g.b.type, w.data(), weights.data());
        for (std::int64_t i = 0; i < m; i++)
            for (std::int64_t j = 0; j < n; j++) {
                double sum = static_cast<double>(bias[j]) + static_cast<double>(add[i * n + j]);
                for (std::int64_t p = 0; p < k; p++)
                    sum += static_cast<double>(a[i * (k + 1) + p]) *
                           weights[static_cast<std::size_t>(j * k + p)];
                out.push_back(sum);
            }
        return out;
    }
    std::vector<float> run(void (*product)(const Gemm<float>&, void*)) {
        std::vector<float> c(static_cast<std::size_t>(m * n), -1);
        Workspace workspace(sizeof(linnet::TilePanels));
        g.c = c.data();
        product(g, workspace.data());
        return c;
    }
};

double relative_error(const std::vector<float>& c, const std::vector<double>& expected) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < c.size(); i++) {
        double d = static_cast<double>(c[i]) - expected[i];
        error += d * d, size += expected[i] * expected[i];
    }
    return std::sqrt(error / size);
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
            {1, 40, 32}, {17, 33, 96}, {40, 50, 64}, {3, 5, 1056}, {515, 2, 32}};
        for (const auto& shape : shapes) {
            TileProduct product(type.type, shape[0], shape[1],
                                (shape[2] + type.block - 1) / type.block * type.block);
            std::vector<float> c = product.run(linnet::tile_panels<EmulatedTiles>);
            CHECK_MESSAGE(relative_error(c, product.expected()) < allowed, type.name << " K " << product.k);
            for (const KernelTable<float>* table : usable_kernels())
                if (table->block.panels_take_halves)
                    CHECK_MESSAGE(product.run(table->block.panels) == c, table->name << " " << type.name);
        }
    });
}

TEST_CASE("f16 and bf16 weights may have rows of any length in tiles") {
    for (DType type : {DType::f16, DType::bf16})
        for (std::int64_t k : {1, 31, 33, 513}) {
            TileProduct product(type, 5, 3, k);
            CHECK(relative_error(product.run(linnet::tile_panels<EmulatedTiles>), product.expected()) < 2e-5);
        }
}

TEST_CASE("an output of tiles does not depend on the part that is asked for") {
    for (DType type : {DType::f16, DType::q4_k}) {
        TileProduct product(type, 37, 50, 512);
        std::vector<float> whole = product.run(linnet::tile_panels<EmulatedTiles>);
        product.g.m_begin = 3, product.g.m_end = 36, product.g.n_begin = 5, product.g.n_end = 49;
        std::vector<float> part = product.run(linnet::tile_panels<EmulatedTiles>);
        bool same = true;
        for (std::int64_t i = 0; i < 37; i++)
            for (std::int64_t j = 0; j < 50; j++) {
                auto at = static_cast<std::size_t>(i * 50 + j);
                bool asked = i >= 3 && i < 36 && j >= 5 && j < 49;
                same &= part[at] == (asked ? whole[at] : -1);
            }
        CHECK(same);
    }
}
