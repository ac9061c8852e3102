// Inverted dropout (Srivastava et al. 2014): y = x · keep / (1 - p). The mask is never stored: it is a
// function of (seed, step, node, element), drawn again in the backward; p is exact to 1 / 65536.
#include "ops/rules.h"

namespace linnet {
namespace {

double flops(const NodeShape& s, double) {
    return static_cast<double>(s.in[0]);
}

template <class Real>
void apply(const Call<Real>& call, const Real* from, Real* to, bool accumulate) {
    const double p = call.attributes->number("probability");
    const Range range = call.worker.share(call.rows * call.width, dropout_draws);
    Dropout<Real> d;
    d.key = call.batch->seed, d.stream = call.batch->step << 16 | static_cast<std::uint64_t>(call.node);
    d.counter = static_cast<std::uint64_t>(range.begin / dropout_draws);
    if (call.batch->training)
        d.limit = static_cast<std::uint32_t>(p * 65536), d.factor = static_cast<Real>(1 / (1 - p));
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
