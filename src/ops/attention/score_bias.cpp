// Learned biases of attention's scores by distance (T5, Raffel et al. 2020, section 2.1), as a table that
// attention reads: W [buckets,H] -> [H,N], distance d = key - query in column zero + d. Distances up to half
// of the buckets have one each, larger ones share them by their logarithm, those from "reach" on share the
// last. Attributes: "reach"; "causal" (only keys before the query are told apart; else half of the buckets
// are for keys behind it). Rows are of a space of H rows.
#include <cmath>
#include <stdexcept>

#include "ops/rules.h"

namespace linnet {
namespace {

/// Column of distance 0, so that a vector at the table's ends has one value.
std::int64_t zero_column(const Attributes& a) {
    return a.integer("reach") + score_bias_lanes;
}

std::int64_t width(const NodeShape& s) {
    if (s.attributes.integer("bias_zero") != zero_column(s.attributes))
        throw std::logic_error("score_bias: distance 0 stands elsewhere");
    std::int64_t after = s.attributes.flag("causal") ? 0 : s.attributes.integer("reach") + 1;
    return zero_column(s.attributes) + after + score_bias_lanes;
}
std::int64_t scratch(const NodeShape& s, std::int64_t) {
    return s.parameters[0].count();
}

std::int64_t bucket_of(const Attributes& a, std::int64_t buckets, std::int64_t column) {
    std::int64_t d = column - zero_column(a), first = 0, n = -d;
    if (!a.flag("causal")) {
        buckets /= 2;
        if (d > 0) first = buckets, n = d;
    }
    std::int64_t exact = buckets / 2;
    if (n < exact) return first + std::max<std::int64_t>(n, 0);
    double share = std::log(static_cast<double>(n) / static_cast<double>(exact)) /
                   std::log(static_cast<double>(a.integer("reach")) / static_cast<double>(exact));
    auto far = exact + static_cast<std::int64_t>(share * static_cast<double>(buckets - exact));
    return first + std::min(far, buckets - 1);
}

template <class Real>
void forward(Call<Real>& call) {
    const Tensor& w = call.parameter[0];
    std::int64_t heads = w.shape.dim[1], buckets = w.shape.dim[0];
    if (call.round == 0) {
        Range rows = call.worker.share(buckets);
        for (std::int64_t b = rows.begin; b < rows.end; b++)
            call.kernels->load(heads, w.type, w.row(b), call.scratch + b * heads);
        return;
    }
    Range rows = call.worker.share(call.rows);
    for (std::int64_t c = 0; c < call.width; c++) {
        const Real* from = call.scratch + bucket_of(*call.attributes, buckets, c) * heads;
        for (std::int64_t h = rows.begin; h < rows.end; h++) call.out[h * call.width + c] = from[h];
    }
}

template <class Real>
void backward(Call<Real>& call) {
    if (!call.parameter_grad[0]) return;
    std::int64_t heads = call.rows, buckets = call.parameter[0].shape.dim[0];
    Range rows = call.worker.share(heads);
    for (std::int64_t c = 0; c < call.width; c++) {
        Real* to = call.parameter_grad[0] + bucket_of(*call.attributes, buckets, c) * heads;
        for (std::int64_t h = rows.begin; h < rows.end; h++) to[h] += call.dout[h * call.width + c];
    }
}

}  // namespace

const Op score_bias_op = {
    .name = "score_bias",
    .inputs = 0,
    .parameters = 1,
    .width = width,
    .flops = no_flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .forward_rounds = [](const auto&) { return std::int64_t{2}; },
    .scratch = scratch,
};

}  // namespace linnet
