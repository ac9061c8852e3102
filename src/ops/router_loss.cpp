// What training adds to the loss of a mixture of experts, from router scores x [R,E] and the bounds of the
// experts' places [E+1,1]; out [R,1], so that the mean over all rows, whether they have targets or not, times
// Batch::step_share is the sum of
//   balance · E · Σ_e f_e P_e (Shazeer et al. 2017; Fedus et al. 2022, section 2.2): f_e is the share of all
//     choices that went to e, which has no gradient, P_e the mean over rows of p_e = softmax(x), or of
//     "sigmoid" scores each one's share of their sum;
//   z · mean_r (log Σ_e exp x_re)² (Zoph et al. 2022, ST-MoE, section 3).
// Each micro-batch is balanced by itself.
#include <algorithm>
#include <cmath>

#include "ops/experts.h"
#include "ops/rules.h"

namespace linnet {
namespace {

/// A row's terms, as functions of its scores.
template <class Real>
struct RouterRow {
    const Call<Real>& call;
    const Real* x;
    std::int64_t experts;
    bool sigmoid;
    Real most, total = 0, shares = 0;  // total: of exp(x - most); shares: of what P is made of

    RouterRow(const Call<Real>& c, std::int64_t row)
        : call(c),
          x(c.in[0] + row * c.in_width[0]),
          experts(c.in_width[0]),
          sigmoid(c.attributes->flag("sigmoid")),
          most(*std::max_element(x, x + experts)) {
        for (std::int64_t e = 0; e < experts; e++) total += std::exp(x[e] - most);
        for (std::int64_t e = 0; e < experts; e++) shares += raw(e);
    }
    Real raw(std::int64_t e) const { return sigmoid ? linnet::sigmoid(x[e]) : std::exp(x[e] - most); }
    Real p(std::int64_t e) const { return raw(e) / shares; }
    Real log_sum() const { return most + std::log(total); }
    /// E · f_e
    Real load(std::int64_t e) const {
        const std::int32_t* bounds = call.integers(1);
        return static_cast<Real>(experts * (bounds[e + 1] - bounds[e])) / static_cast<Real>(bounds[experts]);
    }
    Real balance() const {
        Real sum = 0;
        for (std::int64_t e = 0; e < experts; e++) sum += load(e) * p(e);
        return sum;
    }
};

template <class Real>
void forward(Call<Real>& call) {
    Real balance = static_cast<Real>(call.attributes->number("balance"));
    Real z = static_cast<Real>(call.attributes->number("z"));
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        RouterRow<Real> row(call, r);
        call.out[r] = balance * row.balance() + z * row.log_sum() * row.log_sum();
    }
}

/// With a_e = E f_e: d(Σ a p)/dx_e = p_e (a_e - Σ a p), times 1 - sigmoid(x_e) of sigmoid scores;
/// d(log sum)²/dx_e = 2 · log sum · softmax(x)_e.
template <class Real>
void backward(Call<Real>& call) {
    forward(call);
    Real balance = static_cast<Real>(call.attributes->number("balance"));
    Real z = static_cast<Real>(call.attributes->number("z"));
    Real scale = static_cast<Real>(call.batch->step_share / static_cast<double>(call.rows));
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end && call.din[0]; r++) {
        RouterRow<Real> row(call, r);
        Real mean = row.balance(), along = 2 * z * row.log_sum() / row.total;
        Real* dx = call.din[0] + r * row.experts;
        for (std::int64_t e = 0; e < row.experts; e++) {
            Real d = balance * row.p(e) * (row.load(e) - mean) * (row.sigmoid ? 1 - row.raw(e) : Real(1));
            d = scale * (d + along * std::exp(row.x[e] - row.most));
            dx[e] = accumulated(call.accumulate[0], dx[e], d);
        }
    }
}

}  // namespace

const Op router_loss_op = {
    .name = "router_loss",
    .inputs = 2,
    .width = one_wide,
    .flops = no_flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .reads_inputs = 3,
    .undifferentiated = 2,
    .loss = true,
};

}  // namespace linnet
