// Cross-entropy of one row of logits, and its gradient in place.
#pragma once
#include "kernels/kernels.h"
#include "kernels/simd/common.inl"

namespace linnet {
namespace {

double cross_entropy(int64_t vocabulary, int64_t target, Real factor, bool gradient, Real* logits) {
    Vec high = set1(-__builtin_inff());
    // NaN must survive the maximum: a loss that is not finite stops a run. It does through the sum below.
    each_vector(vocabulary,
                [&](int64_t i, int64_t n) { high = max(high, keep(load_n(logits + i, n), 0, n, high)); });
    Real top = largest(high), wanted = logits[target];
    Vec m = set1(top);
    Wide total = wide_zero();
    each_vector(vocabulary, [&](int64_t i, int64_t n) {
        Vec e = keep(exp(load_n(logits + i, n) - m), 0, n, zero());
        add_to(total, e);
        if (gradient) store_n(logits + i, e, n);
    });
    double all = sum(total);
    if (gradient) {
        Vec f = set1(static_cast<Real>(static_cast<double>(factor) / all));
        each_vector(vocabulary,
                    [&](int64_t i, int64_t n) { store_n(logits + i, f * load_n(logits + i, n), n); });
        logits[target] -= factor;
    }
    return __builtin_log(all) + (static_cast<double>(top) - static_cast<double>(wanted));
}

}  // namespace
}  // namespace linnet
