// What attention's paths share: block sizes, which keys a query sees, how keys and values are stored, and the
// online softmax (Milakov & Gimelshein 2018).
#pragma once
#include "kernels/elementwise.inl"

namespace linnet {
namespace {

constexpr int64_t key_block = 64, query_block = 128, widest_head = 256;
constexpr Real minus_infinity = -__builtin_inff();

/// Keys [begin, end) that query row i sees.
inline int64_t visible_begin(const Attention<Real>& f, int64_t i) {
    return f.window > 0 ? most(0, f.cached + i - f.window + 1) : 0;
}
inline int64_t visible_end(const Attention<Real>& f, int64_t i) {
    return f.causal ? f.cached + i + 1 : f.keys;
}

/// The keys or values of positions from j on, of key/value head `head`.
inline const char* rows_at(const Attention<Real>& f, const void* first, int64_t head, int64_t row,
                           int64_t j) {
    return static_cast<const char*>(first) + bytes_of(f.stored, head + j % f.ring * row);
}

struct RealRows {
    const Real* data;
    int64_t row;
};

/// `rows` rows of D as Real: where they stand, or unpacked to `to`, which has room for whole blocks.
inline RealRows real_rows(const Attention<Real>& f, const char* from, int64_t row, int64_t rows, Real* to) {
    if (f.stored == real_type) return {reinterpret_cast<const Real*>(from), row};
    int64_t block = block_of(f.stored), width = ceil_divide(f.head_width, block) * block;
    for (int64_t r = 0; r < rows; r++)
        load_stored(width, f.stored, from + bytes_of(f.stored, r * row), to + r * width);
    return {to, width};
}

/// The largest of s · scale over the keys [begin, end) of one row of scores, `width` (whole vectors) of them
/// written.
inline Real row_top(const Real* s, int64_t width, int64_t begin, int64_t end, Real scale) {
    Vec factor = set1(scale), low = set1(minus_infinity), high = low;
    for (int64_t j = 0; j < width; j += W) {
        Vec v = load(s + j) * factor;
        if (j < begin || j + W > end) v = keep(v, begin - j, end - j, low);
        high = max(high, v);
    }
    return largest(high);
}

/// Scores become weights exp(s · scale - top), 0 outside [begin, end); returns their sum.
inline Real row_weights(Real* s, int64_t width, int64_t begin, int64_t end, Real scale, Real top) {
    Vec factor = set1(scale), m = set1(top == minus_infinity ? Real(0) : -top), sums = zero();
    for (int64_t j = 0; j < width; j += W) {
        Vec e = exp(fma(load(s + j), factor, m));
        if (j < begin || j + W > end) e = keep(e, begin - j, end - j, zero());
        store(s + j, e);
        sums = sums + e;
    }
    return sum(sums);
}

/// What the sums so far shrink by when the maximum rises from `before` to `now`, for n rows.
inline void shrink_factors(int64_t n, const Real* before, const Real* now, Real* factor) {
    Real fall[small_rows];
    for (int64_t r = 0; r < n; r++)
        fall[r] = before[r] == minus_infinity ? minus_infinity : before[r] - now[r];
    each_vector(n, [&](int64_t i, int64_t some) { store_n(factor + i, exp(load_n(fall + i, some)), some); });
}

}  // namespace
}  // namespace linnet
