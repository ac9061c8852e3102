// AdamW (Loshchilov & Hutter 2019): m ← β1·m + (1-β1)·g, v ← β2·v + (1-β2)·g²,
// p ← p - lr · (m̂ / (√v̂ + ε) + decay · p) with m̂ = m / (1-β1ᵗ), v̂ = v / (1-β2ᵗ).
#pragma once
#include "kernels/kernels.h"
#include "kernels/simd/common.inl"

namespace linnet {
namespace {

void adamw(int64_t n, const AdamW<Real>& o, const Real* g, Real* p, Real* m, Real* v) {
    Vec lr = set1(o.lr), beta1 = set1(o.beta1), beta2 = set1(o.beta2), epsilon = set1(o.epsilon);
    Vec rest1 = set1(1 - o.beta1), rest2 = set1(1 - o.beta2), factor = set1(o.gradient_scale);
    Vec scale1 = set1(1 / o.correction1), scale2 = set1(1 / o.correction2), decay = set1(o.weight_decay);
    each_vector(n, [&](int64_t i, int64_t some) {
        Vec d = load_n(g + i, some) * factor;
        Vec mean = fma(beta1, load_n(m + i, some), rest1 * d);
        Vec square = fma(beta2, load_n(v + i, some), rest2 * d * d);
        store_n(m + i, mean, some);
        store_n(v + i, square, some);
        Vec step = mean * scale1 / (sqrt(square * scale2) + epsilon);
        Vec old = load_n(p + i, some);
        store_n(p + i, fnma(lr, fma(decay, old, step), old), some);
    });
}

}  // namespace
}  // namespace linnet
