// LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019), one row at a time, and sums over rows.
//
// y = (x - mean) · rstd · weight + bias. With h = (x - mean) · rstd and u = dy · weight, the row's backward
// is dx = rstd · (u - mean(u) - h · mean(u · h)); RMSNorm has no mean(u) term.
#pragma once
#include "kernels/kernels.h"
#include "kernels/simd/common.inl"

namespace linnet {
namespace {

inline void normalize(int64_t width, const Real* x, const Real* weight, const Real* bias, Real mean,
                      Real rstd, Real* y) {
    Vec m = set1(mean), s = set1(rstd);
    each_vector(width, [&](int64_t i, int64_t n) {
        Vec v = (load_n(x + i, n) - m) * s;
        if (weight)
            v = bias ? fma(v, load_n(weight + i, n), load_n(bias + i, n)) : v * load_n(weight + i, n);
        else if (bias)
            v = v + load_n(bias + i, n);
        store_n(y + i, v, n);
    });
}

void layer_norm(int64_t rows, int64_t width, const Real* x, const Real* weight, const Real* bias,
                Real epsilon, Real* y, Real* mean_rstd) {
    for (int64_t r = 0; r < rows; r++, x += width, y += width) {
        Vec total = zero(), squares = zero();
        each_vector(width, [&](int64_t i, int64_t n) { total = total + load_n(x + i, n); });
        Real mean = sum(total) / static_cast<Real>(width);
        Vec m = set1(mean);
        each_vector(width, [&](int64_t i, int64_t n) {
            Vec d = keep(load_n(x + i, n) - m, 0, n, zero());
            squares = fma(d, d, squares);
        });
        Real rstd = Real(1) / square_root(sum(squares) / static_cast<Real>(width) + epsilon);
        normalize(width, x, weight, bias, mean, rstd, y);
        if (mean_rstd) mean_rstd[2 * r] = mean, mean_rstd[2 * r + 1] = rstd;
    }
}

void rms_norm(int64_t rows, int64_t width, const Real* x, const Real* weight, Real epsilon, Real* y,
              Real* mean_rstd) {
    for (int64_t r = 0; r < rows; r++, x += width, y += width) {
        Vec squares = zero();
        each_vector(width, [&](int64_t i, int64_t n) {
            Vec v = load_n(x + i, n);
            squares = fma(v, v, squares);
        });
        Real rstd = Real(1) / square_root(sum(squares) / static_cast<Real>(width) + epsilon);
        normalize(width, x, weight, nullptr, 0, rstd, y);
        if (mean_rstd) mean_rstd[2 * r] = 0, mean_rstd[2 * r + 1] = rstd;
    }
}

inline void norm_backward(bool centred, int64_t rows, int64_t width, const Real* x, const Real* weight,
                          const Real* mean_rstd, const Real* dy, Real* dx, bool accumulate) {
    for (int64_t r = 0; r < rows; r++, x += width, dy += width, dx += width) {
        Vec mean = set1(mean_rstd[2 * r]), rstd = set1(mean_rstd[2 * r + 1]);
        Vec total_u = zero(), total_uh = zero();
        each_vector(width, [&](int64_t i, int64_t n) {
            Vec h = (load_n(x + i, n) - mean) * rstd, u = load_n(dy + i, n);
            if (weight) u = u * load_n(weight + i, n);
            total_u = total_u + u;
            total_uh = fma(u, h, total_uh);
        });
        Real scale = Real(1) / static_cast<Real>(width);
        Vec mean_u = set1(centred ? sum(total_u) * scale : Real(0)), mean_uh = set1(sum(total_uh) * scale);
        each_vector(width, [&](int64_t i, int64_t n) {
            Vec h = (load_n(x + i, n) - mean) * rstd, u = load_n(dy + i, n);
            if (weight) u = u * load_n(weight + i, n);
            Vec d = fnma(h, mean_uh, u - mean_u) * rstd;
            if (accumulate) d = d + load_n(dx + i, n);
            store_n(dx + i, d, n);
        });
    }
}

void layer_norm_backward(int64_t rows, int64_t width, const Real* x, const Real* weight,
                         const Real* mean_rstd, const Real* dy, Real* dx, bool accumulate) {
    norm_backward(true, rows, width, x, weight, mean_rstd, dy, dx, accumulate);
}

void rms_norm_backward(int64_t rows, int64_t width, const Real* x, const Real* weight, const Real* mean_rstd,
                       const Real* dy, Real* dx, bool accumulate) {
    norm_backward(false, rows, width, x, weight, mean_rstd, dy, dx, accumulate);
}

/// Calls f(column, lanes) with strips of up to four vectors: wide enough to use whole pages' lines, few
/// enough for the sums to stay in registers.
template <class F>
inline void each_strip(int64_t begin, int64_t end, F f) {
    for (int64_t c = begin; c < end; c += 4 * W) f(c, least(4 * W, end - c));
}

void norm_backward_weights(int64_t rows, int64_t width, int64_t begin, int64_t end, const Real* x,
                           const Real* mean_rstd, const Real* dy, Real* dweight, Real* dbias) {
    each_strip(begin, end, [&](int64_t c, int64_t n) {
        Vec w[4], b[4];
        for (int v = 0; v < 4; v++) {
            w[v] = load_n(dweight + c + v * W, lanes_of(n, v));
            b[v] = dbias ? load_n(dbias + c + v * W, lanes_of(n, v)) : zero();
        }
        for (int64_t r = 0; r < rows; r++) {
            Vec mean = set1(mean_rstd[2 * r]), rstd = set1(mean_rstd[2 * r + 1]);
            LINNET_UNROLL
            for (int v = 0; v < 4; v++) {
                int64_t at = r * width + c + v * W, some = lanes_of(n, v);
                Vec d = load_n(dy + at, some);
                w[v] = fma(d, (load_n(x + at, some) - mean) * rstd, w[v]);
                b[v] = b[v] + d;
            }
        }
        for (int v = 0; v < 4; v++) {
            store_n(dweight + c + v * W, w[v], lanes_of(n, v));
            if (dbias) store_n(dbias + c + v * W, b[v], lanes_of(n, v));
        }
    });
}

void column_sum(int64_t rows, int64_t row, int64_t begin, int64_t end, const Real* x, Real* out) {
    each_strip(begin, end, [&](int64_t c, int64_t n) {
        Vec total[4];
        for (int v = 0; v < 4; v++) total[v] = load_n(out + c + v * W, lanes_of(n, v));
        for (int64_t r = 0; r < rows; r++) {
            LINNET_UNROLL
            for (int v = 0; v < 4; v++) total[v] = total[v] + load_n(x + r * row + c + v * W, lanes_of(n, v));
        }
        for (int v = 0; v < 4; v++) store_n(out + c + v * W, total[v], lanes_of(n, v));
    });
}

}  // namespace
}  // namespace linnet
