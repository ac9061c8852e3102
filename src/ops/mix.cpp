// y = a ∘ x + b ∘ z.  x, z, y [R,C]; a and b are learned: [C], or [1] for all columns alike.
#include <stdexcept>

#include "ops/rules.h"

namespace linnet {
namespace {

std::int64_t width(const NodeShape& s) {
    if (s.in[0] != s.in[1]) throw std::logic_error("mix: inputs differ in width");
    for (const Shape& p : s.parameters)
        if (p.count() != 1 && p.count() != s.in[0]) throw std::logic_error("mix: factors do not fit");
    return s.in[0];
}
double flops(const NodeShape& s, double) {
    return 3.0 * static_cast<double>(s.in[0]);
}
std::int64_t column_sums(const NodeShape& s, std::int64_t) {
    return 2 * s.in[0];
}

/// The factors of input i: column c's is at c times the step.
template <class Real>
struct Factors {
    const Real* at;
    std::int64_t step;
    Factors(const Call<Real>& call, int i)
        : at(call.vector(i)), step(call.parameter[static_cast<std::size_t>(i)].shape.count() > 1) {}
    Real operator[](std::int64_t c) const { return at[c * step]; }
};

template <class Real>
void forward(Call<Real>& call) {
    const Factors<Real> a(call, 0), b(call, 1);
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        const Real *x = call.in[0] + r * call.width, *z = call.in[1] + r * call.width;
        Real* y = call.out + r * call.width;
        for (std::int64_t c = 0; c < call.width; c++) y[c] = a[c] * x[c] + b[c] * z[c];
    }
}

// dx = a ∘ dy, dz = b ∘ dy, da += Σ dy ∘ x, db += Σ dy ∘ z. A column's sum is one part's, row after row; the
// sum of columns, where they are alike, comes in a round of its own.
template <class Real>
void backward(Call<Real>& call) {
    const std::int64_t width = call.width;
    Range columns = call.worker.share(width, 16);
    for (std::size_t i = 0; i < 2; i++) {
        const Factors<Real> factor(call, static_cast<int>(i));
        Real *sums = call.scratch + static_cast<std::int64_t>(i) * width, *grad = call.parameter_grad[i];
        if (call.round == 1) {
            if (!grad || call.worker.index != 0) continue;
            for (std::int64_t c = 0; c < width; c++) grad[c * factor.step] += sums[c];
            continue;
        }
        for (std::int64_t c = columns.begin; c < columns.end; c++) sums[c] = 0;
        for (std::int64_t r = 0; r < call.rows; r++) {
            const Real *dy = call.dout + r * width, *x = call.in[i] + r * width;
            for (std::int64_t c = columns.begin; grad && c < columns.end; c++) sums[c] += dy[c] * x[c];
            Real* dx = call.din[i] ? call.din[i] + r * width : nullptr;
            for (std::int64_t c = columns.begin; dx && c < columns.end; c++)
                dx[c] = accumulated(call.accumulate[i], dx[c], factor[c] * dy[c]);
        }
    }
}

}  // namespace

const Op mix_op = {
    .name = "mix",
    .inputs = 2,
    .parameters = 2,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .backward_rounds = [](const auto&) -> std::int64_t { return 2; },
    .reads_inputs = 3,
    .by_row = true,
    .backward_scratch = column_sums,
};

}  // namespace linnet
