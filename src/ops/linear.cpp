// y = x · Wᵀ + b.  x [R,C], W [N,C], b [N], y [R,N].
#include <cmath>
#include <stdexcept>

#include "ops/matmul.h"

namespace linnet {
namespace {

std::int64_t width(const NodeShape& s) {
    if (s.parameters[0].dim[1] != s.in[0]) throw std::logic_error("linear: weight does not fit its input");
    return s.parameters[0].dim[0];
}

double flops(const NodeShape& s, double) {
    return 2.0 * static_cast<double>(s.parameters[0].count());
}

StoredForms stored(const NodeShape& s, ProductKernel product) {
    const NarrowProducts<float>& narrow = kernels().narrow;
    return {1, product == ProductKernel::bf16 && narrow.rounded && s.in[0] <= narrow.rounded_longest};
}

template <class Real>
void forward(Call<Real>& call) {
    Gemm<Real> g;
    g.m = call.rows, g.n = call.width, g.k = call.in_width[0];
    g.a = {call.in[0], call.in_type[0], g.k, 1};
    g.c = call.out, g.c_row = g.n;
    if (call.out_type == DType::bf16) g.bf16 = reinterpret_cast<std::uint16_t*>(call.out);
    g.bias = call.vector(1);
    g.add = call.add, g.add_row = g.n;
    team_project(call, g, call.parameter[0], call.product);
}

// dx = dy · W;  dW += dyᵀ · x;  db += column sums of dy. The outputs are apart, so no barrier stands between
// them.
template <class Real>
void backward(Call<Real>& call) {
    std::int64_t n = call.width, c = call.in_width[0];
    const Operand dy{call.dout, kernel_type<Real>, n, 1};
    if (call.din[0])
        team_project_back(call, dy, call.rows, call.parameter[0], call.din[0], call.accumulate[0]);
    if (call.parameter_grad[0])
        team_weight_gradient(call, dy, {call.in[0], call.in_type[0], c, 1}, call.rows, n,
                             call.parameter_grad[0]);
    if (call.parameter_grad[1]) {
        Range columns = call.worker.share(n, 16);
        call.kernels->column_sum(call.rows, n, columns.begin, columns.end, call.dout, call.parameter_grad[1]);
    }
}

}  // namespace

const Op linear_op = {
    .name = "linear",
    .inputs = 1,
    .parameters = 2,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .stored = stored,
    .reads_inputs = 1,
    .can_add = true,
    .product = true,
    .by_row = true,
};

}  // namespace linnet
