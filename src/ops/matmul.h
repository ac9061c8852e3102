// A matrix product spread over the team: each member computes a rectangle of the output.
#pragma once
#include <cmath>

#include "ops/op.h"

namespace linnet {

/// Sets this member's rectangle of C[m,n] and computes it. The grid of rectangles is the one that makes the team pack
/// least: a member that computes m' × n' outputs packs k · (m' + n') elements.
template <class Real>
void team_matmul(const Call<Real>& call, Gemm<Real> g) {
    const KernelTable<Real>& kernels = *call.kernels;
    int threads = call.worker.count, best = 1;
    double best_cost = 1e300;
    for (int down = 1; down <= threads; down++) {
        if (threads % down) continue;
        int across = threads / down;
        // Rounded up to whole tiles, so that a grid which leaves members idle is seen to be dear.
        double tiles_m = static_cast<double>((g.m + kernels.gemm_tile_m - 1) / kernels.gemm_tile_m);
        double tiles_n = static_cast<double>((g.n + kernels.gemm_tile_n - 1) / kernels.gemm_tile_n);
        double rows = std::ceil(tiles_m / down) * static_cast<double>(kernels.gemm_tile_m);
        double columns = std::ceil(tiles_n / across) * static_cast<double>(kernels.gemm_tile_n);
        double cost = rows * columns + 8.0 * (rows + columns);  // one packed element costs about eight products
        if (cost < best_cost) best_cost = cost, best = down;
    }
    int across = threads / best;
    Range m = Worker{call.worker.index / across, best}.share(g.m, kernels.gemm_tile_m);
    Range n = Worker{call.worker.index % across, across}.share(g.n, kernels.gemm_tile_n);
    if (m.size() == 0 || n.size() == 0) return;
    g.m_begin = m.begin, g.m_end = m.end, g.n_begin = n.begin, g.n_end = n.end;
    kernels.gemm(g, call.workspace);
}

/// C = start + X · Wᵀ, W [N,K] as stored. Decoding uses the kernel that reads W once and treats every row alike.
template <class Real>
void team_project(const Call<Real>& call, Gemm<Real> g) {
    constexpr std::int64_t few_rows = 4;  // up to here reading W once wins over packing it
    if (!call.batch->decoding() && g.m > few_rows) return team_matmul(call, g);
    Range n = call.worker.share(g.n, 16);
    g.m_begin = 0, g.m_end = g.m, g.n_begin = n.begin, g.n_end = n.end;
    if (n.size() > 0) call.kernels->gemv(g);
}

}  // namespace linnet
