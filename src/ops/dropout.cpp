// Inverted dropout (Srivastava et al. 2014): y = x · keep / (1 - p). The mask is never stored: it is a
// function of (seed, step, node, element), drawn again in the backward.
#include <array>

#include "base/rng.h"
#include "ops/op.h"

namespace linnet {
namespace {

std::int64_t width(const NodeShape& s) {
    return s.in[0];
}
double flops(const NodeShape& s, double) {
    return static_cast<double>(s.in[0]);
}

constexpr std::int64_t draws = 8;  // one Philox block gives eight 16-bit draws: p is exact to 1 / 65536

template <class Real>
void apply(const Call<Real>& call, const Real* from, Real* to, bool accumulate) {
    double p = call.attributes->number("probability");
    auto limit = static_cast<std::uint32_t>(p * 65536);
    Real factor = call.batch->training ? static_cast<Real>(1 / (1 - p)) : Real(1);
    if (!call.batch->training) limit = 0;
    std::uint64_t stream = call.batch->step << 16 | static_cast<std::uint64_t>(call.node);
    std::int64_t n = call.rows * call.width;
    Range range = call.worker.share(n, draws);
    for (std::int64_t i = range.begin; i < range.end; i += draws) {
        std::array<std::uint32_t, 4> bits{};
        if (limit) bits = philox(call.batch->seed, stream, static_cast<std::uint64_t>(i / draws));
        for (std::int64_t j = i; j < std::min(i + draws, n); j++) {
            std::uint32_t draw = bits[static_cast<std::size_t>((j - i) / 2)] >> (j % 2 * 16) & 0xFFFFu;
            Real y = draw >= limit ? from[j] * factor : Real(0);
            to[j] = accumulate ? to[j] + y : y;
        }
    }
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
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
};

}  // namespace linnet
