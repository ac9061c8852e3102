// Products of training in bf16: every set that has them gives the bits of its instruction as it is
// documented, in plain C++, and nearly the product of the rounded operands.
#include <doctest/doctest.h>

#include "kernels/kernels.h"

// The plainest primitives, as in isa_scalar.cpp.
#include "kernels/simd/scalar.h"

#include "kernels/bf16/dot_products.inl"
#include "kernels/bf16/tile_products.inl"

#include "emulated_dots.h"
#include "emulated_tiles.h"
#include "kernel_support.h"
#include "support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

using Product = void (*)(const Gemm<float>&, void*);

/// The three products of a linear layer: y = x · Wᵀ, dx = dy · W, dW = dyᵀ · x.
enum class Kind { forward, input, weight };
constexpr Kind kinds[] = {Kind::forward, Kind::input, Kind::weight};

/// C [M,N], operands in the layout of `kind`, stored as `type`, with columns that are nobody's behind the
/// rows.
struct Case {
    std::int64_t m, n, k;
    Values<float> a, b, bias, add, start;
    std::vector<std::uint16_t> halves[2];
    Gemm<float> g;

    Case(Kind kind, DType type, std::int64_t m_, std::int64_t n_, std::int64_t k_)
        : m(m_),
          n(n_),
          k(k_),
          a((m + 1) * (k + 1), 1, 1),
          b((n + 1) * (k + 1), 2),
          bias(n, 3),
          add(m * n, 4),
          start(m * n, 5) {
        g.m = g.m_end = m, g.n = g.n_end = n, g.k = k;
        g.a = {a.data(), DType::f32, k + 1, 1};
        g.b = {b.data(), DType::f32, 1, k + 1};
        if (kind != Kind::forward) g.b.row = n + 1, g.b.col = 1;
        if (kind == Kind::weight) g.a.row = 1, g.a.col = m + 1;
        nobodys(g.a, a, m, k), nobodys(Operand{g.b.data, g.b.type, g.b.col, g.b.row}, b, n, k);
        if (type == DType::bf16) narrow(g.a, a, 0), narrow(g.b, b, 1);
        g.c_row = n;
        g.bias = bias.data(), g.add = add.data(), g.add_row = n, g.accumulate = true;
    }
    Case(const Case&) = delete;

    static void nobodys(const Operand& o, const Values<float>& v, std::int64_t lines, std::int64_t depth) {
        const std::int64_t ends = o.col == 1 ? lines : depth, at = o.col == 1 ? depth : lines;
        for (std::int64_t r = 0; r < ends; r++) v[r * (at + 1) + at] = NAN;
    }
    void narrow(Operand& o, const Values<float>& v, std::size_t i) {
        halves[i].resize(static_cast<std::size_t>(v.size()));
        (*usable_kernels().begin())->store(v.size(), DType::bf16, v.data(), halves[i].data());
        o.data = halves[i].data(), o.type = DType::bf16;
    }

    std::vector<float> run(Product product, std::size_t workspace_bytes) {
        std::vector<float> c(start.data(), start.data() + m * n);
        Workspace workspace(workspace_bytes);
        g.c = c.data();
        product(g, workspace.data());
        return c;
    }
    /// Element (line, p) of an operand, rounded to bf16 (of split products: not).
    static double element(const Operand& o, std::int64_t i, std::int64_t p, bool exact) {
        const std::int64_t at = i * o.row + p * o.col;
        float x = o.type == DType::bf16 ? bf16(static_cast<const std::uint16_t*>(o.data)[at])
                                        : static_cast<const float*>(o.data)[at];
        return static_cast<double>(exact ? x : bf16(f32_to_bf16(x)));
    }
    std::vector<double> expected(bool exact) const {
        std::vector<double> out;
        const Operand turned{g.b.data, g.b.type, g.b.col, g.b.row};
        for (std::int64_t i = 0; i < m; i++)
            for (std::int64_t j = 0; j < n; j++) {
                double sum = static_cast<double>(start[i * n + j]) + static_cast<double>(bias[j]) +
                             static_cast<double>(add[i * n + j]);
                for (std::int64_t p = 0; p < k; p++)
                    sum += element(g.a, i, p, exact) * element(turned, j, p, exact);
                out.push_back(sum);
            }
        return out;
    }
};

struct Kernel {
    const char* name;
    bool split;
    Product product;
    std::size_t workspace;
    bool tiles;  // sums in the order of tiles
};

/// The emulated ones first, then those of every table that this machine runs.
std::vector<Kernel> all_kernels() {
    constexpr std::size_t bytes = sizeof(linnet::BF16Panels);
    std::vector<Kernel> all = {
        {"tiles", false, linnet::bf16_product<TileProduct<EmulatedTiles, false>>, bytes, true},
        {"tiles", true, linnet::bf16_product<TileProduct<EmulatedTiles, true>>, bytes, true},
        {"dots", false, linnet::bf16_product<DotProduct<EmulatedDots>>, bytes, false}};
    for (const KernelTable<float>* table : usable_kernels()) {
        const NarrowProducts<float>& own = table->narrow;
        if (own.rounded && (all.empty() || all.back().product != own.rounded))
            all.push_back({table->name, false, own.rounded, own.workspace, own.split != nullptr});
        if (own.split) all.push_back({table->name, true, own.split, own.workspace, true});
    }
    return all;
}

constexpr std::int64_t shapes[][3] = {{5, 7, 0},    {1, 1, 1},    {5, 3, 31},   {16, 33, 64}, {17, 16, 33},
                                      {40, 70, 95}, {33, 2, 130}, {2, 49, 260}, {65, 31, 32}};

}  // namespace

TEST_CASE("products in bf16 are those of the rounded operands, in every layout") {
    for (const Kernel& kernel : all_kernels())
        for (Kind kind : kinds)
            for (DType type : {DType::f32, DType::bf16})
                for (const auto& shape : shapes) {
                    Case c(kind, type, shape[0], shape[1], shape[2]);
                    CAPTURE(kernel.name);
                    CAPTURE(kernel.split);
                    CAPTURE(shape[2]);
                    CHECK(relative_error(c.run(kernel.product, kernel.workspace),
                                         c.expected(kernel.split || type == DType::bf16)) <
                          (kernel.split ? 1e-5 : 1e-6));
                }
}

TEST_CASE(
    "products in bf16 whose panels are more than the workspace holds at a time are those of the operands") {
    const std::int64_t larger[][3] = {{35, 1100, 1024}, {8200, 3, 512}, {3, 8200, 512}};
    for (const Kernel& kernel : all_kernels())
        for (const auto& shape : larger) {
            Case c(Kind::forward, DType::f32, shape[0], shape[1], shape[2]);
            CAPTURE(kernel.name);
            CAPTURE(kernel.split);
            CAPTURE(shape[0]);
            CHECK(relative_error(c.run(kernel.product, kernel.workspace), c.expected(kernel.split)) <
                  (kernel.split ? 1e-5 : 2e-6));
        }
}

TEST_CASE("the machine's matrix units give the emulation's bits, K cut in pieces too") {
    const std::vector<Kernel> all = all_kernels();
    const std::int64_t longer[][3] = {{130, 3, 4100}, {3, 40, 2050}};
    int compared = 0;
    for (const Kernel& kernel : all) {
        if (!kernel.tiles || kernel.product == all[kernel.split].product) continue;
        compared++;
        const Kernel& twin = all[kernel.split];
        auto same = [&](const auto& shape, Kind kind, DType type) {
            Case c(kind, type, shape[0], shape[1], shape[2]);
            return c.run(kernel.product, kernel.workspace) == c.run(twin.product, twin.workspace);
        };
        for (Kind kind : kinds) {
            for (const auto& shape : shapes)
                for (DType type : {DType::f32, DType::bf16}) CHECK(same(shape, kind, type));
            for (const auto& shape : longer) CHECK(same(shape, kind, DType::f32));
        }
    }
    if (compared == 0) skip("needs matrix units (AMX)");
}

TEST_CASE("the machine's dot products of pairs give the emulation's bits, K cut in pieces too") {
    const std::vector<Kernel> all = all_kernels();
    const Kernel& twin = all[2];
    const std::int64_t longer[][3] = {{30, 3, 1100}, {3, 40, 2050}};
    int compared = 0;
    for (const Kernel& kernel : all) {
        if (kernel.tiles || kernel.product == twin.product) continue;
        compared++;
        for (Kind kind : kinds)
            for (DType type : {DType::f32, DType::bf16}) {
                auto same = [&](const auto& shape) {
                    Case c(kind, type, shape[0], shape[1], shape[2]);
                    return c.run(kernel.product, kernel.workspace) == c.run(twin.product, twin.workspace);
                };
                for (const auto& shape : shapes) CHECK(same(shape));
                for (const auto& shape : longer) CHECK(same(shape));
            }
    }
    if (compared == 0) skip("needs dot products of bf16 pairs (AVX512-BF16)");
}

TEST_CASE("C of products in bf16 may be bf16: the same sums, rounded once") {
    for (const Kernel& kernel : all_kernels()) {
        if (kernel.split) continue;
        for (const auto& shape : shapes) {
            Case c(kinds[0], DType::f32, shape[0], shape[1], shape[2]);
            c.g.accumulate = false;
            for (const float* add : {static_cast<const float*>(nullptr), c.g.add}) {
                c.g.add = add, c.g.bf16 = nullptr;
                const std::vector<float> wide = c.run(kernel.product, kernel.workspace);
                std::vector<std::uint16_t> expected(wide.size()), made(wide.size() + 1, 0xABCD);
                (*usable_kernels().begin())
                    ->store(static_cast<std::int64_t>(wide.size()), DType::bf16, wide.data(),
                            expected.data());
                expected.push_back(0xABCD);  // nothing is written behind the last
                c.g.bf16 = made.data();
                c.run(kernel.product, kernel.workspace);
                CAPTURE(kernel.name);
                CAPTURE(shape[1]);
                CHECK(made == expected);
            }
        }
    }
}

TEST_CASE("an output of products in bf16 does not depend on the part that is asked for") {
    for (const Kernel& kernel : all_kernels())
        for (Kind kind : kinds) {
            Case c(kind, DType::f32, 70, 90, 70);
            const std::vector<float> whole = c.run(kernel.product, kernel.workspace);
            c.g.m_begin = 3, c.g.m_end = 69, c.g.n_begin = 17, c.g.n_end = 88;
            const std::vector<float> part = c.run(kernel.product, kernel.workspace);
            bool same = true;
            for (std::int64_t i = 0; i < 70; i++)
                for (std::int64_t j = 0; j < 90; j++) {
                    const bool asked = i >= 3 && i < 69 && j >= 17 && j < 88;
                    const auto at = static_cast<std::size_t>(i * 90 + j);
                    same &= part[at] == (asked ? whole[at] : c.start[i * 90 + j]);
                }
            CHECK(same);
        }
}
