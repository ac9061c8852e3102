// An optimizer's step: UpdateRule and Update in kernels.h say what it computes.
#pragma once
#include "kernels/kernels.h"
#include "kernels/simd/common.inl"

namespace linnet {
namespace {

/// p ← p - lr · (u + decay · p) with u = make(i, lanes, d).
template <class Make>
inline void update_with(int64_t n, const Update<Real>& o, const Real* g, Real* p, Make make) {
    const Vec lr = set1(o.lr), decay = set1(o.weight_decay), l2 = set1(o.l2);
    const Vec factor = set1(o.gradient_scale);
    each_vector(n, [&](int64_t i, int64_t some) {
        const Vec old = load_n(p + i, some);
        Vec d = load_n(g + i, some) * factor;
        if (o.l2 != 0) d = fma(l2, old, d);
        const Vec u = make(i, some, d), here = o.cautious ? if_positive(u * old, decay, zero()) : decay;
        store_n(p + i, fnma(lr, fma(here, old, u), old), some);
    });
}

inline void update_adam(int64_t n, const Update<Real>& o, const Real* g, Real* p, Real* m, Real* v) {
    const Vec beta1 = set1(o.beta1), beta2 = set1(o.beta2), epsilon = set1(o.epsilon);
    const Vec rest1 = set1(1 - o.beta1), rest2 = set1(1 - o.beta2), rectified = set1(o.rectified);
    const Vec by1 = set1(1 / o.correction1), by2 = set1(1 / o.correction2);
    update_with(n, o, g, p, [&](int64_t i, int64_t some, Vec d) {
        const Vec mean = fma(beta1, load_n(m + i, some), rest1 * d);
        const Vec square = fma(beta2, load_n(v + i, some), rest2 * d * d);
        store_n(m + i, mean, some);
        store_n(v + i, square, some);
        if (o.rectified == 0) return mean * by1;
        const Vec u = mean * by1 / (sqrt(square * by2) + epsilon);
        return o.rectified == 1 ? u : rectified * u;
    });
}

inline void update_momentum(int64_t n, const Update<Real>& o, const Real* g, Real* p, Real* m) {
    if (!m) return update_with(n, o, g, p, [](int64_t, int64_t, Vec d) { return d; });
    const Vec beta = set1(o.beta1);
    update_with(n, o, g, p, [&](int64_t i, int64_t some, Vec d) {
        const Vec sum = fma(beta, load_n(m + i, some), d);
        store_n(m + i, sum, some);
        return o.nesterov ? fma(beta, sum, d) : sum;
    });
}

inline void update_lion(int64_t n, const Update<Real>& o, const Real* g, Real* p, Real* m) {
    const Vec beta1 = set1(o.beta1), beta2 = set1(o.beta2);
    const Vec rest1 = set1(1 - o.beta1), rest2 = set1(1 - o.beta2);
    update_with(n, o, g, p, [&](int64_t i, int64_t some, Vec d) {
        const Vec old = load_n(m + i, some), mean = fma(beta1, old, rest1 * d);
        store_n(m + i, fma(beta2, old, rest2 * d), some);
        return if_positive(mean, set1(1), if_positive(zero() - mean, set1(-1), zero()));
    });
}

void update(int64_t n, const Update<Real>& o, const Real* g, Real* p, Real* m, Real* v) {
    switch (o.rule) {
        case UpdateRule::adam:
            return update_adam(n, o, g, p, m, v);
        case UpdateRule::momentum:
            return update_momentum(n, o, g, p, m);
        case UpdateRule::lion:
            return update_lion(n, o, g, p, m);
    }
}

}  // namespace
}  // namespace linnet
