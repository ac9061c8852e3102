// A product with stored weights, at awkward places, and what it should be.
#pragma once
#include <utility>

#include "kernel_support.h"

namespace linnet::test {

/// C [M,N] = bias + add + A [M,K] · Wᵀ, W [N,K] of a type that weights are stored in.
struct WeightProduct {
    std::int64_t m, n, k;
    Values<float> a, bias, add;
    std::vector<std::byte> w;
    Gemm<float> g;

    WeightProduct(DType type, std::int64_t m_, std::int64_t n_, std::int64_t k_)
        : m(m_),
          n(n_),
          k(k_),
          a(m * (k + 1), 1, 1),
          bias(n, 2),
          add(m * n, 3),
          w(static_cast<std::size_t>(stored_bytes(type, n * k))) {
        for (std::int64_t i = 0; i < m; i++) a[i * (k + 1) + k] = NAN;  // between rows: nobody's
        Values<float> wide(n * k, 4);
        for (std::int64_t i = 0; i < n * k; i++)  // a large one per block, and blocks of unequal size
            wide[i] *= (i % 37 == 0 ? 4.0f : 1.0f) * (i / k % 3 == 0 ? 0.1f : 1.0f);
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
    WeightProduct(const WeightProduct&) = delete;  // g points into it
    /// What is not asked for stays -1.
    std::vector<float> run(void (*product)(const Gemm<float>&, void*), std::size_t workspace_bytes) {
        std::vector<float> c(static_cast<std::size_t>(m * n), -1);
        Workspace workspace(workspace_bytes);
        g.c = c.data();
        product(g, workspace.data());
        return c;
    }
};

/// Whether run(product) gives a part of C, rows [begin, end), the bits that it has in the whole, and leaves
/// the rest alone.
template <class Run>
bool same_in_part(WeightProduct&& product, Run run, std::int64_t begin, std::int64_t end) {
    const std::vector<float> whole = run(product);
    product.g.m_begin = begin, product.g.m_end = end;
    product.g.n_begin = 5, product.g.n_end = product.n - 1;
    const std::vector<float> part = run(product);
    bool same = true;
    for (std::int64_t i = 0; i < product.m; i++)
        for (std::int64_t j = 0; j < product.n; j++) {
            const auto at = static_cast<std::size_t>(i * product.n + j);
            const bool asked = i >= begin && i < end && j >= 5 && j < product.g.n_end;
            same &= part[at] == (asked ? whole[at] : -1);
        }
    return same;
}
template <class Run>
bool same_in_part(WeightProduct&& product, Run run) {
    const std::int64_t end = product.m - 1;
    return same_in_part(std::move(product), run, 3, end);
}

}  // namespace linnet::test
