// The recurrences of scan.h: a vector of channels (of values) at a time, its state in L1.
#pragma once
#include "kernels/elementwise.inl"
#include "kernels/scan.h"

namespace linnet {
namespace {

constexpr int64_t most_states = scan_most_states;

/// Whether the state before row t of the scan is kept, and where.
template <class Scan>
inline Real* kept_at(const Scan& s, int64_t t, int64_t size) {
    int64_t row = s.first + t;
    return s.kept && row % scan_chunk == 0 && row > 0 ? s.kept + (row / scan_chunk - 1) * size : nullptr;
}

/// The rows of the chunk that ends before row `end` of the scan.
template <class Scan>
inline int64_t chunk_begin(const Scan& s, int64_t end) {
    return most(0, (s.first + end - 1) / scan_chunk * scan_chunk - s.first);
}

inline void load_states(int64_t states, int64_t row, const Real* from, int64_t some, Vec* h) {
    for (int64_t n = 0; n < states; n++) h[n] = from ? load_n(from + n * row, some) : zero();
}
inline void store_states(int64_t states, int64_t row, const Vec* h, int64_t some, Real* to) {
    for (int64_t n = 0; n < states; n++) store_n(to + n * row, h[n], some);
}

/// Column n of the [C, N] matrix, for channels [c, c + some).
inline void load_decays(const SelectiveScan<Real>& s, int64_t c, int64_t some, Vec* a) {
    for (int64_t n = 0; n < s.states; n++) {
        Real column[W] = {};
        for (int64_t i = 0; i < some; i++) column[i] = s.a[(c + i) * s.states + n];
        a[n] = load(column);
    }
}

void selective_scan(const SelectiveScan<Real>& s, int64_t begin, int64_t end) {
    const int64_t states = s.states, row = s.channels, size = states * row;
    each_vector(end - begin, [&](int64_t i, int64_t some) {
        const int64_t c = begin + i;
        Vec h[most_states], a[most_states];
        load_decays(s, c, some, a);
        load_states(states, row, s.state ? s.state + c : nullptr, some, h);
        const Vec skip = load_n(s.skip + c, some);
        for (int64_t t = 0; t < s.rows; t++) {
            if (Real* to = kept_at(s, t, size)) store_states(states, row, h, some, to + c);
            const Vec x = load_n(s.x + t * row + c, some), dt = softplus(load_n(s.dt + t * row + c, some));
            const Vec in = dt * x;
            Vec y = skip * x;
            const Real *b = s.b + t * states, *out = s.c + t * states;
            for (int64_t n = 0; n < states; n++) {
                h[n] = fma(exp(dt * a[n]), h[n], in * set1(b[n]));
                y = fma(h[n], set1(out[n]), y);
            }
            store_n(s.y + t * row + c, y, some);
        }
        if (s.state) store_states(states, row, h, some, s.state + c);
    });
}

/// The sums of one vector of channels, behind those of the vectors before it.
inline void put_sum(Real* to, bool first, Vec v) {
    *to = first ? sum(v) : *to + sum(v);
}
inline void put_n(Real* to, bool accumulate, Vec v, int64_t some) {
    if (to) store_n(to, accumulate ? v + load_n(to, some) : v, some);
}

/// Rows [begin, end) of one vector of channels backwards. h: the states before row `begin`, then those of
/// all rows; decays: those of all rows; g: what reaches the last one's state from later rows.
inline void selective_chunk_backward(const SelectiveScanBackward<Real>& b, int64_t c, int64_t some,
                                     bool first, int64_t begin, int64_t end, const Vec* a, Vec* h,
                                     Vec* decays, Vec* g, Vec* da, Vec& dskip) {
    const SelectiveScan<Real>& s = b.forward;
    const int64_t states = s.states, row = s.channels;
    const Vec skip = load_n(s.skip + c, some);
    for (int64_t t = begin; t < end; t++) {
        const Vec x = load_n(s.x + t * row + c, some), dt = softplus(load_n(s.dt + t * row + c, some));
        const Vec in = dt * x;
        Vec *before = h + (t - begin) * states, *decay = decays + (t - begin) * states;
        for (int64_t n = 0; n < states; n++) {
            decay[n] = exp(dt * a[n]);
            before[states + n] = fma(decay[n], before[n], in * set1(s.b[t * states + n]));
        }
    }
    for (int64_t t = end - 1; t >= begin; t--) {
        const Vec x = load_n(s.x + t * row + c, some), raw = load_n(s.dt + t * row + c, some);
        const Vec dt = softplus(raw), in = dt * x, dy = load_n(b.dy + t * row + c, some);
        Vec ddt = zero(), dx = dy * skip;
        dskip = fma(dy, x, dskip);
        Real *db = b.dbc + 2 * t * states, *dc = db + states;
        const Vec* const states_before = h + (t - begin) * states;
        for (int64_t n = 0; n < states; n++) {
            const Vec from = set1(s.b[t * states + n]), decay = decays[(t - begin) * states + n];
            const Vec before = states_before[n], now = states_before[states + n];
            const Vec dh = fma(dy, set1(s.c[t * states + n]), g[n]), carried = dh * decay;
            put_sum(dc + n, first, dy * now);
            put_sum(db + n, first, dh * in);
            const Vec faded = carried * before;
            da[n] = fma(faded, dt, da[n]);
            ddt = fma(faded, a[n], fma(dh * x, from, ddt));
            dx = fma(dh * dt, from, dx);
            g[n] = carried;
        }
        put_n(b.dx ? b.dx + t * row + c : nullptr, b.accumulate_x, dx, some);
        put_n(b.ddt ? b.ddt + t * row + c : nullptr, b.accumulate_dt, ddt * sigmoid(raw), some);
    }
}

void selective_scan_backward(const SelectiveScanBackward<Real>& b, int64_t begin, int64_t end) {
    const SelectiveScan<Real>& s = b.forward;
    const int64_t states = s.states, row = s.channels, size = states * row;
    each_vector(end - begin, [&](int64_t i, int64_t some) {
        const int64_t c = begin + i;
        // Rows lie `states` apart: pages apart they would share a set of L1.
        Vec h[(scan_chunk + 1) * most_states], decays[scan_chunk * most_states];
        Vec a[most_states], g[most_states], da[most_states], dskip = zero();
        load_decays(s, c, some, a);
        for (int64_t n = 0; n < states; n++) g[n] = da[n] = zero();
        for (int64_t last = s.rows; last > 0;) {
            const int64_t from = chunk_begin(s, last);
            const Real* kept = from > 0 ? kept_at(s, from, size) : nullptr;
            load_states(states, row, kept ? kept + c : nullptr, some, h);
            selective_chunk_backward(b, c, some, i == 0, from, last, a, h, decays, g, da, dskip);
            last = from;
        }
        for (int64_t n = 0; b.da && n < states; n++) {
            Real column[W];
            store(column, da[n]);
            for (int64_t k = 0; k < some; k++) b.da[(c + k) * states + n] += column[k];
        }
        if (b.dskip) put_n(b.dskip + c, true, dskip, some);
    });
}

}  // namespace
}  // namespace linnet
