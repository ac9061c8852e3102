// C = start + A·Bᵀ for few rows (decoding): B is stored [N,K] and read once, at memory speed.
//
// Each output is gemv_chains vectors of partial sums (vector v of K goes to chain v mod gemv_chains), then
// one fixed reduction: the same bits for any number of rows and any part of N. B is walked in the order it
// lies in, row after row (eight neighbouring rows at a time took a fifth more on Zen 5). Many processors read
// four distant rows together faster: Gemm::streams says how many, for one row of A. Four chains hide fma's
// latency.
#pragma once
#include "kernels/packing.inl"

namespace linnet {
namespace {

constexpr int gemv_chains = 4;

/// R rows of A (from row) times S rows of B, j and those `apart` from it and each other.
template <class Stored, int R, int S = 1>
void gemv_tile(const Gemm<Real>& g, int64_t row, int64_t j, int64_t apart = 0) {
    using Element = typename Stored::Element;
    const Real* a = static_cast<const Real*>(g.a.data) + row * g.a.row;
    const Element* b = static_cast<const Element*>(g.b.data) + j * g.b.col;
    const int64_t next = apart * g.b.col;
    constexpr int U = gemv_chains;
    Vec acc[S][U][R];
    LINNET_UNROLL
    for (int i = 0; i < S * U * R; i++) acc[i / (U * R)][i / R % U][i % R] = zero();
    int64_t p = 0;
    for (; p + U * W <= g.k; p += U * W) {
        LINNET_UNROLL
        for (int s = 0; s < S; s++) {
            const Element* from = b + s * next + p;
            constexpr int64_t lines = U * W * sizeof(Element) / 64;
            LINNET_UNROLL
            for (int64_t line = 0; line < (lines > 0 ? lines : 1); line++) {
                __builtin_prefetch(reinterpret_cast<const char*>(from) + read_ahead(S) + line * 64, 0, 2);
            }
            LINNET_UNROLL
            for (int u = 0; u < U; u++) {
                Vec w = Stored::get(from + u * W);
                LINNET_UNROLL
                for (int i = 0; i < R; i++)
                    acc[s][u][i] = fma(w, load(a + i * g.a.row + p + u * W), acc[s][u][i]);
            }
        }
    }
    LINNET_UNROLL
    for (int u = 0; u < U; u++) {
        int64_t some = lanes_of(g.k - p, u);
        if (some == 0) break;
        LINNET_UNROLL
        for (int s = 0; s < S; s++) {
            Vec w = Stored::get_n(b + s * next + p + u * W, some);
            LINNET_UNROLL
            for (int i = 0; i < R; i++)
                acc[s][u][i] = fma(w, load_n(a + i * g.a.row + p + u * W, some), acc[s][u][i]);
        }
    }
    LINNET_UNROLL
    for (int s = 0; s < S; s++) {
        LINNET_UNROLL
        for (int i = 0; i < R; i++) {
            Vec all = acc[s][0][i];
            LINNET_UNROLL
            for (int u = 1; u < U; u++) all = all + acc[s][u][i];
            put_output(g, row + i, j + s * apart, sum(all));
        }
    }
}

/// Row j of B times all rows of A: it comes from memory once, and from L1 for the further rows.
template <class Stored>
void gemv_column(const Gemm<Real>& g, int64_t j) {
    int64_t i = g.m_begin;
    for (; i + gemv_rows <= g.m_end; i += gemv_rows) gemv_tile<Stored, gemv_rows>(g, i, j);
    for (; i + 2 <= g.m_end; i += 2) gemv_tile<Stored, 2>(g, i, j);
    for (; i < g.m_end; i++) gemv_tile<Stored, 1>(g, i, j);
}

void gemv(const Gemm<Real>& g) {
    with_stored(g.b.type, [&](auto stored) {
        using Stored = decltype(stored);
        int64_t j = g.n_begin;
        if (g.streams == 4 && g.m_end - g.m_begin == 1) {
            const int64_t apart = (g.n_end - g.n_begin) / 4;
            for (; j < g.n_begin + apart; j++) gemv_tile<Stored, 1, 4>(g, g.m_begin, j, apart);
            j = g.n_begin + 4 * apart;
        }
        for (; j < g.n_end; j++) gemv_column<Stored>(g, j);
    });
}

}  // namespace
}  // namespace linnet
