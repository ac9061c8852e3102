// Keys or values made fewer along the sequence (Wang et al. 2020, "Linformer", section 4): of a sequence of n
// rows
//   y = E[:m, :n] · x,   m = min(k, n).        x [R,C], E [k,N], y [R',C]; R' of a space with RowSpace::most
//   k
// A text shorter than N is as one that zeros follow: the columns of E beyond its end do not count. One
// shorter than k has as many rows as before: more would say no more of it, so that attention never costs more
// than without E, and y needs no more room than x.
#include <algorithm>
#include <stdexcept>

#include "ops/attention/call.h"
#include "ops/matmul.h"
#include "ops/rules.h"

namespace linnet {
namespace {

std::int64_t width(const NodeShape& s) {
    if (s.parameters[0].rank != 2) throw std::logic_error("project: a parameter that is no matrix");
    return s.in[0];
}

/// For each row of x: a multiply-add for each row of y.
double flops(const NodeShape& s, double length) {
    return 2 * std::min(length, static_cast<double>(s.parameters[0].dim[0])) * static_cast<double>(s.in[0]);
}

StoredForms stored(const NodeShape& s, ProductKernel product) {
    const NarrowProducts<float>& narrow = kernels().narrow;
    return {1, product == ProductKernel::bf16 && narrow.rounded &&
                   s.parameters[0].dim[1] <= narrow.rounded_longest};
}

/// Calls visit(a sequence of x, the same of y) for all of them.
template <class Real, class Visit>
void each_sequence(const Call<Real>& call, const Visit& visit) {
    for (std::size_t i = 0; i < call.space->segments.size(); i++)
        if (const Segment& to = call.space->segments[i]; to.length > 0)
            visit(call.in_space[0]->segments[i], to);
}

/// Calls visit(first, count, operand) for E[:m, :n] of a sequence of x and its rows of y: all at once, or of
/// a block type as many rows as are unpacked at a time.
template <class Real, class Visit>
void each_piece(const Call<Real>& call, const Segment& from, const Segment& to, const Visit& visit) {
    const Tensor& e = call.parameter[0];
    const std::int64_t columns = e.shape.dim[1], rows = to.length;
    if (info(e.type).block == 1) return visit(0, rows, Operand{e.data, e.type, columns, 1});
    for (std::int64_t first = 0; first < rows; first += unpacked_rows) {
        const std::int64_t count = std::min(unpacked_rows, rows - first);
        visit(first, count,
              Operand{unpack(call, e, first, count, from.length), kernel_type<Real>, columns, 1});
    }
}

template <class Real>
void forward(Call<Real>& call) {
    const std::int64_t c = call.width;
    each_sequence(call, [&](const Segment& from, const Segment& to) {
        each_piece(call, from, to, [&](std::int64_t first, std::int64_t count, Operand e) {
            Gemm<Real> g;
            g.m = count, g.n = g.c_row = c, g.k = from.length;
            g.a = e;
            g.b = {row_at(call.in[0], call.in_type[0], from.first * c), call.in_type[0], c, 1};
            g.c = row_at(call.out, call.out_type, (to.first + first) * c);
            if (call.out_type == DType::bf16) g.bf16 = reinterpret_cast<std::uint16_t*>(g.c);
            team_matmul(call, g);
        });
    });
}

/// dx = Eᵀ · dy, all of it: every row of x is in a sequence.
template <class Real>
void backward_input(const Call<Real>& call) {
    const std::int64_t c = call.width;
    each_sequence(call, [&](const Segment& from, const Segment& to) {
        each_piece(call, from, to, [&](std::int64_t first, std::int64_t count, const Operand& e) {
            Gemm<Real> g;
            g.m = from.length, g.n = g.c_row = c, g.k = count;
            g.a = {e.data, e.type, 1, e.row};
            g.b = {call.dout + (to.first + first) * c, kernel_type<Real>, c, 1};
            g.c = call.din[0] + from.first * c;
            g.accumulate = call.accumulate[0] || first > 0;
            team_matmul(call, g);
        });
    });
}

/// dE += dy · xᵀ of every sequence, in their order. The members share what the longest sequence reaches: an
/// element of dE is one member's, whichever sequences reach it.
template <class Real>
void backward_parameter(const Call<Real>& call) {
    const std::int64_t c = call.width;
    const PanelProduct<Real> product = panel_product(*call.kernels, call.product);
    Gemm<Real> all;
    all.m = all.m_end = call.space->longest();
    all.n = all.n_end = call.in_space[0]->longest();
    all.k = c, all.c_row = call.parameter[0].shape.dim[1];
    all.c = call.parameter_grad[0], all.accumulate = true;
    all = gemm_share(product.cut, all, call.worker.index, call.worker.count);
    each_sequence(call, [&](const Segment& from, const Segment& to) {
        Gemm<Real> g = all;
        g.m = to.length, g.n = from.length;
        g.m_end = std::min(g.m, g.m_end), g.n_end = std::min(g.n, g.n_end);
        if (g.m_begin >= g.m_end || g.n_begin >= g.n_end) return;
        g.a = {call.dout + to.first * c, kernel_type<Real>, c, 1};
        g.b = {row_at(call.in[0], call.in_type[0], from.first * c), call.in_type[0], 1, c};
        product.gemm(g, call.workspace);
    });
}

template <class Real>
void backward(Call<Real>& call) {
    if (call.din[0]) backward_input(call);
    if (call.parameter_grad[0]) backward_parameter(call);
}

}  // namespace

const Op project_op = {
    .name = "project",
    .inputs = 1,
    .parameters = 1,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .stored = stored,
    .reads_inputs = 1,
};

}  // namespace linnet
