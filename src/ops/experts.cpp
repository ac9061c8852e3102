// A mixture of experts (Shazeer et al. 2017, section 2; Fedus et al. 2022): each token goes to the K of E
// feed-forward layers that its router scores highest, none is dropped.
//   choice  [R,K]    from router scores [R,E]: the experts by rank, equal scores by number.
//   weights [R,K]    softmax over all experts, or sigmoid, at the choice; "renormalize": divided by their
//                    sum; times "scale".
//   places  [R·K,2]  tokens' choices sorted by expert. At place p: the slot (token · K + rank) that stands
//                    there, and the place of slot p.
//   bounds  [E+1,1]  where each expert's places begin.
//   there   [R·K,C]  each place's token;  expert [R·K,N] = W_e · x with W [E·N,C];
//   back    [R,C]    the places' results, times their weights, summed by rank.
//   gate    [R,C]    y · sigmoid(g), g [R,1]: of an expert that all tokens share.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "ops/experts.h"
#include "ops/matmul.h"
#include "ops/rules.h"

namespace linnet {
namespace {

std::int64_t used_width(const NodeShape& s) {
    std::int64_t used = s.attributes.integer("used");
    if (used > s.in[0]) throw std::logic_error("experts: more used than there are");
    return used;
}

/// Keeps the best experts so far by rank, and puts each further one in its place among them.
template <class Real>
void choose(Call<Real>& call) {
    std::int64_t experts = call.in_width[0], used = call.width;
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        const Real* scores = call.in[0] + r * experts;
        std::int32_t* choice = call.out_integers() + r * used;
        std::int64_t kept = 0;
        for (std::int64_t e = 0; e < experts; e++) {
            if (kept == used && !(scores[e] > scores[choice[used - 1]])) continue;
            std::int64_t k = kept < used ? kept++ : used - 1;
            for (; k > 0 && scores[e] > scores[choice[k - 1]]; k--) choice[k] = choice[k - 1];
            choice[k] = static_cast<std::int32_t>(e);
        }
    }
}

/// A token's weights before renormalization and scale: score(choice[k]).
template <class Real>
struct Scores {
    const Real* in;
    std::int64_t experts;
    bool sigmoid;
    Real most = 0, total = 1;

    Scores(const Call<Real>& call, std::int64_t row)
        : in(call.in[0] + row * call.in_width[0]),
          experts(call.in_width[0]),
          sigmoid(call.attributes->flag("sigmoid")) {
        if (sigmoid) return;
        most = *std::max_element(in, in + experts), total = 0;
        for (std::int64_t e = 0; e < experts; e++) total += std::exp(in[e] - most);
    }
    Real at(std::int64_t e) const {
        return sigmoid ? linnet::sigmoid(in[e]) : std::exp(in[e] - most) / total;
    }
};

template <class Real>
Real sum_of(const Call<Real>& call, const Scores<Real>& scores, const std::int32_t* choice) {
    if (!call.attributes->flag("renormalize")) return 1;
    Real sum = 0;
    for (std::int64_t k = 0; k < call.width; k++) sum += scores.at(choice[k]);
    return sum;
}

template <class Real>
void weigh(Call<Real>& call) {
    Real scale = static_cast<Real>(call.attributes->number("scale"));
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        Scores<Real> scores(call, r);
        const std::int32_t* choice = call.integers(1) + r * call.width;
        Real sum = sum_of(call, scores, choice);
        for (std::int64_t k = 0; k < call.width; k++)
            call.out[r * call.width + k] = scale * scores.at(choice[k]) / sum;
    }
}

/// With s the scores and S their sum (or 1): w_k = c s_k / S, so ds_k = c (dw_k - Σ dw_j s_j / S) / S (the
/// second term only where renormalized), and then softmax's or the sigmoid's own gradient.
template <class Real>
void weigh_backward(Call<Real>& call) {
    Real scale = static_cast<Real>(call.attributes->number("scale"));
    bool renormalize = call.attributes->flag("renormalize");
    std::int64_t experts = call.in_width[0], used = call.width;
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        Scores<Real> scores(call, r);
        const std::int32_t* choice = call.integers(1) + r * used;
        const Real* dw = call.dout + r * used;
        Real* dx = call.din[0] + r * experts;
        Real sum = sum_of(call, scores, choice), mean = 0, along = 0;
        for (std::int64_t k = 0; k < used && renormalize; k++) mean += dw[k] * scores.at(choice[k]) / sum;
        auto ds = [&](std::int64_t k) { return scale * (dw[k] - mean) / sum; };
        if (!scores.sigmoid)
            for (std::int64_t k = 0; k < used; k++) along += ds(k) * scores.at(choice[k]);
        for (std::int64_t e = 0; e < experts; e++) {
            Real s = scores.at(e), d = -along * s;
            for (std::int64_t k = 0; k < used; k++)
                if (choice[k] == e) d += ds(k) * s * (scores.sigmoid ? 1 - s : Real(1));
            dx[e] = accumulated(call.accumulate[0], dx[e], d);
        }
    }
}

std::int64_t two_wide(const NodeShape&) {
    return 2;
}

std::int64_t places_scratch(const NodeShape& s, std::int64_t) {
    return s.attributes.integer("experts");
}

/// in: the choice, [R·K] integers. A counting sort: the places of an expert are in the order of tokens.
template <class Real>
void sort_places(Call<Real>& call) {
    if (call.worker.index != 0) return;
    const std::int32_t* choice = call.integers(0);
    std::int64_t experts = call.attributes->integer("experts");
    auto* next = reinterpret_cast<std::int32_t*>(call.scratch);  // of each expert, its next free place
    std::fill_n(next, experts, 0);
    for (std::int64_t slot = 0; slot < call.rows; slot++) next[choice[slot]]++;
    std::exclusive_scan(next, next + experts, next, 0);
    for (std::int64_t slot = 0; slot < call.rows; slot++) {
        const std::int32_t place = next[choice[slot]]++;
        call.out_integers()[2 * place] = static_cast<std::int32_t>(slot);
        call.out_integers()[2 * slot + 1] = place;
    }
}

template <class Real>
void count_places(Call<Real>& call) {
    if (call.worker.index != 0) return;
    std::fill_n(call.out_integers(), call.rows, 0);
    for (std::int64_t slot = 0; slot < call.in_rows[0] * call.in_width[0]; slot++)
        call.out_integers()[call.integers(0)[slot] + 1]++;
    for (std::int64_t e = 1; e < call.rows; e++) call.out_integers()[e] += call.out_integers()[e - 1];
}

template <class Real>
void send(Call<Real>& call) {
    std::int64_t k = call.attributes->integer("used");
    Range places = call.worker.share(call.rows);
    for (std::int64_t p = places.begin; p < places.end; p++)
        std::copy_n(call.in[0] + call.integers(1)[2 * p] / k * call.width, call.width,
                    call.out + p * call.width);
}

/// A token's gradients are summed by rank.
template <class Real>
void send_backward(Call<Real>& call) {
    std::int64_t k = call.attributes->integer("used");
    Range rows = call.worker.share(call.in_rows[0]);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        Real* dx = call.din[0] + r * call.width;
        if (!call.accumulate[0]) std::fill_n(dx, call.width, Real(0));
        for (std::int64_t slot = r * k; slot < (r + 1) * k; slot++)
            call.kernels->add(call.width, dx, call.dout + call.integers(1)[2 * slot + 1] * call.width, dx);
    }
}

/// W [E·N,C]; the number of experts is an attribute, and how many of them a token has.
std::int64_t expert_width(const NodeShape& s) {
    std::int64_t experts = s.attributes.integer("experts");
    if (s.parameters[0].dim[1] != s.in[0] || s.parameters[0].dim[0] % experts)
        throw std::logic_error("expert: weights do not fit their input");
    return s.parameters[0].dim[0] / experts;
}
double expert_flops(const NodeShape& s, double) {
    return 2.0 * static_cast<double>(s.attributes.integer("used") * s.in[0] * expert_width(s));
}

/// Calls visit(expert, its weight, first place, places) for each expert that has places.
template <class Real, class Visit>
void each_expert(const Call<Real>& call, const Visit& visit) {
    const std::int32_t* bounds = call.integers(1);
    const Tensor& w = call.parameter[0];
    const std::int64_t experts = call.attributes->integer("experts");
    for (std::int64_t e = 0; e < experts; e++)
        if (bounds[e + 1] > bounds[e])
            visit(e, Tensor{w.row(e * call.width), w.type, Shape(call.width, call.in_width[0])}, bounds[e],
                  bounds[e + 1] - bounds[e]);
}

template <class Real>
void expert_forward(Call<Real>& call) {
    std::int64_t n = call.width, c = call.in_width[0];
    each_expert(call, [&](std::int64_t, const Tensor& w, std::int64_t first, std::int64_t count) {
        Gemm<Real> g;
        g.m = count, g.n = n, g.k = c;
        g.a = {call.in[0] + first * c, kernel_type<Real>, c, 1};
        g.c = call.out + first * n, g.c_row = n;
        team_project(call, g, w, call.product);
    });
}

template <class Real>
void expert_backward(Call<Real>& call) {
    std::int64_t n = call.width, c = call.in_width[0];
    each_expert(call, [&](std::int64_t e, const Tensor& w, std::int64_t first, std::int64_t count) {
        const Operand gradients{call.dout + first * n, kernel_type<Real>, n, 1};
        if (call.din[0])
            team_project_back(call, gradients, count, w, call.din[0] + first * c, call.accumulate[0]);
        if (call.parameter_grad[0])
            team_weight_gradient(call, gradients, {call.in[0] + first * c, kernel_type<Real>, c, 1}, count, n,
                                 call.parameter_grad[0] + e * n * c);
    });
}

template <class Real>
void bring_back(Call<Real>& call) {
    std::int64_t k = call.in_width[1];
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        Real* out = call.out + r * call.width;
        std::fill_n(out, call.width, Real(0));
        for (std::int64_t slot = r * k; slot < (r + 1) * k; slot++) {
            const Real* y = call.in[0] + call.integers(2)[2 * slot + 1] * call.width;
            Real w = call.in[1][slot];
            for (std::int64_t i = 0; i < call.width; i++) out[i] += w * y[i];
        }
    }
}

template <class Real>
void bring_back_backward(Call<Real>& call) {
    std::int64_t k = call.in_width[1];
    Range rows = call.worker.share(call.rows);
    for (std::int64_t slot = rows.begin * k; slot < rows.end * k; slot++) {
        std::int64_t place = call.integers(2)[2 * slot + 1] * call.width;
        const Real *y = call.in[0] + place, *dout = call.dout + slot / k * call.width;
        if (call.din[0])
            for (std::int64_t i = 0; i < call.width; i++) {
                Real& dy = call.din[0][place + i];
                dy = accumulated(call.accumulate[0], dy, call.in[1][slot] * dout[i]);
            }
        if (call.din[1])
            call.din[1][slot] = accumulated(call.accumulate[1], call.din[1][slot], dot(call.width, y, dout));
    }
}

template <class Real>
void gate(Call<Real>& call) {
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++)
        call.kernels->scale(call.width, sigmoid(call.in[1][r]), call.in[0] + r * call.width,
                            call.out + r * call.width);
}

template <class Real>
void gate_backward(Call<Real>& call) {
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        Real s = sigmoid(call.in[1][r]), d = 0;
        for (std::int64_t i = r * call.width; i < (r + 1) * call.width; i++) {
            d += call.dout[i] * call.in[0][i];
            if (call.din[0])
                call.din[0][i] = accumulated(call.accumulate[0], call.din[0][i], s * call.dout[i]);
        }
        if (call.din[1]) call.din[1][r] = accumulated(call.accumulate[1], call.din[1][r], d * s * (1 - s));
    }
}

}  // namespace

const Op expert_choice_op = {
    .name = "expert_choice",
    .inputs = 1,
    .width = used_width,
    .flops = no_flops,
    .forward = [](auto& call) { choose(call); },
    .undifferentiated = 1,
    .integers = true,
};

const Op expert_weights_op = {
    .name = "expert_weights",
    .inputs = 2,
    .width = used_width,
    .flops = no_flops,
    .forward = [](auto& call) { weigh(call); },
    .backward = [](auto& call) { weigh_backward(call); },
    .reads_inputs = 3,
    .undifferentiated = 2,
};

const Op expert_places_op = {
    .name = "expert_places",
    .inputs = 1,
    .width = two_wide,
    .flops = no_flops,
    .forward = [](auto& call) { sort_places(call); },
    .undifferentiated = 1,
    .integers = true,
    .scratch = places_scratch,
};

const Op expert_bounds_op = {
    .name = "expert_bounds",
    .inputs = 1,
    .width = one_wide,
    .flops = no_flops,
    .forward = [](auto& call) { count_places(call); },
    .undifferentiated = 1,
    .integers = true,
};

const Op to_experts_op = {
    .name = "to_experts",
    .inputs = 2,
    .width = input_width,
    .flops = no_flops,
    .forward = [](auto& call) { send(call); },
    .backward = [](auto& call) { send_backward(call); },
    .reads_inputs = 2,
    .undifferentiated = 2,
};

const Op expert_linear_op = {
    .name = "expert_linear",
    .inputs = 2,
    .parameters = 1,
    .width = expert_width,
    .flops = expert_flops,
    .forward = [](auto& call) { expert_forward(call); },
    .backward = [](auto& call) { expert_backward(call); },
    .reads_inputs = 3,
    .undifferentiated = 2,
    .product = true,
};

const Op from_experts_op = {
    .name = "from_experts",
    .inputs = 3,
    .width = input_width,
    .flops = no_flops,
    .forward = [](auto& call) { bring_back(call); },
    .backward = [](auto& call) { bring_back_backward(call); },
    .reads_inputs = 7,
    .undifferentiated = 4,
};

const Op row_gate_op = {
    .name = "row_gate",
    .inputs = 2,
    .width = input_width,
    .flops = no_flops,
    .forward = [](auto& call) { gate(call); },
    .backward = [](auto& call) { gate_backward(call); },
    .reads_inputs = 3,
    .by_row = true,
};

}  // namespace linnet
