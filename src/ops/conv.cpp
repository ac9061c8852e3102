// Over the rows of a sequence, channel by channel.   x, y [R,C].
// conv: y[t] = bias + Σ w[k] x[t - K + 1 + k], the causal depthwise convolution before a selective scan (Gu &
// Dao 2023, section 3.4).   w [C·K], bias [C] or none.  Its state is the last K - 1 rows of x.
// shift: y[t] = x[t - 1] - x[t], RWKV's token shift (Peng et al. 2023, section 3.1).  Its state: the last
// row.
#include "ops/recurrent.h"
#include "ops/rules.h"

namespace linnet {
namespace {

constexpr std::int64_t widest = 16, block = 64;  // K; channels at a time

std::int64_t conv_width(const NodeShape& s) {
    std::int64_t k = s.attributes.integer("kernel");
    if (k < 1 || k > widest || s.parameters[0].count() != s.in[0] * k)
        throw std::logic_error("conv: weight does not fit its input");
    return s.in[0];
}
double conv_flops(const NodeShape& s, double) {
    return 2 * static_cast<double>(s.parameters[0].count());
}

/// Weights of some channels, or their gradients, [K, block].
template <class Real>
struct Taps {
    std::int64_t kernel, channels;
    Real w[widest][block];

    /// From a parameter [C·K].
    Taps(const Call<Real>& call, Range c, const Real* from)
        : kernel(call.attributes->integer("kernel")), channels(c.size()) {
        for (std::int64_t i = 0; i < channels; i++)
            for (std::int64_t k = 0; k < kernel; k++) w[k][i] = from[(c.begin + i) * kernel + k];
    }
    void put_back(Range c, Real* to) const {
        for (std::int64_t i = 0; i < channels; i++)
            for (std::int64_t k = 0; k < kernel; k++) to[(c.begin + i) * kernel + k] = w[k][i];
    }
};

/// Calls visit(channels, taps, segment, sums) for this part's channels, a block at a time, and each sequence.
/// The weights' gradient, where it is given, is summed in `sums`.
template <class Real, class Visit>
void each_stretch(const Call<Real>& call, Real* gradient, const Visit& visit) {
    const Range all = call.worker.share(call.width, 16);
    for (std::int64_t first = all.begin; first < all.end; first += block) {
        const Range c{first, std::min(first + block, all.end)};
        const Taps<Real> taps(call, c, call.vector(0));
        Taps<Real> sums = taps;
        if (gradient) sums = Taps<Real>(call, c, gradient);
        for (const Segment& s : call.space->segments)
            if (s.length > 0) visit(c, taps, s, sums);
        if (gradient) sums.put_back(c, gradient);
    }
}

template <class Real>
void conv_forward(Call<Real>& call) {
    const std::int64_t row = call.width;
    const KernelTable<Real>& kernels = *call.kernels;
    Real* const no_gradient = nullptr;
    each_stretch(call, no_gradient, [&](Range c, const auto& taps, const Segment& s, auto&) {
        const std::int64_t past = taps.kernel - 1, n = c.size();
        Real* state = carried(call, s);
        Real before[widest][block] = {};  // the rows before the first
        for (std::int64_t k = 0; state && k < past; k++) std::copy_n(state + k * row + c.begin, n, before[k]);
        const Real* x = call.in[0] + s.first * row + c.begin;
        Real* y = call.out + s.first * row + c.begin;
        for (std::int64_t t = 0; t < s.length; t++) {
            Real* to = y + t * row;
            for (std::int64_t i = 0; i < n; i++)
                to[i] = call.vector(1) ? call.vector(1)[c.begin + i] : Real(0);
            for (std::int64_t k = 0; k < taps.kernel; k++) {
                const std::int64_t at = t - past + k;
                kernels.multiply(n, taps.w[k], at < 0 ? before[past + at] : x + at * row, to, true);
            }
        }
        for (std::int64_t k = 0; state && k < past; k++) {
            const std::int64_t at = s.length - past + k;
            std::copy_n(at < 0 ? before[past + at] : x + at * row, n, state + k * row + c.begin);
        }
    });
}

/// dx[t] = Σ w[k] dy[t + K - 1 - k];  dw[k] = Σ dy[t] x[t - K + 1 + k].
template <class Real>
void conv_backward(Call<Real>& call) {
    const std::int64_t row = call.width;
    const KernelTable<Real>& kernels = *call.kernels;
    Real* const dw = call.parameter_grad[0];
    each_stretch(call, dw, [&](Range c, const auto& taps, const Segment& s, auto& sums) {
        const std::int64_t past = taps.kernel - 1, n = c.size(), first = s.first * row + c.begin;
        const Real *x = call.in[0] + first, *dy = call.dout + first;
        for (std::int64_t t = 0; call.din[0] && t < s.length; t++) {
            Real* to = call.din[0] + first + t * row;
            if (!call.accumulate[0]) std::fill_n(to, n, Real(0));
            for (std::int64_t k = 0; k < taps.kernel && t + past - k >= 0; k++)
                if (const std::int64_t at = t + past - k; at < s.length)
                    kernels.multiply(n, taps.w[k], dy + at * row, to, true);
        }
        for (std::int64_t k = 0; dw && k < taps.kernel; k++)
            for (std::int64_t t = past - k; t < s.length; t++)
                kernels.multiply(n, dy + t * row, x + (t - past + k) * row, sums.w[k], true);
    });
    if (!call.parameter_grad[1]) return;
    Range columns = call.worker.share(row, 16);
    kernels.column_sum(call.rows, row, columns.begin, columns.end, call.dout, call.parameter_grad[1]);
}

double shift_flops(const NodeShape& s, double) {
    return static_cast<double>(s.in[0]);
}

template <class Real>
void shift_forward(Call<Real>& call) {
    const std::int64_t row = call.width;
    Range c = call.worker.share(row, 16);
    for (const Segment& s : call.space->segments) {
        if (s.length == 0) continue;
        Real* state = carried(call, s);
        for (std::int64_t t = 0; t < s.length; t++) {
            const Real* x = call.in[0] + (s.first + t) * row;
            const Real* before = t > 0 ? x - row : state;
            Real* y = call.out + (s.first + t) * row;
            for (std::int64_t i = c.begin; i < c.end; i++) y[i] = (before ? before[i] : Real(0)) - x[i];
        }
        const Real* last = call.in[0] + (s.first + s.length - 1) * row;
        if (state) std::copy(last + c.begin, last + c.end, state + c.begin);
    }
}

template <class Real>
void shift_backward(Call<Real>& call) {
    const std::int64_t row = call.width;
    Range c = call.worker.share(row, 16);
    for (const Segment& s : call.space->segments)
        for (std::int64_t t = 0; t < s.length; t++) {
            const Real* dy = call.dout + (s.first + t) * row;
            Real* dx = call.din[0] + (s.first + t) * row;
            for (std::int64_t i = c.begin; i < c.end; i++)
                dx[i] = accumulated(call.accumulate[0], dx[i],
                                    (t + 1 < s.length ? dy[row + i] : Real(0)) - dy[i]);
        }
}

}  // namespace

const Op conv_op = {
    .name = "conv",
    .inputs = 1,
    .parameters = 2,
    .width = conv_width,
    .flops = conv_flops,
    .forward = [](auto& call) { conv_forward(call); },
    .backward = [](auto& call) { conv_backward(call); },
    .reads_inputs = 1,
};

const Op shift_op = {
    .name = "shift",
    .inputs = 1,
    .width = input_width,
    .flops = shift_flops,
    .forward = [](auto& call) { shift_forward(call); },
    .backward = [](auto& call) { shift_backward(call); },
};

}  // namespace linnet
