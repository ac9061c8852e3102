// LayerNorm (Ba et al. 2016): y = (x - mean) / sqrt(var + eps) · w + b.
// RMSNorm (Zhang & Sennrich 2019): y = x / sqrt(mean(x²) + eps) · w.   x, y [R,C]; w, b [C] or none.
// With the attribute "groups" G, each of the G parts of a row is normalized by itself (heads of queries and
// keys: Dehghani et al. 2023, section 2.2): w [C/G], the same for all, or [C].
#include <stdexcept>

#include "ops/op.h"

namespace linnet {
namespace {

std::int64_t groups(const Attributes& attributes) {
    return attributes.has("groups") ? attributes.integer("groups") : 1;
}

std::int64_t width(const NodeShape& s) {
    std::int64_t part = s.in[0] / groups(s.attributes);
    if (s.in[0] % groups(s.attributes)) throw std::logic_error("norm: groups do not divide the width");
    for (const Shape& p : s.parameters)
        if (p.count() != part && p.count() != s.in[0])
            throw std::logic_error("norm: parameters do not fit the width");
    return s.in[0];
}
double flops(const NodeShape& s, double) {
    return 8.0 * static_cast<double>(s.in[0]);
}
StoredForms stored(const NodeShape& s, ProductKernel) {
    constexpr std::int64_t widest = 16384;  // a row must fit a member's workspace, whatever the kernels
    return {0, s.in[0] <= widest};
}
/// Mean and 1 / deviation.
std::int64_t saved(const NodeShape& s) {
    return 2 * groups(s.attributes);
}

/// Rows that share their parameters, one after another: of width C, or each of G parts of C/G; where each
/// part has parameters of its own, one part.
template <class Real>
struct Piece {
    std::int64_t rows, width, x, saved, parameter;  // the last three: where it begins
    const Real* of(const Real* from, std::int64_t at) const { return from ? from + at : nullptr; }
};

template <class Real, class Visit>
void each_piece(const Call<Real>& call, Range rows, const Visit& visit) {
    std::int64_t parts = groups(*call.attributes), width = call.width / parts;
    bool apart = parts > 1 && call.parameter[0].data && call.parameter[0].shape.count() == call.width;
    if (!apart)
        return visit(
            Piece<Real>{rows.size() * parts, width, rows.begin * call.width, 2 * rows.begin * parts, 0});
    for (std::int64_t i = rows.begin * parts; i < rows.end * parts; i++)
        visit(Piece<Real>{1, width, i * width, 2 * i, i % parts * width});
}

template <class Real>
Real epsilon(const Call<Real>& call) {
    return static_cast<Real>(call.attributes->number("epsilon"));
}

/// Calls norm(piece, out, saved); where the output is stored in another type, a few rows at a time, which the
/// workspace takes.
template <class Real, class Norm>
void forward(const Call<Real>& call, const Norm& norm) {
    auto* const room = static_cast<Real*>(call.workspace);
    const std::int64_t rows = std::max<std::int64_t>(1, 4096 / call.width);
    const bool stored = call.out_type != kernel_type<Real>;
    const Range all = call.worker.share(call.rows);
    const std::int64_t step = stored ? rows : std::max<std::int64_t>(1, all.size());
    for (std::int64_t begin = all.begin; begin < all.end; begin += step) {
        const Range r{begin, std::min(begin + step, all.end)};
        const std::int64_t first = r.begin * call.width;
        Real* const out = output_numbers(call, first, room);
        each_piece(call, r, [&](const Piece<Real>& p) {
            norm(p, out + (p.x - first), call.saved ? call.saved + p.saved : nullptr);
        });
        output_made(call, first, r.size() * call.width, room);
    }
}

template <class Real>
void layer_forward(Call<Real>& call) {
    forward(call, [&](const Piece<Real>& p, Real* out, Real* saved) {
        call.kernels->layer_norm(p.rows, p.width, call.in[0] + p.x, p.of(call.vector(0), p.parameter),
                                 p.of(call.vector(1), p.parameter), epsilon(call), out, saved);
    });
}

template <class Real>
void rms_forward(Call<Real>& call) {
    forward(call, [&](const Piece<Real>& p, Real* out, Real* saved) {
        call.kernels->rms_norm(p.rows, p.width, call.in[0] + p.x, p.of(call.vector(0), p.parameter),
                               epsilon(call), out, saved);
    });
}

/// The gradient of x is shared out by rows, that of w and b by columns: no barrier, no partial sums.
template <class Real, class RowKernel>
void backward(Call<Real>& call, RowKernel row_kernel) {
    if (call.din[0])
        each_piece(call, call.worker.share(call.rows), [&](const Piece<Real>& p) {
            row_kernel(p.rows, p.width, call.in[0] + p.x, p.of(call.vector(0), p.parameter),
                       call.saved + p.saved, call.dout + p.x, call.din[0] + p.x, call.accumulate[0]);
        });
    if (!call.parameter_grad[0]) return;
    Range columns = call.worker.share(call.width / groups(*call.attributes), 16);
    each_piece(call, {0, call.rows}, [&](const Piece<Real>& p) {
        Real* bias = call.parameter_grad[1];
        call.kernels->norm_backward_weights(
            p.rows, p.width, columns.begin, columns.end, call.in[0] + p.x, call.saved + p.saved,
            call.dout + p.x, call.parameter_grad[0] + p.parameter, bias ? bias + p.parameter : nullptr);
    });
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
    .stored = stored,
    .reads_inputs = 1,
    .by_row = true,
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
    .stored = stored,
    .reads_inputs = 1,
    .by_row = true,
    .saved = saved,
};

}  // namespace linnet
