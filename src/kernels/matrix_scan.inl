// Recurrences on a matrix (scan.h: MatrixScan), row after row. A chunk as products of matrices would need as
// many FMAs, and its bits would depend on where a prompt is cut. Backward with keys as lanes, which needs
// fewer horizontal sums, was tried and took as long (Mamba-2, RWKV-7: 0.84 to 0.99 of the time; linear
// attention 1.3).
#pragma once
#include "kernels/scan.inl"

namespace linnet {
namespace {

/// Row t of `count` vectors of values v: `after` becomes the next state, `along` aᵀ S; visit(n, j, before,
/// after) is called for each of them. States are [N][count].
template <int64_t count, class Visit>
inline void matrix_step(const MatrixScan<Real>& s, int64_t t, const Vec* v, const Vec* before, Vec* after,
                        Vec* along, const Visit& visit) {
    const int64_t at = t * s.key_row;
    const Real* w = s.w + t * s.w_row;
    for (int64_t j = 0; j < count; j++) along[j] = zero();
    for (int64_t n = 0; s.a && n < s.keys; n++)
        for (int64_t j = 0; j < count; j++)
            along[j] = fma(set1(s.a[at + n]), before[n * count + j], along[j]);
    for (int64_t n = 0; n < s.keys; n++) {
        const Vec k = set1(s.k[at + n]), decay = set1(w[s.one_decay ? 0 : n]);
        for (int64_t j = 0; j < count; j++) {
            Vec in = v[j] * k;
            if (s.b) in = fma(set1(s.b[at + n]), along[j], in);
            const Vec was = before[n * count + j], now = fma(decay, was, in);
            visit(n, j, was, now);
            after[n * count + j] = now;
        }
    }
}

/// Vectors of values that forward carries side by side: enough chains of sums to hide what an FMA takes, and
/// each broadcast serves all of them. On AVX-512, of the time that one after the other took: Mamba-2 0.44,
/// RWKV-7 0.36, RWKV-6 0.52.
constexpr int64_t vectors_abreast = 4;

/// The values of `count` vectors from c on; `some`: lanes of the last.
template <int64_t count>
void matrix_rows(const MatrixScan<Real>& s, int64_t c, int64_t some) {
    Vec h[most_states * count];
    const auto each = [&](const auto& visit) {
        for (int64_t n = 0; n < s.keys; n++)
            for (int64_t j = 0; j < count; j++)
                visit(h[n * count + j], n * s.values + c + j * W, j + 1 < count ? W : some);
    };
    const auto store_all = [&](Real* to) {
        each([&](Vec x, int64_t at, int64_t lanes) { store_n(to + at, x, lanes); });
    };
    each([&](Vec& x, int64_t at, int64_t lanes) { x = s.state ? load_n(s.state + at, lanes) : zero(); });
    for (int64_t t = 0; t < s.rows; t++) {
        if (Real* to = kept_at(s, t, s.kept_row)) store_all(to);
        const Real* r = s.r + t * s.key_row;
        const int64_t value = t * s.value_row + c;
        Vec v[count], y[count], along[count];
        for (int64_t j = 0; j < count; j++) {
            v[j] = load_n(s.v + value + j * W, j + 1 < count ? W : some);
            y[j] = zero();
        }
        const auto read = [&](int64_t n, int64_t j, Vec was, Vec now) {
            y[j] = fma(set1(r[n]), s.before ? was : now, y[j]);
        };
        matrix_step<count>(s, t, v, h, h, along, read);
        for (int64_t j = 0; j < count; j++) store_n(s.y + value + j * W, y[j], j + 1 < count ? W : some);
    }
    if (s.state) store_all(s.state);
}

void matrix_scan(const MatrixScan<Real>& s) {
    int64_t c = 0;
    for (; c + vectors_abreast * W <= s.values; c += vectors_abreast * W)
        matrix_rows<vectors_abreast>(s, c, W);
    each_vector(s.values - c, [&](int64_t i, int64_t some) { matrix_rows<1>(s, c + i, some); });
}

/// Row t of one vector of values backwards: `before` and `now` are the states around it, g what reaches the
/// latter from later rows, and then the former.
inline void matrix_row_backward(const MatrixScanBackward<Real>& b, int64_t t, int64_t c, int64_t some,
                                const Vec* before, const Vec* now, Vec along, Vec* g) {
    const MatrixScan<Real>& s = b.forward;
    const int64_t at = t * s.key_row;
    const bool first = c == 0;
    const Vec dy = load_n(b.dy + t * s.value_row + c, some), v = load_n(s.v + t * s.value_row + c, some);
    Vec dv = zero(), dalong = zero(), dw = zero();
    auto put = [&](Real* to, bool accumulate, int64_t n, Vec x) {
        if (to) put_sum(to + at + n, first && !accumulate, x);
    };
    for (int64_t n = 0; n < s.keys; n++) {
        put(b.dr, b.accumulate_r, n, dy * (s.before ? before[n] : now[n]));
        if (!s.before) g[n] = fma(set1(s.r[at + n]), dy, g[n]);
        put(b.dk, b.accumulate_k, n, g[n] * v);
        dv = fma(set1(s.k[at + n]), g[n], dv);
        if (s.b) {
            put(b.db, b.accumulate_b, n, g[n] * along);
            dalong = fma(set1(s.b[at + n]), g[n], dalong);
        }
        if (s.one_decay)
            dw = fma(g[n], before[n], dw);
        else if (b.dw)
            put_sum(b.dw + t * s.w_row + n, first && !b.accumulate_w, g[n] * before[n]);
    }
    if (s.one_decay && b.dw) put_sum(b.dw + t * s.w_row, first && !b.accumulate_w, dw);
    for (int64_t n = 0; n < s.keys; n++) {
        if (s.a) put(b.da, b.accumulate_a, n, dalong * before[n]);
        Vec carried = g[n] * set1(s.w[t * s.w_row + (s.one_decay ? 0 : n)]);
        if (s.a) carried = fma(set1(s.a[at + n]), dalong, carried);
        g[n] = s.before ? fma(set1(s.r[at + n]), dy, carried) : carried;
    }
    put_n(b.dv ? b.dv + t * s.value_row + c : nullptr, b.accumulate_v, dv, some);
}

void matrix_scan_backward(const MatrixScanBackward<Real>& b) {
    const MatrixScan<Real>& s = b.forward;
    each_vector(s.values, [&](int64_t c, int64_t some) {
        Vec h[(scan_chunk + 1) * most_states], along[scan_chunk], g[most_states];
        for (int64_t n = 0; n < s.keys; n++) g[n] = zero();
        for (int64_t last = s.rows; last > 0;) {
            const int64_t from = chunk_begin(s, last);
            const Real* kept = from > 0 ? kept_at(s, from, s.kept_row) : nullptr;
            load_states(s.keys, s.values, kept ? kept + c : nullptr, some, h);
            auto before = [&](int64_t t) { return h + (t - from) * s.keys; };
            for (int64_t t = from; t < last; t++) {
                const Vec v = load_n(s.v + t * s.value_row + c, some);
                matrix_step<1>(s, t, &v, before(t), before(t + 1), along + t - from,
                               [](int64_t, int64_t, Vec, Vec) {});
            }
            for (int64_t t = last - 1; t >= from; t--)
                matrix_row_backward(b, t, c, some, before(t), before(t + 1), along[t - from], g);
            last = from;
        }
    });
}

}  // namespace
}  // namespace linnet
