// Matrix products spread over the team: each member computes a rectangle of the output. For weights of block
// types (quantized), and on some sets for reading with those of f16 and bf16, there are kernels of their own;
// where there are none, and in training, block types are unpacked a few rows at a time into the member's
// workspace, then multiplied as plain ones.
#pragma once
#include "ops/op.h"

namespace linnet {

/// Rows of a weight of a block type that are unpacked at once: their order of summation depends on this.
inline constexpr std::int64_t unpacked_rows = 256;

/// Bytes that a member's workspace needs behind the kernels' own, for a weight of `rows` rows of `columns`
/// elements.
template <class Real>
constexpr std::size_t unpack_bytes(DType type, std::int64_t columns, std::int64_t rows = unpacked_rows) {
    return info(type).block > 1
               ? static_cast<std::size_t>(std::min(unpacked_rows, rows) * columns) * sizeof(Real)
               : 0;
}

/// Rows [first, first + count) of a weight, in Real, in the member's workspace, as far apart as in the
/// weight; of each at least its first `needed` elements.
template <class Real>
Real* unpack(const Call<Real>& call, const Tensor& w, std::int64_t first, std::int64_t count,
             std::int64_t needed) {
    auto* to =
        reinterpret_cast<Real*>(static_cast<std::byte*>(call.workspace) + kernel_workspace(*call.kernels));
    const std::int64_t columns = w.shape.dim[1], block = info(w.type).block;
    const std::int64_t loaded = (needed + block - 1) / block * block;
    for (std::int64_t i = 0; i < count; i++)
        call.kernels->load(loaded, w.type, w.row(first + i), to + i * columns);
    return to;
}

/// The columns [first, first + count) of a product C [M,N], as a product of its own.
template <class Real>
Gemm<Real> columns_of(Gemm<Real> g, std::int64_t first, std::int64_t count) {
    g.n = count, g.c += first;
    if (g.bf16) g.bf16 += first;
    if (g.bias) g.bias += first;
    if (g.add) g.add += first;
    g.n_begin = 0, g.n_end = count;
    return g;
}

/// The kernel of a step's products with packed panels.
template <class Real>
struct PanelProduct {
    void (*gemm)(const Gemm<Real>&, void* workspace);
    std::size_t workspace;  // bytes
    ProductCut cut;
    double speed = 1;  // times that of f32
};
template <class Real>
PanelProduct<Real> panel_product(const KernelTable<Real>& kernels, ProductKernel kernel) {
    const NarrowProducts<Real>& narrow = kernels.narrow;
    if (kernel == ProductKernel::bf16 && narrow.rounded)
        return {narrow.rounded, narrow.workspace, narrow.cut, narrow.speed};
    if (kernel == ProductKernel::split && narrow.split)
        return {narrow.split, narrow.workspace, narrow.cut, narrow.speed / 3};
    return {kernels.gemm, kernels.gemm_workspace, gemm_cut(kernels)};
}

template <class Real>
void team_matmul(const Call<Real>& call, Gemm<Real> g) {
    const PanelProduct<Real> product = panel_product(*call.kernels, call.product);
    g.m_begin = 0, g.m_end = g.m, g.n_begin = 0, g.n_end = g.n;
    g = gemm_share(product.cut, g, call.worker.index, call.worker.count);
    if (g.m_begin < g.m_end) product.gemm(g, call.workspace);
}

/// C = start + X · Wᵀ, for this part's columns of g, which has all but B. W: N rows from `first` on of a
/// weight of a block type. As panels (`product`), or where that is null every row by itself.
template <class Real>
void unpacked_project(const Call<Real>& call, const Gemm<Real>& g, const Tensor& w, std::int64_t first,
                      const PanelProduct<Real>* product) {
    for (std::int64_t n = g.n_begin; n < g.n_end; n += unpacked_rows) {
        Gemm<Real> part = columns_of(g, n, std::min(unpacked_rows, g.n_end - n));
        part.b = {unpack(call, w, first + n, part.n, g.k), kernel_type<Real>, 1, g.k};
        if (product)
            product->gemm(part, call.workspace);
        else
            call.kernels->gemv(part);
    }
}

/// C = start + A · W, for this part of g, which has all but B: W [K,N] of a block type.
template <class Real>
void unpacked_back(const Call<Real>& call, const PanelProduct<Real>& product, Gemm<Real> g, const Tensor& w) {
    const auto* a = static_cast<const Real*>(g.a.data);
    const std::int64_t depth = g.k;
    for (std::int64_t first = 0; first < depth; first += unpacked_rows) {
        g.k = std::min(unpacked_rows, depth - first);
        g.a.data = a + first;
        g.b = {unpack(call, w, first, g.k, g.n), kernel_type<Real>, g.n, 1};
        product.gemm(g, call.workspace);
        g.accumulate = true, g.add = nullptr;
    }
}

/// C = start + X · Wᵀ, W [N,K] as stored; g has all but B. Panels of W serve all rows, or W is read once and
/// every row stands by itself.
template <class Real>
void team_project(const Call<Real>& call, Gemm<Real> g, const Tensor& w, ProductKernel kernel) {
    const BlockProducts<Real>& own = call.kernels->block;
    // What is differentiated must be the product itself, not one of rounded activations.
    const bool blocks = info(w.type).block > 1, reading = kernel != ProductKernel::rows,
               rounded = call.phase != Phase::train;
    const auto panels = reading && rounded ? own.reading(w.type) : nullptr;
    g.b = {w.data, w.type, 1, g.k};
    if (reading && !blocks && !panels) return team_matmul(call, g);
    const PanelProduct<Real> product = panel_product(*call.kernels, kernel);
    g.m_begin = 0, g.m_end = g.m, g.n_begin = 0, g.n_end = g.n;
    if (reading) {
        const ProductCut& cut = panels && own.panel_cut.tile_m > 0 ? own.panel_cut : product.cut;
        g = gemm_share(cut, g, call.worker.index, call.worker.count);
    } else {
        Range n = call.worker.share(g.n, 16);
        g.n_begin = n.begin, g.n_end = n.end;
    }
    if (g.m_begin >= g.m_end || g.n_begin >= g.n_end) return;
    g.streams = memory_streams();
    if (!reading && !blocks) return call.kernels->gemv(g);
    if (panels) return panels(g, call.workspace);
    if (!reading && rounded && g.k <= own.rows_longest) return own.rows(g, call.workspace);
    unpacked_project(call, g, w, 0, reading ? &product : nullptr);
}

/// dX (+)= dY · W: dY [M,N] (rows of Real, or of bf16 where products round to it), W [N,K] as stored, dX
/// [M,K].
template <class Real>
void team_project_back(const Call<Real>& call, const Operand& dy, std::int64_t rows, const Tensor& w,
                       Real* dx, bool accumulate) {
    Gemm<Real> g;
    std::int64_t outputs = w.shape.dim[0];
    g.m = rows, g.n = w.shape.dim[1], g.k = outputs;
    g.a = dy;
    g.b = {w.data, w.type, g.n, 1};
    g.c = dx, g.c_row = g.n;
    g.accumulate = accumulate;
    if (info(w.type).block == 1) return team_matmul(call, g);
    g.m_end = g.m, g.n_end = g.n;
    const PanelProduct<Real> product = panel_product(*call.kernels, call.product);
    g = gemm_share(product.cut, g, call.worker.index, call.worker.count);
    if (g.m_begin < g.m_end) unpacked_back(call, product, g, w);
}

/// dW += dYᵀ · X: dY [M,N] as above, X [M,K] (an operand with the strides K, 1), dW [N,K].
template <class Real>
void team_weight_gradient(const Call<Real>& call, const Operand& dy, const Operand& x, std::int64_t rows,
                          std::int64_t outputs, Real* dw) {
    Gemm<Real> g;
    const std::int64_t inputs = x.row;
    g.m = outputs, g.n = inputs, g.k = rows;
    g.a = {dy.data, dy.type, 1, dy.row};
    g.b = x;
    g.c = dw, g.c_row = inputs;
    g.accumulate = true;
    team_matmul(call, g);
}

}  // namespace linnet
