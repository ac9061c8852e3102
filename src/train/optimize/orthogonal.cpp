#include "train/optimize/orthogonal.h"

#include <algorithm>
#include <utility>

namespace linnet {

Orthogonaliser::Orthogonaliser(std::int64_t rows, std::int64_t columns, float* x, float* scratch,
                               const PanelProduct<float>& product)
    : rows_(rows),
      columns_(columns),
      n_(std::min(rows, columns)),
      x_(x),
      other_(scratch),
      square_(scratch + rows * columns),
      polynomial_(square_ + n_ * n_),
      product_(product) {}

void Orthogonaliser::run(int stage, Worker part, void* workspace) const {
    float *from = x_, *to = other_;
    if (stage / 3 % 2) std::swap(from, to);
    const bool wide = rows_ <= columns_;
    Gemm<float> g;
    switch (stage % 3) {
        case 0:  // A = X·Xᵀ, or Xᵀ·X
            g.m = g.n = n_, g.k = std::max(rows_, columns_);
            g.a = {from, DType::f32, wide ? columns_ : 1, wide ? 1 : columns_};
            g.b = {from, DType::f32, wide ? 1 : columns_, wide ? columns_ : 1};
            g.c = square_, g.c_row = n_;
            break;
        case 1:  // A², of which the polynomial a + b·A + c·A² is made in place
            g.m = g.n = g.k = n_;
            g.a = g.b = {square_, DType::f32, n_, 1};
            g.c = polynomial_, g.c_row = n_;
            break;
        default:  // the polynomial times X, or X times it
            g.m = rows_, g.n = columns_, g.k = n_;
            g.a = {wide ? polynomial_ : from, DType::f32, wide ? n_ : columns_, 1};
            g.b = {wide ? from : polynomial_, DType::f32, wide ? columns_ : n_, 1};
            g.c = to, g.c_row = columns_;
    }
    g.m_end = g.m, g.n_end = g.n;
    g = gemm_share(product_.cut, g, part.index, part.count);
    if (g.m_begin < g.m_end) product_.gemm(g, workspace);
    if (stage % 3 != 1) return;
    for (std::int64_t i = g.m_begin; i < g.m_end; i++) {
        float* const p = polynomial_ + i * n_;
        const float* const of_a = square_ + i * n_;
#pragma omp simd
        for (std::int64_t j = g.n_begin; j < g.n_end; j++)
            p[j] = static_cast<float>(c) * p[j] + static_cast<float>(b) * of_a[j];
        if (i >= g.n_begin && i < g.n_end) p[i] += static_cast<float>(a);
    }
}

}  // namespace linnet
