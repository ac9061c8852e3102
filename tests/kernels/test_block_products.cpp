// Products with weights of block types: close to the product of the unpacked weights, the same bits on every
// instruction set, whatever part is asked for and whoever shares the run.
#include <doctest/doctest.h>

#include <string>

#include "kernel_support.h"

using namespace linnet;
using namespace linnet::test;

namespace {

using Product = void (*)(const Gemm<float>&, void*);

/// C [M,N] = bias + add + A [M,K] · Wᵀ, W [N,K] of a block type.
struct BlockProduct {
    std::int64_t m, n, k;
    Values<float> a, bias, add;
    std::vector<std::byte> w;
    Gemm<float> g;

    BlockProduct(const DTypeInfo& type, std::int64_t m_, std::int64_t n_, std::int64_t k_)
        : m(m_),
          n(n_),
          k(k_),
          a(m * (k + 1), 1, 1),
          bias(n, 2),
          add(m * n, 3),
          w(static_cast<std::size_t>(n * k / type.block * type.bytes)) {
        Values<float> wide(n * k, 4);
        for (std::int64_t i = 0; i < n * k; i++)  // a large one per block, and blocks of unequal size
            wide[i] *= (i % 37 == 0 ? 4.0f : 1.0f) * (i / k % 3 == 0 ? 0.1f : 1.0f);
        usable_kernels().begin()[0]->quantize(n * k, type.type, wide.data(), nullptr, w.data());
        g.m = g.m_end = m, g.n = g.n_end = n, g.k = k;
        g.a = {a.data(), DType::f32, k + 1, 1};
        g.b = {w.data(), type.type, 1, k};
        g.c_row = n;
        g.bias = bias.data(), g.add = add.data(), g.add_row = n;
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
    std::vector<float> run(const KernelTable<float>& table, Product product) {
        std::vector<float> c(static_cast<std::size_t>(m * n), -1);
        Workspace workspace(table.gemm_workspace);
        g.c = c.data();
        product(g, workspace.data());
        return c;
    }
};

/// Root mean square of the difference, of that of the expected.
double relative_error(const std::vector<float>& c, const std::vector<double>& expected) {
    double error = 0, size = 0;
    for (std::size_t i = 0; i < c.size(); i++) {
        double d = static_cast<double>(c[i]) - expected[i];
        error += d * d, size += expected[i] * expected[i];
    }
    return std::sqrt(error / size);
}

/// Calls f(type, name, a table's product, largest error) for every type and both products where there are
/// any.
template <class F>
void each_product(F f) {
    for (const DTypeInfo& type : dtypes()) {
        if (type.block == 1 || !type.is_weight) continue;
        f(type, "rows", &BlockProducts<float>::rows, 1e-2);
        f(type, "panels", &BlockProducts<float>::panels, 4e-3);
    }
}

}  // namespace

TEST_CASE("products with block types are close to those of the unpacked weights, alike on all sets") {
    const KernelTable<float>& scalar = *usable_kernels().begin()[0];
    each_product([&](const DTypeInfo& type, const char* name, auto member, double allowed) {
        const std::int64_t shapes[][3] = {{1, 1, 1}, {2, 33, 3}, {7, 17, 8}, {19, 5, 9}, {530, 3, 2}};
        for (const auto& shape : shapes) {
            BlockProduct product(type, shape[0], shape[1], shape[2] * type.block);
            std::vector<double> expected = product.expected();
            std::vector<float> first = product.run(scalar, scalar.block.*member);
            CHECK_MESSAGE(relative_error(first, expected) < allowed,
                          type.name << " " << std::string(name) << " K " << product.k);
            for (const KernelTable<float>* table : usable_kernels()) {
                if (!(table->block.*member)) continue;
                // Matrix units round otherwise: test_tile_panels.cpp.
                if (member == &BlockProducts<float>::panels && table->block.panels_take_halves) continue;
                CHECK_MESSAGE(
                    product.run(*table, table->block.*member) == first,
                    table->name << " " << type.name << " " << std::string(name) << " K " << product.k);
            }
        }
    });
}

TEST_CASE("rows of W read together give the bits of rows read one after another") {
    each_product([&](const DTypeInfo& type, const char* name, auto member, double) {
        if (member != &BlockProducts<float>::rows) return;
        for (const KernelTable<float>* table : usable_kernels()) {
            BlockProduct product(type, 1, 23, 3 * type.block);
            product.g.n_begin = 2;
            std::vector<float> one = product.run(*table, table->block.*member);
            product.g.streams = 4;
            CHECK_MESSAGE(product.run(*table, table->block.*member) == one,
                          table->name << " " << type.name << " " << std::string(name));
        }
    });
}

TEST_CASE("an output of a product with a block type does not depend on the part that is asked for") {
    each_product([&](const DTypeInfo& type, const char* name, auto member, double) {
        for (const KernelTable<float>* table : usable_kernels()) {
            if (!(table->block.*member)) continue;
            BlockProduct product(type, 21, 40, 2 * type.block);
            std::vector<float> whole = product.run(*table, table->block.*member);
            product.g.m_begin = 3, product.g.m_end = 20, product.g.n_begin = 5, product.g.n_end = 39;
            std::vector<float> part = product.run(*table, table->block.*member);
            bool same = true;
            for (std::int64_t i = 0; i < 21; i++)
                for (std::int64_t j = 0; j < 40; j++) {
                    auto at = static_cast<std::size_t>(i * 40 + j);
                    bool asked = i >= 3 && i < 20 && j >= 5 && j < 39;
                    same &= part[at] == (asked ? whole[at] : -1);
                }
            CHECK_MESSAGE(same, table->name << " " << type.name << " " << std::string(name));
        }
    });
}

TEST_CASE("an activation that is not finite spoils its row and no other") {
    each_product([&](const DTypeInfo& type, const char* name, auto member, double) {
        for (const KernelTable<float>* table : usable_kernels()) {
            if (!(table->block.*member)) continue;
            for (float bad : {NAN, INFINITY}) {
                BlockProduct product(type, 3, 4, type.block);
                product.a[(product.k + 1) + 5] = bad;
                std::vector<float> c = product.run(*table, table->block.*member);
                for (std::size_t i = 0; i < c.size(); i++)
                    CHECK_MESSAGE(std::isfinite(c[i]) == (i / 4 != 1),
                                  table->name << " " << type.name << " " << std::string(name));
            }
        }
    });
}
