// C = start + A·Bᵀ for few rows (decoding): B is stored [N,K] and read once, at memory speed.
//
// Each output is one vector of partial sums over K in order, then one fixed reduction: the same bits for any
// number of rows and any part of N. `outputs` rows of B go along at once, so that several cache lines are
// always under way, and the lines of the next group are asked for while this one is multiplied.
#pragma once
#include "kernels/common.inl"

namespace linnet {
namespace {

/// `R` rows of A (from a, a_row apart) times J rows of B.
template <class Stored, int R, int J>
void gemv_tile(const Gemm<Real>& g, int64_t row, int64_t j) {
    const Real* a = static_cast<const Real*>(g.a.data) + row * g.a.row;
    const typename Stored::Element* b = static_cast<const typename Stored::Element*>(g.b.data) + j * g.b.col;
    constexpr int64_t ahead = 64 / sizeof(typename Stored::Element);  // elements a cache line
    Vec acc[R][J];
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        LINNET_UNROLL
        for (int o = 0; o < J; o++) acc[i][o] = zero();
    }
    int64_t p = 0;
    for (; p + W <= g.k; p += W) {
        Vec w[J];
        LINNET_UNROLL
        for (int o = 0; o < J; o++) w[o] = Stored::get(b + o * g.b.col + p);
        if (W >= ahead || p % ahead == 0) {
            LINNET_UNROLL
            for (int o = 0; o < J; o++) prefetch(b + (o + J) * g.b.col + p);
        }
        LINNET_UNROLL
        for (int i = 0; i < R; i++) {
            Vec x = load(a + i * g.a.row + p);
            LINNET_UNROLL
            for (int o = 0; o < J; o++) acc[i][o] = fma(x, w[o], acc[i][o]);
        }
    }
    if (p < g.k) {
        for (int o = 0; o < J; o++) {
            Vec w = Stored::get_n(b + o * g.b.col + p, g.k - p);
            for (int i = 0; i < R; i++) acc[i][o] = fma(load_n(a + i * g.a.row + p, g.k - p), w, acc[i][o]);
        }
    }
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        LINNET_UNROLL
        for (int o = 0; o < J; o++) {
            Real total = sum(acc[i][o]);
            Real* c = g.c + (row + i) * g.c_row + j + o;
            if (g.accumulate) total += *c;
            if (g.bias) total += g.bias[j + o];
            if (g.add) total += g.add[(row + i) * g.add_row + j + o];
            *c = total;
        }
    }
}

template <class Stored, int R, int J>
void gemv_rows(const Gemm<Real>& g, int64_t row) {
    int64_t j = g.n_begin;
    for (; j + J <= g.n_end; j += J) gemv_tile<Stored, R, J>(g, row, j);
    for (; j < g.n_end; j++) gemv_tile<Stored, R, 1>(g, row, j);
}

void gemv(const Gemm<Real>& g) {
    with_stored(g.b.type, [&](auto stored) {
        using Stored = decltype(stored);
        for (int64_t i = g.m_begin; i < g.m_end;) {
            int64_t left = g.m_end - i;
            if (left >= 8) {
                gemv_rows<Stored, 8, 2>(g, i), i += 8;
            } else if (left >= 4) {
                gemv_rows<Stored, 4, 4>(g, i), i += 4;
            } else if (left >= 2) {
                gemv_rows<Stored, 2, 4>(g, i), i += 2;
            } else {
                gemv_rows<Stored, 1, 8>(g, i), i += 1;
            }
        }
    });
}

}  // namespace
}  // namespace linnet
