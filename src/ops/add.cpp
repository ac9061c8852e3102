// y = a + b, the residual stream. Its gradient is that of both inputs: the plan shares one buffer where it
// can.
#include <stdexcept>

#include "ops/op.h"

namespace linnet {
namespace {

std::int64_t width(const NodeShape& s) {
    if (s.in[0] != s.in[1]) throw std::logic_error("add: inputs differ in width");
    return s.in[0];
}
double flops(const NodeShape& s, double) {
    return static_cast<double>(s.in[0]);
}

template <class Real>
void forward(Call<Real>& call) {
    Range i = call.worker.share(call.rows * call.width, 64);
    call.kernels->add(i.size(), call.in[0] + i.begin, call.in[1] + i.begin, call.out + i.begin);
}

template <class Real>
void backward(Call<Real>&) {}  // passes_gradient: the executor copies or shares

}  // namespace

const Op add_op = {
    .name = "add",
    .inputs = 2,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .passes_gradient = true,
    .by_row = true,
};

}  // namespace linnet
