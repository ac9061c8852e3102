// y = s · x;  y = min(max(x, -c), c), "clamp";  y = c · tanh(x / c), "soft cap" (Bello et al. 2016, section
// 5). All [R,C]; s and c are the attribute "value".
#include <algorithm>

#include "ops/rules.h"

namespace linnet {
namespace {

double flops(const NodeShape& s, double) {
    return static_cast<double>(s.in[0]);
}

template <class Real>
Real value(const Call<Real>& call) {
    return static_cast<Real>(call.attributes->number("value"));
}

template <class Real>
Range share(const Call<Real>& call) {
    return call.worker.share(call.rows * call.width, 64);
}

/// Stores gradient(i) for every element i of the part, or adds it.
template <class Real, class Gradient>
void each_gradient(const Call<Real>& call, const Gradient& gradient) {
    Range part = share(call);
    Real* dx = call.din[0];
    for (std::int64_t i = part.begin; i < part.end; i++)
        dx[i] = accumulated(call.accumulate[0], dx[i], gradient(i));
}

template <class Real>
void scale_forward(Call<Real>& call) {
    Range i = share(call);
    call.kernels->scale(i.size(), value(call), call.in[0] + i.begin, call.out + i.begin);
}
template <class Real>
void scale_backward(Call<Real>& call) {
    Real s = value(call);
    each_gradient(call, [&](std::int64_t i) { return s * call.dout[i]; });
}

template <class Real>
void clamp_forward(Call<Real>& call) {
    Range part = share(call);
    Real c = value(call);
    for (std::int64_t i = part.begin; i < part.end; i++) call.out[i] = std::clamp(call.in[0][i], -c, c);
}
template <class Real>
void clamp_backward(Call<Real>& call) {
    Real c = value(call);
    each_gradient(call, [&](std::int64_t i) {
        Real x = call.in[0][i];
        return x < -c || x > c ? Real(0) : call.dout[i];
    });
}

template <class Real>
void softcap_forward(Call<Real>& call) {
    Range i = share(call);
    softcap(*call.kernels, value(call), i.size(), call.in[0] + i.begin, call.out + i.begin);
}
template <class Real>
void softcap_backward(Call<Real>& call) {
    const Real inverse = 1 / value(call);
    each_gradient(call, [&](std::int64_t i) { return call.dout[i] * softcap_slope(inverse, call.out[i]); });
}

}  // namespace

const Op scale_op = {
    .name = "scale",
    .inputs = 1,
    .width = input_width,
    .flops = flops,
    .forward = [](auto& call) { scale_forward(call); },
    .backward = [](auto& call) { scale_backward(call); },
    .by_row = true,
    .in_place = 1,
};

const Op clamp_op = {
    .name = "clamp",
    .inputs = 1,
    .width = input_width,
    .flops = flops,
    .forward = [](auto& call) { clamp_forward(call); },
    .backward = [](auto& call) { clamp_backward(call); },
    .reads_inputs = 1,
    .by_row = true,
    .in_place = 1,
};

const Op softcap_op = {
    .name = "softcap",
    .inputs = 1,
    .width = input_width,
    .flops = flops,
    .forward = [](auto& call) { softcap_forward(call); },
    .backward = [](auto& call) { softcap_backward(call); },
    .reads_output = true,
    .by_row = true,
    .in_place = 1,
};

}  // namespace linnet
