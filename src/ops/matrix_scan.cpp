// Recurrences on a matrix S [N,P] for each of H heads (kernels/scan.h):   r, k [R,H·N]; v, y [R,H·P];
// w [R,H·N], or [R,H] where a head has one decay.
// linear_scan:  S ← diag(w) S + k vᵀ,  y = rᵀ S  (with the attribute "before", of the S before its row).
// delta_scan:   S ← diag(w) S + b (aᵀ S) + k vᵀ,  a, b [R,H·N].
#include "kernels/scan.h"

#include "ops/recurrent.h"

namespace linnet {
namespace {

constexpr std::size_t r_input = 0, w_input = 1, k_input = 2, v_input = 3, a_input = 4, b_input = 5;

struct Sizes {
    std::int64_t heads, keys, values;
    std::int64_t state() const { return keys * values; }
};
Sizes sizes(const Attributes& attributes, std::int64_t keys, std::int64_t values) {
    std::int64_t heads = attributes.integer("heads");
    return {heads, keys / heads, values / heads};
}
template <class Real>
Sizes sizes(const Call<Real>& call) {
    return sizes(*call.attributes, call.in_width[k_input], call.in_width[v_input]);
}

std::int64_t width(const NodeShape& s) {
    Sizes z = sizes(s.attributes, s.in[k_input], s.in[v_input]);
    bool fits = z.keys >= 1 && z.keys <= scan_most_states && z.keys * z.heads == s.in[k_input] &&
                z.values * z.heads == s.in[v_input] && s.in[r_input] == s.in[k_input] &&
                (s.in[w_input] == s.in[k_input] || s.in[w_input] == z.heads);
    for (std::size_t i = a_input; i < s.in.size(); i++) fits &= s.in[i] == s.in[k_input];
    if (!fits) throw std::logic_error("a matrix scan whose inputs do not fit each other");
    return s.in[v_input];
}
double flops(const NodeShape& s, double) {
    Sizes z = sizes(s.attributes, s.in[k_input], s.in[v_input]);
    return (s.in.size() > a_input ? 9.0 : 5.0) * static_cast<double>(z.heads * z.state());
}
std::int64_t saved(const NodeShape& s) {
    Sizes z = sizes(s.attributes, s.in[k_input], s.in[v_input]);
    return (z.heads * z.state() + scan_chunk - 1) / scan_chunk;
}

template <class Real>
MatrixScan<Real> scan_of(const Call<Real>& call, const Segment& s, std::int64_t head) {
    const Sizes z = sizes(call);
    MatrixScan<Real> scan;
    scan.rows = s.length, scan.first = s.first;
    scan.keys = z.keys, scan.values = z.values;
    scan.key_row = call.in_width[k_input], scan.w_row = call.in_width[w_input], scan.value_row = call.width;
    scan.one_decay = scan.w_row == z.heads && z.keys > 1;
    scan.before = call.attributes->has("before");
    const std::int64_t key = s.first * scan.key_row + head * z.keys;
    scan.r = call.in[r_input] + key, scan.k = call.in[k_input] + key;
    scan.w = call.in[w_input] + s.first * scan.w_row + head * (scan.w_row / z.heads);
    scan.v = call.in[v_input] + s.first * scan.value_row + head * z.values;
    if (call.in[a_input]) scan.a = call.in[a_input] + key, scan.b = call.in[b_input] + key;
    if (call.saved) scan.kept = call.saved + head * z.state();
    scan.kept_row = z.heads * z.state();
    return scan;
}

/// Calls visit(segment, head, where the head's values begin) for this member's share.
template <class Real, class Visit>
void each_head(const Call<Real>& call, const Visit& visit) {
    const Sizes z = sizes(call);
    each_head(call, z.heads, [&](const Segment& s, std::int64_t head) {
        visit(s, head, s.first * call.width + head * z.values);
    });
}

template <class Real>
void forward(Call<Real>& call) {
    each_head(call, [&](const Segment& s, std::int64_t head, std::int64_t value) {
        MatrixScan<Real> scan = scan_of(call, s, head);
        if (Real* state = carried(call, s)) scan.state = state + head * sizes(call).state();
        scan.y = call.out + value;
        call.kernels->matrix_scan(scan);
    });
}

template <class Real>
void backward(Call<Real>& call) {
    each_head(call, [&](const Segment& s, std::int64_t head, std::int64_t value) {
        MatrixScanBackward<Real> b{.forward = scan_of(call, s, head)};
        const MatrixScan<Real>& scan = b.forward;
        b.dy = call.dout + value;
        auto at = [&](std::size_t input, const Real* from) {
            return call.din[input] ? call.din[input] + (from - call.in[input]) : nullptr;
        };
        b.dr = at(r_input, scan.r), b.dw = at(w_input, scan.w), b.dk = at(k_input, scan.k);
        b.dv = at(v_input, scan.v);
        if (scan.a) b.da = at(a_input, scan.a), b.db = at(b_input, scan.b);
        b.accumulate_r = call.accumulate[r_input], b.accumulate_w = call.accumulate[w_input];
        b.accumulate_k = call.accumulate[k_input], b.accumulate_v = call.accumulate[v_input];
        b.accumulate_a = call.accumulate[a_input], b.accumulate_b = call.accumulate[b_input];
        call.kernels->matrix_scan_backward(b);
    });
}

}  // namespace

const Op linear_scan_op = {
    .name = "linear_scan",
    .inputs = 4,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .reads_inputs = 15,
    .saved = saved,
};

const Op delta_scan_op = {
    .name = "delta_scan",
    .inputs = 6,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .reads_inputs = 63,
    .saved = saved,
};

}  // namespace linnet
