// LayerNorm (Ba et al. 2016): y = (x - mean) / sqrt(var + eps) · w + b.
// RMSNorm (Zhang & Sennrich 2019): y = x / sqrt(mean(x²) + eps) · w.   x, y [R,C]; w, b [C].
#include "ops/op.h"

namespace linnet {
namespace {

std::int64_t width(const NodeShape& s) {
    return s.in[0];
}
double flops(const NodeShape& s, double) {
    return 8.0 * static_cast<double>(s.in[0]);
}
std::int64_t saved(const NodeShape&) {
    return 2;
}  // mean, 1 / deviation

template <class Real>
struct RowShare {
    Range rows;
    std::int64_t at;
    Real* saved;
    explicit RowShare(const Call<Real>& call)
        : rows(call.worker.share(call.rows)),
          at(rows.begin * call.width),
          saved(call.saved ? call.saved + 2 * rows.begin : nullptr) {}
};

template <class Real>
void layer_forward(Call<Real>& call) {
    RowShare<Real> s(call);
    call.kernels->layer_norm(s.rows.size(), call.width, call.in[0] + s.at, call.vector(0), call.vector(1),
                             static_cast<Real>(call.attributes->number("epsilon")), call.out + s.at, s.saved);
}

template <class Real>
void rms_forward(Call<Real>& call) {
    RowShare<Real> s(call);
    call.kernels->rms_norm(s.rows.size(), call.width, call.in[0] + s.at, call.vector(0),
                           static_cast<Real>(call.attributes->number("epsilon")), call.out + s.at, s.saved);
}

/// The gradient of x is shared out by rows, that of w and b by columns: no barrier, no partial sums.
template <class Real, class RowKernel>
void backward(Call<Real>& call, RowKernel row_kernel) {
    if (call.din[0]) {
        RowShare<Real> s(call);
        row_kernel(s.rows.size(), call.width, call.in[0] + s.at, call.vector(0), s.saved, call.dout + s.at,
                   call.din[0] + s.at, call.accumulate[0]);
    }
    if (call.parameter_grad[0]) {
        Range columns = call.worker.share(call.width, 16);
        call.kernels->norm_backward_weights(call.rows, call.width, columns.begin, columns.end, call.in[0],
                                            call.saved, call.dout, call.parameter_grad[0],
                                            call.parameter_grad[1]);
    }
}

template <class Real>
void layer_backward(Call<Real>& call) {
    backward(call, call.kernels->layer_norm_backward);
}
template <class Real>
void rms_backward(Call<Real>& call) {
    backward(call, call.kernels->rms_norm_backward);
}

}  // namespace

const Op layer_norm_op = {
    .name = "layer_norm",
    .inputs = 1,
    .parameters = 2,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { layer_forward(call); },
    .backward = [](auto& call) { layer_backward(call); },
    .reads_inputs = 1,
    .saved = saved,
};

const Op rms_norm_op = {
    .name = "rms_norm",
    .inputs = 1,
    .parameters = 1,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { rms_forward(call); },
    .backward = [](auto& call) { rms_backward(call); },
    .reads_inputs = 1,
    .saved = saved,
};

}  // namespace linnet
