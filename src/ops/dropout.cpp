// Inverted dropout (Srivastava et al. 2014): y = x · keep / (1 - p), the mask drawn again in the backward.
#include "ops/rules.h"

namespace linnet {
namespace {

double flops(const NodeShape& s, double) {
    return static_cast<double>(s.in[0]);
}

template <class Real>
void apply(const Call<Real>& call, const Real* from, Real* to, bool accumulate) {
    const Range range = call.worker.share(call.rows * call.width, dropout_draws);
    Dropout<Real> d = dropout_of(call, call.attributes->number("probability"));
    d.counter = static_cast<std::uint64_t>(range.begin / dropout_draws);
    call.kernels->dropout(range.size(), d, from + range.begin, to + range.begin, accumulate);
}

template <class Real>
void forward(Call<Real>& call) {
    apply(call, call.in[0], call.out, false);
}
template <class Real>
void backward(Call<Real>& call) {
    apply(call, call.dout, call.din[0], call.accumulate[0]);
}

}  // namespace

const Op dropout_op = {
    .name = "dropout",
    .inputs = 1,
    .width = input_width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
};

}  // namespace linnet
