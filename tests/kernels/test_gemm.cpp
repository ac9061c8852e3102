#include <doctest/doctest.h>

#include <algorithm>

#include "kernel_support.h"
#include "kernels/kernels.h"

using namespace linnet;
using namespace linnet::test;

namespace {

enum class Start { none, accumulate, bias, add, all };

/// A product over random operands: A stored [M,K] or [K,M], B stored [N,K] or [K,N], in any type.
template <class Real>
struct Product {
    std::int64_t m, n, k;
    Values<Real> a, b, c, bias, add;
    Values<std::uint16_t> a16, b16;
    Gemm<Real> g;

    Product(std::int64_t m_, std::int64_t n_, std::int64_t k_, bool a_transposed, bool b_transposed,
            DType a_type, DType b_type, Start start, int misaligned = 0)
        : m(m_),
          n(n_),
          k(k_),
          a(m * (k + 3) + (m + 3) * k, 1, misaligned),
          b(n * (k + 3) + (n + 3) * k, 2, misaligned),
          c(m * (n + 1), 3, misaligned),
          bias(n, 4, misaligned),
          add(m * (n + 2), 5, misaligned),
          a16(a.size(), 0, misaligned),
          b16(b.size(), 0, misaligned) {
        g.m = g.m_end = m, g.n = g.n_end = n, g.k = k;
        g.a = operand(a, a16, a_type);
        g.b = operand(b, b16, b_type);
        if (a_transposed)
            g.a.row = 1, g.a.col = m + 3;
        else
            g.a.row = k + 3;
        if (b_transposed)
            g.b.row = 1, g.b.col = k + 3;
        else
            g.b.row = n + 3;
        g.c = c.data(), g.c_row = n + 1;
        bool all = start == Start::all;
        g.accumulate = all || start == Start::accumulate;
        if (all || start == Start::bias) g.bias = bias.data();
        if (all || start == Start::add) g.add = add.data(), g.add_row = n + 2;
    }
    static Operand operand(Values<Real>& full, Values<std::uint16_t>& half, DType type) {
        for (std::int64_t i = 0; i < full.size() && type != DType::f32; i++) {
            float x = static_cast<float>(full[i]);
            half[i] = type == DType::f16 ? f32_to_f16(x) : f32_to_bf16(x);
            full[i] = type == DType::f16 ? f16_to_f32(half[i]) : bf16_to_f32(half[i]);
        }
        if (type == DType::f32) return {full.data(), sizeof(Real) == 8 ? DType::f64 : DType::f32, 0, 1};
        return {half.data(), type, 0, 1};
    }
    std::vector<double> expected() const {
        std::vector<double> out(static_cast<std::size_t>(m * (n + 1)));
        for (std::int64_t i = 0; i < m; i++) {
            for (std::int64_t j = 0; j < n; j++) {
                double sum = g.accumulate ? static_cast<double>(c[i * (n + 1) + j]) : 0;
                if (g.bias) sum += static_cast<double>(bias[j]);
                if (g.add) sum += static_cast<double>(add[i * (n + 2) + j]);
                for (std::int64_t p = 0; p < k; p++) {
                    sum += static_cast<double>(a[i * g.a.row + p * g.a.col]) *
                           static_cast<double>(b[p * g.b.row + j * g.b.col]);
                }
                out[static_cast<std::size_t>(i * (n + 1) + j)] = sum;
            }
            out[static_cast<std::size_t>(i * (n + 1) + n)] =
                static_cast<double>(c[i * (n + 1) + n]);  // untouched
        }
        return out;
    }
};

template <class Real>
double error_of(const KernelTable<Real>& table, Product<Real>& p, bool gemv = false) {
    std::vector<double> expected = p.expected();
    Workspace workspace(table.gemm_workspace);
    if (gemv)
        table.gemv(p.g);
    else
        table.gemm(p.g, workspace.data());
    return distance(p.c, expected, p.m * (p.n + 1)) / std::sqrt(static_cast<double>(p.k + 1));
}

constexpr DType weight_types[] = {DType::f32, DType::f16, DType::bf16};

}  // namespace

TEST_CASE("gemm agrees with a naive product in double: sizes, both transposes, every type and start") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        auto check = [&](std::int64_t m, std::int64_t n, std::int64_t k, int variant) {
            DType types[] = {DType::f32, DType::f32, DType::f16, DType::bf16};
            Product<Real> p(m, n, k, variant & 1, variant & 2, types[variant / 4 % 4],
                            types[variant / 16 % 4], static_cast<Start>(variant % 5), variant % 3);
            INFO(table.name << " m " << m << " n " << n << " k " << k << " variant " << variant);
            CHECK(error_of(table, p) < tolerance<Real>(1e-6, 1e-15));
        };
        int variant = 0;
        for (std::int64_t m : {1, 2, 3, 5, 7, 13, 14, 15, 29}) {
            for (std::int64_t n : {1, 2, 7, 8, 15, 16, 17, 31, 33, 65}) {
                for (std::int64_t k : {1, 3, 16, 37}) check(m, n, k, variant++);
            }
        }
        for (int v = 0; v < 64; v++) check(31, 47, 67, v);
        for (int v = 0; v < 4; v++) check(33, 70, 1000, v);   // several blocks of K
        for (int v = 0; v < 4; v++) check(300, 1100, 40, v);  // several blocks of M and N
        check(4, 5, 0, 4);                                    // nothing to sum: the start alone
        check(0, 5, 3, 0);
        check(5, 0, 3, 0);
    });
}

TEST_CASE("gemm with strides in both directions") {
    for (const KernelTable<float>* table : whole_tables()) {
        Values<float> a(40 * 50 * 2, 1), b(50 * 60 * 3, 2), c(40 * 60);
        Gemm<float> g;
        g.m = g.m_end = 20, g.n = g.n_end = 19, g.k = 21;
        g.a = {a.data(), DType::f32, 100, 2}, g.b = {b.data(), DType::f32, 3, 180};
        g.c = c.data(), g.c_row = 60;
        Workspace workspace(table->gemm_workspace);
        table->gemm(g, workspace.data());
        double worst = 0;
        for (int i = 0; i < 20; i++) {
            for (int j = 0; j < 19; j++) {
                double sum = 0;
                for (int p = 0; p < 21; p++)
                    sum += static_cast<double>(a[i * 100 + p * 2]) * static_cast<double>(b[p * 3 + j * 180]);
                worst = std::max(worst, std::abs(sum - static_cast<double>(c[i * 60 + j])));
            }
        }
        CHECK(worst < 1e-5);
    }
}

TEST_CASE("gemm gives an output the same bits whatever part is asked for") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        for (int variant = 0; variant < 4; variant++) {
            Product<Real> whole(61, 300, 801, variant & 1, variant & 2, DType::f32, DType::f32, Start::all,
                                variant);
            Product<Real> parts = whole;
            parts.g.c = parts.c.data();  // its own output, the same inputs
            Workspace workspace(table.gemm_workspace);
            table.gemm(whole.g, workspace.data());
            for (std::int64_t m0 = 0; m0 < 61; m0 += 9) {
                for (std::int64_t n0 = 0; n0 < 300; n0 += 23) {
                    Gemm<Real> g = parts.g;
                    g.m_begin = m0, g.m_end = std::min<std::int64_t>(m0 + 9, 61);
                    g.n_begin = n0, g.n_end = std::min<std::int64_t>(n0 + 23, 300);
                    table.gemm(g, workspace.data());
                }
            }
            INFO(table.name);
            CHECK(same_bits(whole.c, parts.c, whole.c.size()));
        }
    });
}

TEST_CASE("gemm_share covers every output once, for any number of threads") {
    for (const KernelTable<float>* table : whole_tables()) {
        for (const ProductCut& cut : {gemm_cut(*table), table->narrow.cut, table->block.panel_cut}) {
            if (cut.tile_m == 0) continue;  // this set has none of its own
            for (auto [m, n] : {std::pair{1, 1}, {768, 512}, {3, 5000}, {5000, 3}, {100, 100}, {0, 7}}) {
                for (int count : {1, 2, 3, 4, 6, 7, 16}) {
                    std::vector<int> seen(static_cast<std::size_t>(m * n));
                    Gemm<float> g;
                    g.m = g.m_end = m, g.n = g.n_end = n;
                    for (int i = 0; i < count; i++) {
                        Gemm<float> part = gemm_share(cut, g, i, count);
                        for (std::int64_t r = part.m_begin; r < part.m_end; r++) {
                            for (std::int64_t c = part.n_begin; c < part.n_end; c++)
                                seen[static_cast<std::size_t>(r * n + c)]++;
                        }
                    }
                    CHECK(std::count(seen.begin(), seen.end(), 1) == m * n);
                }
            }
        }
    }
}

TEST_CASE("gemm_share divides rows where that packs less of A and no more of B, and else columns") {
    const ProductCut cut = {.tile_m = 32, .tile_n = 32, .packing_a = 240, .packing_b = 80, .block_m = 256};
    Gemm<float> g;
    g.m = g.m_end = 512, g.n = g.n_end = 4096;
    CHECK(gemm_share(cut, g, 1, 2).m_begin == 256);
    g.m = g.m_end = 256;
    CHECK(gemm_share(cut, g, 1, 2).n_begin == 2048);
}

TEST_CASE("gemv agrees with a naive product, and a row's bits do not depend on what is read beside it") {
    each_table([]<class Real>(const KernelTable<Real>& table) {
        int variant = 0;
        for (DType type : weight_types) {
            for (std::int64_t m : {1, 2, 3, 4, 7, 8, 9, 17}) {
                for (auto [n, k] :
                     {std::pair<std::int64_t, std::int64_t>{1, 1}, {7, 5}, {33, 64}, {19, 131}}) {
                    Product<Real> p(m, n, k, false, true, DType::f32, type, static_cast<Start>(variant % 5),
                                    variant % 3);
                    variant++;
                    Product<Real> alone = p, together = p;
                    INFO(table.name << " m " << m << " n " << p.n << " k " << p.k);
                    CHECK(error_of(table, p, true) < tolerance<Real>(1e-6, 1e-15));
                    Gemm<Real> four = p.g;
                    four.c = together.c.data(), four.streams = 4;
                    table.gemv(four);
                    CHECK(same_bits(p.c, together.c, p.c.size()));
                    for (std::int64_t i = 0; i < m; i++) {
                        for (std::int64_t j = 0; j < n; j += 3) {
                            Gemm<Real> g = p.g;
                            g.c = alone.c.data();
                            g.m_begin = i, g.m_end = i + 1, g.n_begin = j, g.n_end = std::min(j + 3, n);
                            table.gemv(g);
                        }
                    }
                    CHECK(same_bits(p.c, alone.c, p.c.size()));
                }
            }
        }
    });
}
