// Causal linear attention (Katharopoulos et al. 2020, "Transformers are RNNs", equations 9 to 11) of H heads
// on features q, k [R,H·N] > 0 (which φ has made) and values v [R,H·N]; y [R,H·N]:
//   S ← S + k vᵀ,   z ← z + k,   y = (qᵀ S) / (qᵀ z + ε).
// The numerator is the scan of kernels/scan.h without decay. A sequence's state is, per head, S [N,N] and z
// [N].
#include "kernels/scan.h"

#include "ops/recurrent.h"
#include "ops/rules.h"

namespace linnet {
namespace {

constexpr std::size_t q_input = 0, k_input = 1, v_input = 2;
constexpr double epsilon = 1e-6;  // of the authors' program

std::int64_t head_width(const Attributes& attributes, std::int64_t width) {
    return width / attributes.integer("heads");
}
std::int64_t width(const NodeShape& s) {
    const std::int64_t d = head_width(s.attributes, s.in[v_input]);
    if (d < 1 || d > scan_most_states || d * s.attributes.integer("heads") != s.in[v_input] ||
        s.in[q_input] != s.in[v_input] || s.in[k_input] != s.in[v_input])
        throw std::logic_error("linear attention whose inputs do not fit each other");
    return s.in[v_input];
}
double flops(const NodeShape& s, double) {
    const auto d = static_cast<double>(head_width(s.attributes, s.in[v_input]));
    return (4 * d + 4) * static_cast<double>(s.in[v_input]);
}
std::int64_t saved(const NodeShape& s) {
    return (s.in[v_input] * head_width(s.attributes, s.in[v_input]) + scan_chunk - 1) / scan_chunk;
}
/// The gradients of numerators [R,H·N], then of denominators [R,H].
std::int64_t backward_scratch(const NodeShape& s, std::int64_t rows) {
    return (s.in[v_input] + s.attributes.integer("heads")) * rows;
}

/// One head of one sequence.
struct Head {
    Segment segment;
    std::int64_t number, heads, width;  // N
    std::int64_t at(std::int64_t t) const { return ((segment.first + t) * heads + number) * width; }
};

template <class Real>
MatrixScan<Real> scan_of(const Call<Real>& call, const Head& head) {
    static constexpr Real no_decay = 1;
    MatrixScan<Real> scan;
    scan.rows = head.segment.length, scan.first = head.segment.first;
    scan.keys = scan.values = head.width;
    scan.key_row = scan.value_row = call.width;
    scan.r = call.in[q_input] + head.at(0), scan.k = call.in[k_input] + head.at(0);
    scan.v = call.in[v_input] + head.at(0);
    scan.w = &no_decay, scan.w_row = 0, scan.one_decay = true;
    scan.kept_row = call.width * head.width;
    if (call.saved) scan.kept = call.saved + head.number * head.width * head.width;
    return scan;
}

/// Calls visit(head) for this member's share.
template <class Real, class Visit>
void each_head(const Call<Real>& call, const Visit& visit) {
    const std::int64_t heads = call.attributes->integer("heads");
    each_head(call, heads, [&](const Segment& s, std::int64_t head) {
        visit(Head{s, head, heads, call.width / heads});
    });
}

/// y += a x
template <class Real>
void add_scaled(std::int64_t n, Real a, const Real* x, Real* y) {
    for (std::int64_t i = 0; i < n; i++) y[i] += a * x[i];
}

/// Calls visit(t, z, its row's denominator), z being the sum of keys up to row t, from `z` on.
template <class Real, class Visit>
void each_denominator(const Call<Real>& call, const Head& head, Real* z, const Visit& visit) {
    for (std::int64_t t = 0; t < head.segment.length; t++) {
        add_scaled(head.width, Real(1), call.in[k_input] + head.at(t), z);
        visit(t, z, dot(head.width, call.in[q_input] + head.at(t), z) + static_cast<Real>(epsilon));
    }
}

template <class Real>
void forward(Call<Real>& call) {
    each_head(call, [&](const Head& head) {
        const std::int64_t n = head.width;
        Real sum[scan_most_states] = {}, *z = sum;
        MatrixScan<Real> scan = scan_of(call, head);
        scan.y = call.out + head.at(0);
        if (Real* state = carried(call, head.segment)) {
            scan.state = state + head.number * (n + 1) * n;
            z = scan.state + n * n;
        }
        call.kernels->matrix_scan(scan);
        each_denominator(call, head, z, [&](std::int64_t t, const Real*, Real denominator) {
            Real* y = call.out + head.at(t);
            call.kernels->scale(n, 1 / denominator, y, y);
        });
    });
}

/// With y = x / d: dx = dy / d, dd = -(dy · y) / d.
template <class Real>
void backward(Call<Real>& call) {
    Real *dx = call.scratch, *dd = call.scratch + call.rows * call.width;
    each_head(call, [&](const Head& head) {
        const std::int64_t n = head.width;
        auto denominator_gradient = [&](std::int64_t t) -> Real& {
            return dd[(head.segment.first + t) * head.heads + head.number];
        };
        Real z[scan_most_states] = {};
        each_denominator(call, head, z, [&](std::int64_t t, const Real*, Real denominator) {
            const Real* dy = call.dout + head.at(t);
            call.kernels->scale(n, 1 / denominator, dy, dx + head.at(t));
            denominator_gradient(t) = -dot(n, dy, call.out + head.at(t)) / denominator;
        });

        MatrixScanBackward<Real> b{.forward = scan_of(call, head)};
        auto at = [&](std::size_t input) { return call.din[input] ? call.din[input] + head.at(0) : nullptr; };
        b.dy = dx + head.at(0);
        b.dr = at(q_input), b.dk = at(k_input), b.dv = at(v_input);
        b.accumulate_r = call.accumulate[q_input], b.accumulate_k = call.accumulate[k_input];
        b.accumulate_v = call.accumulate[v_input];
        call.kernels->matrix_scan_backward(b);

        if (Real* dq = call.din[q_input]) {
            std::fill_n(z, n, Real(0));
            each_denominator(call, head, z, [&](std::int64_t t, const Real* sum, Real) {
                add_scaled(n, denominator_gradient(t), sum, dq + head.at(t));
            });
        }
        if (Real* dk = call.din[k_input]) {
            Real later[scan_most_states] = {};
            for (std::int64_t t = head.segment.length; t-- > 0;) {
                add_scaled(n, denominator_gradient(t), call.in[q_input] + head.at(t), later);
                add_scaled(n, Real(1), later, dk + head.at(t));
            }
        }
    });
}

}  // namespace

const Op linear_attention_op = {
    .name = "linear_attention",
    .inputs = 3,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .reads_inputs = 7,
    .reads_output = true,
    .saved = saved,
    .backward_scratch = backward_scratch,
};

}  // namespace linnet
