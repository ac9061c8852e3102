// A matrix product spread over the team: each member computes a rectangle of the output.
#pragma once
#include "ops/op.h"

namespace linnet {

template <class Real>
void team_matmul(const Call<Real>& call, Gemm<Real> g) {
    g.m_begin = 0, g.m_end = g.m, g.n_begin = 0, g.n_end = g.n;
    g = gemm_share(*call.kernels, g, call.worker.index, call.worker.count);
    if (g.m_begin < g.m_end) call.kernels->gemm(g, call.workspace);
}

/// C = start + X · Wᵀ, W [N,K] as stored. Decoding uses the kernel that reads W once and treats every row
/// alike.
template <class Real>
void team_project(const Call<Real>& call, Gemm<Real> g) {
    constexpr std::int64_t few_rows = 4;  // up to here reading W once wins over packing it
    if (!call.batch->decoding() && g.m > few_rows) return team_matmul(call, g);
    Range n = call.worker.share(g.n, 16);
    g.m_begin = 0, g.m_end = g.m, g.n_begin = n.begin, g.n_end = n.end;
    if (n.size() > 0) call.kernels->gemv(g);
}

}  // namespace linnet
