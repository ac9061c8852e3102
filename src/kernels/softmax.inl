// What attention's paths share: block sizes, which keys a query sees, and the online softmax (Milakov &
// Gimelshein 2018).
#pragma once
#include "kernels/common.inl"

namespace linnet {
namespace {

constexpr int64_t key_block = 64, query_block = 128, widest_head = 256;
constexpr Real minus_infinity = -__builtin_inff();

/// Keys [begin, end) that query row i sees.
inline int64_t visible_begin(const Attention<Real>& f, int64_t i) {
    return f.window > 0 ? most(0, f.cached + i - f.window + 1) : 0;
}
inline int64_t visible_end(const Attention<Real>& f, int64_t i) {
    return f.causal ? f.cached + i + 1 : f.cached + f.rows;
}

/// One row of scores becomes weights exp(s · scale - m) for the keys [begin, end) of the block, 0 elsewhere,
/// in whole vectors below `width`. top and total are the row's running maximum and sum; returns what earlier
/// sums shrink by.
inline Real online_softmax(Real* s, int64_t width, int64_t begin, int64_t end, Real scale, Real& top,
                           Real& total) {
    Vec factor = set1(scale), low = set1(minus_infinity), high = low;
    for (int64_t j = 0; j < width; j += W) {
        Vec v = load(s + j) * factor;
        if (j < begin || j + W > end) v = keep(v, begin - j, end - j, low);
        store(s + j, v);
        high = max(high, v);
    }
    Real now = largest(high);
    if (!(now > top)) now = top;
    Vec m = set1(now == minus_infinity ? Real(0) : now), sums = zero();
    for (int64_t j = 0; j < width; j += W) {
        Vec e = exp(load(s + j) - m);
        store(s + j, e);
        sums = sums + e;
    }
    Real shrink = top == minus_infinity ? Real(0) : sum(exp(keep(set1(top - now), 0, 1, low)));
    total = total * shrink + sum(sums);
    top = now;
    return shrink;
}

}  // namespace
}  // namespace linnet
