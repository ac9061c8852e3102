// y = f(x), and the gated y = f(gate) · up (Shazeer 2020, "GLU variants": SwiGLU with silu, GeGLU with gelu).
// All [R,F]; f is attribute "kind", an Activation of kernels.h.
#include <stdexcept>

#include "ops/op.h"

namespace linnet {
namespace {

std::int64_t width(const NodeShape& s) {
    return s.in[0];
}
std::int64_t gated_width(const NodeShape& s) {
    if (s.in[0] != s.in[1]) throw std::logic_error("gated: gate and up differ in width");
    return s.in[0];
}
double flops(const NodeShape& s, double) {
    return 10.0 * static_cast<double>(s.in[0]);
}

template <class Real>
Activation kind(const Call<Real>& call) {
    return static_cast<Activation>(call.attributes->integer("kind"));
}

template <class Real>
void forward(Call<Real>& call) {
    Range i = call.worker.share(call.rows * call.width, 64);
    call.kernels->activation(kind(call), i.size(), call.in[0] + i.begin, call.out + i.begin);
}

template <class Real>
void backward(Call<Real>& call) {
    Range i = call.worker.share(call.rows * call.width, 64);
    call.kernels->activation_backward(kind(call), i.size(), call.in[0] + i.begin, call.dout + i.begin,
                                      call.din[0] + i.begin, call.accumulate[0]);
}

template <class Real>
void gated_forward(Call<Real>& call) {
    Range i = call.worker.share(call.rows * call.width, 64);
    call.kernels->gated(kind(call), i.size(), call.in[0] + i.begin, call.in[1] + i.begin, call.out + i.begin);
}

template <class Real>
void gated_backward(Call<Real>& call) {
    Range i = call.worker.share(call.rows * call.width, 64);
    call.kernels->gated_backward(kind(call), i.size(), call.in[0] + i.begin, call.in[1] + i.begin,
                                 call.dout + i.begin, call.din[0] + i.begin, call.din[1] + i.begin,
                                 call.accumulate[0], call.accumulate[1]);
}

}  // namespace

const Op activation_op = {
    .name = "activation",
    .inputs = 1,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .reads_inputs = 1,
};

const Op gated_op = {
    .name = "gated",
    .inputs = 2,
    .width = gated_width,
    .flops = flops,
    .forward = [](auto& call) { gated_forward(call); },
    .backward = [](auto& call) { gated_backward(call); },
    .reads_inputs = 3,
};

}  // namespace linnet
