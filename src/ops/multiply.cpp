// Products of values, element by element.   a, x, y [R,C].
// multiply: y = a ∘ b, b [R,C], or [R,H] where each of H parts of a row has one factor.
// weigh: y = x ∘ w, w a parameter, [C], or [H] likewise.
// group_sum: y [R,H], the sums of the H parts ("heads") of a row.
// repeat: y [R,H·P] from x [R,G·P]: head h ("heads" of them) is part h / (H / G) ("groups" of them).
#include <stdexcept>

#include "ops/rules.h"

namespace linnet {
namespace {

std::int64_t multiply_width(const NodeShape& s) {
    if (s.in[1] < 1 || s.in[0] % s.in[1] != 0) throw std::logic_error("multiply: widths do not fit");
    return s.in[0];
}
std::int64_t weigh_width(const NodeShape& s) {
    if (s.in[0] % s.parameters[0].count() != 0) throw std::logic_error("weigh: widths do not fit");
    return s.in[0];
}
std::int64_t heads_of(const NodeShape& s) {
    std::int64_t heads = s.attributes.integer("heads");
    if (heads < 1 || s.in[0] % heads != 0) throw std::logic_error("group_sum: heads do not fit");
    return heads;
}
std::int64_t repeat_width(const NodeShape& s) {
    std::int64_t heads = s.attributes.integer("heads"), groups = s.attributes.integer("groups");
    if (groups < 1 || heads % groups != 0 || s.in[0] % groups != 0)
        throw std::logic_error("repeat: groups do not fit");
    return s.in[0] / groups * heads;
}
double flops(const NodeShape& s, double) {
    return static_cast<double>(s.in[0]);
}

/// Factors b of the parts of a row: rows [R,H] are taken by part.
template <class Real>
void multiply_forward(Call<Real>& call) {
    const std::int64_t part = call.width / call.in_width[1];
    const Real *a = call.in[0], *b = call.in[1];
    Range work = call.worker.share(call.rows * call.in_width[1], 16);
    if (part == 1)
        return call.kernels->multiply(work.size(), a + work.begin, b + work.begin, call.out + work.begin,
                                      false);
    for (std::int64_t i = work.begin; i < work.end; i++)
        call.kernels->scale(part, b[i], a + i * part, call.out + i * part);
}

template <class Real>
void multiply_backward(Call<Real>& call) {
    const std::int64_t part = call.width / call.in_width[1];
    Range work = call.worker.share(call.rows * call.in_width[1], 16);
    for (std::size_t i = 0; part == 1 && i < 2; i++)
        if (call.din[i])
            call.kernels->multiply(work.size(), call.dout + work.begin, call.in[1 - i] + work.begin,
                                   call.din[i] + work.begin, call.accumulate[i]);
    if (part == 1) return;
    for (std::int64_t i = work.begin; i < work.end; i++) {
        Real sum = 0;
        for (std::int64_t k = i * part; k < (i + 1) * part; k++) {
            sum += call.dout[k] * call.in[0][k];
            if (call.din[0])
                call.din[0][k] =
                    accumulated(call.accumulate[0], call.din[0][k], call.dout[k] * call.in[1][i]);
        }
        if (call.din[1]) call.din[1][i] = accumulated(call.accumulate[1], call.din[1][i], sum);
    }
}

/// y (+)= x ∘ w for this part's rows.
template <class Real>
void weigh_rows(const Call<Real>& call, const Real* x, Real* y, bool accumulate) {
    const std::int64_t parts = call.parameter[0].shape.count(), part = call.width / parts;
    const Range rows = call.worker.share(call.rows);
    const Real* w = call.vector(0);
    for (std::int64_t at = rows.begin * call.width; at < rows.end * call.width; at += call.width) {
        if (part == 1) {
            call.kernels->multiply(parts, x + at, w, y + at, accumulate);
            continue;
        }
        for (std::int64_t i = 0; i < parts; i++)
            for (std::int64_t k = at + i * part; k < at + (i + 1) * part; k++)
                y[k] = accumulated(accumulate, y[k], x[k] * w[i]);
    }
}

template <class Real>
void weigh_forward(Call<Real>& call) {
    weigh_rows(call, call.in[0], call.out, false);
}

template <class Real>
void weigh_backward(Call<Real>& call) {
    const std::int64_t parts = call.parameter[0].shape.count(), part = call.width / parts;
    if (call.din[0]) weigh_rows(call, call.dout, call.din[0], call.accumulate[0]);
    Real* dw = call.parameter_grad[0];
    if (!dw) return;
    const Range own = call.worker.share(parts, part > 1 ? 1 : 16);
    for (std::int64_t row = 0; row < call.rows * call.width; row += call.width) {
        const Real *dy = call.dout + row, *x = call.in[0] + row;
        if (part == 1) {
            call.kernels->multiply(own.size(), dy + own.begin, x + own.begin, dw + own.begin, true);
            continue;
        }
        for (std::int64_t i = own.begin; i < own.end; i++)
            for (std::int64_t k = i * part; k < (i + 1) * part; k++) dw[i] += dy[k] * x[k];
    }
}

template <class Real>
void sum_forward(Call<Real>& call) {
    const std::int64_t part = call.in_width[0] / call.width;
    Range work = call.worker.share(call.rows * call.width, 16);
    for (std::int64_t i = work.begin; i < work.end; i++) {
        Real sum = 0;
        for (std::int64_t k = i * part; k < (i + 1) * part; k++) sum += call.in[0][k];
        call.out[i] = sum;
    }
}

template <class Real>
void sum_backward(Call<Real>& call) {
    const std::int64_t part = call.in_width[0] / call.width;
    Range work = call.worker.share(call.rows * call.width, 16);
    for (std::int64_t i = work.begin; i < work.end; i++)
        for (std::int64_t k = i * part; k < (i + 1) * part; k++)
            call.din[0][k] = accumulated(call.accumulate[0], call.din[0][k], call.dout[i]);
}

template <class Real>
void repeat_forward(Call<Real>& call) {
    const std::int64_t heads = call.attributes->integer("heads"), part = call.width / heads,
                       each = heads * part / call.in_width[0];
    Range work = call.worker.share(call.rows * heads);
    for (std::int64_t i = work.begin; i < work.end; i++)
        std::copy_n(call.in[0] + i / each * part, part, call.out + i * part);
}

template <class Real>
void repeat_backward(Call<Real>& call) {
    const std::int64_t heads = call.attributes->integer("heads"), part = call.width / heads,
                       each = heads * part / call.in_width[0];
    Range work = call.worker.share(call.rows * heads / each);
    for (std::int64_t i = work.begin; i < work.end; i++)
        for (std::int64_t k = 0; k < part; k++) {
            Real sum = 0;
            for (std::int64_t h = 0; h < each; h++) sum += call.dout[(i * each + h) * part + k];
            Real& to = call.din[0][i * part + k];
            to = accumulated(call.accumulate[0], to, sum);
        }
}

}  // namespace

const Op multiply_op = {
    .name = "multiply",
    .inputs = 2,
    .width = multiply_width,
    .flops = flops,
    .forward = [](auto& call) { multiply_forward(call); },
    .backward = [](auto& call) { multiply_backward(call); },
    .reads_inputs = 3,
    .by_row = true,
    .in_place = 3,
};

const Op weigh_op = {
    .name = "weigh",
    .inputs = 1,
    .parameters = 1,
    .width = weigh_width,
    .flops = flops,
    .forward = [](auto& call) { weigh_forward(call); },
    .backward = [](auto& call) { weigh_backward(call); },
    .reads_inputs = 1,
    .by_row = true,
};

const Op group_sum_op = {
    .name = "group_sum",
    .inputs = 1,
    .width = heads_of,
    .flops = flops,
    .forward = [](auto& call) { sum_forward(call); },
    .backward = [](auto& call) { sum_backward(call); },
    .by_row = true,
};

const Op repeat_op = {
    .name = "repeat",
    .inputs = 1,
    .width = repeat_width,
    .flops = flops,
    .forward = [](auto& call) { repeat_forward(call); },
    .backward = [](auto& call) { repeat_backward(call); },
    .by_row = true,
};

}  // namespace linnet
