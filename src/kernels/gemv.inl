// C = start + A·Bᵀ for few rows (decoding): B is stored [N,K] and read once, at memory speed.
//
// Each output is gemv_chains vectors of partial sums (vector v of K goes to chain v mod gemv_chains), then
// one fixed reduction: the same bits for any number of rows and any part of N. B is walked in the order it
// lies in, row after row, which the processor's own prefetching follows best: eight rows abreast reached 75 %
// of the read bandwidth where this reaches 92 %. Four chains hide fma's latency.

#pragma once
#include "kernels/kernels.h"
#include "kernels/simd/common.inl"

namespace linnet {
namespace {

constexpr int gemv_chains = 4;

/// R rows of A (from row) times row j of B.
template <class Stored, int R>
void gemv_tile(const Gemm<Real>& g, int64_t row, int64_t j) {
    using Element = typename Stored::Element;
    const Real* a = static_cast<const Real*>(g.a.data) + row * g.a.row;
    const Element* b = static_cast<const Element*>(g.b.data) + j * g.b.col;
    constexpr int U = gemv_chains;
    Vec acc[U][R];
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        LINNET_UNROLL
        for (int u = 0; u < U; u++) acc[u][i] = zero();
    }
    int64_t p = 0;
    for (; p + U * W <= g.k; p += U * W) {
        constexpr int64_t lines = U * W * sizeof(Element) / 64;
        LINNET_UNROLL
        for (int64_t line = 0; line < (lines > 0 ? lines : 1); line++) {
            prefetch(reinterpret_cast<const char*>(b + p) + read_ahead + line * 64);
        }
        LINNET_UNROLL
        for (int u = 0; u < U; u++) {
            Vec w = Stored::get(b + p + u * W);
            LINNET_UNROLL
            for (int i = 0; i < R; i++) acc[u][i] = fma(w, load(a + i * g.a.row + p + u * W), acc[u][i]);
        }
    }
    LINNET_UNROLL
    for (int u = 0; u < U; u++) {
        int64_t some = lanes_of(g.k - p, u);
        if (some == 0) break;
        Vec w = Stored::get_n(b + p + u * W, some);
        LINNET_UNROLL
        for (int i = 0; i < R; i++) acc[u][i] = fma(w, load_n(a + i * g.a.row + p + u * W, some), acc[u][i]);
    }
    LINNET_UNROLL
    for (int i = 0; i < R; i++) {
        Vec all = acc[0][i];
        LINNET_UNROLL
        for (int u = 1; u < U; u++) all = all + acc[u][i];
        Real total = sum(all), *c = g.c + (row + i) * g.c_row + j;
        if (g.accumulate) total += *c;
        if (g.bias) total += g.bias[j];
        if (g.add) total += g.add[(row + i) * g.add_row + j];
        *c = total;
    }
}

/// Row j of B times all rows of A: it comes from memory once, and from L1 for the further rows.
template <class Stored>
void gemv_column(const Gemm<Real>& g, int64_t j) {
    int64_t i = g.m_begin;
    for (; i + gemv_rows <= g.m_end; i += gemv_rows) gemv_tile<Stored, gemv_rows>(g, i, j);
    if constexpr (gemv_rows > 4) {
        for (; i + 4 <= g.m_end; i += 4) gemv_tile<Stored, 4>(g, i, j);
    }
    for (; i + 2 <= g.m_end; i += 2) gemv_tile<Stored, 2>(g, i, j);
    for (; i < g.m_end; i++) gemv_tile<Stored, 1>(g, i, j);
}

void gemv(const Gemm<Real>& g) {
    with_stored(g.b.type, [&](auto stored) {
        using Stored = decltype(stored);
        for (int64_t j = g.n_begin; j < g.n_end; j++) gemv_column<Stored>(g, j);
    });
}

}  // namespace
}  // namespace linnet
