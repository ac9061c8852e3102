// LSTM (Hochreiter & Schmidhuber 1997; with forget gates Gers et al. 2000).   four inputs [R,C]: what reaches
// the input, forget, cell and output gates from outside; u [4C,C], what reaches them from h, in that order:
//   i, f, o = σ(…),  g = tanh(…),  c ← f c + i g,  h = o tanh(c).   h [R,C].
// A round is one step of all sequences, as h needs all of the h before it; members share the channels. The
// state is h and c. Products are those of writing in every phase: a row by itself, whatever stands beside it.
#include "ops/matmul.h"
#include "ops/recurrent.h"
#include "ops/rules.h"

namespace linnet {
namespace {

enum Gate : std::int64_t { input_gate, forget_gate, cell_gate, output_gate };
constexpr std::int64_t gates = 4;
// Places in a row of what is kept (the gates and c), and in one of their gradients (of c and h, too); C wide
// each.
constexpr std::int64_t cell = gates, kept = gates + 1;
constexpr std::int64_t carry = gates, reaches = gates + 1, gradients = gates + 2;
constexpr std::int64_t piece = 64;  // channels whose tanh(c) is computed at a time

std::int64_t width(const NodeShape& s) {
    std::int64_t c = s.in[0];
    if (s.in[1] != c || s.in[2] != c || s.in[3] != c || s.parameters[0].dim[0] != gates * c ||
        s.parameters[0].dim[1] != c)
        throw std::logic_error("lstm: inputs and weight do not fit each other");
    return c;
}
double flops(const NodeShape& s, double) {
    return 2.0 * static_cast<double>(s.parameters[0].count()) + 40.0 * static_cast<double>(s.in[0]);
}
std::int64_t saved(const NodeShape& s) {
    return kept * s.in[0];
}
std::int64_t scratch(const NodeShape& s, std::int64_t rows) {
    return kept * s.in[0] * rows;
}
std::int64_t backward_scratch(const NodeShape& s, std::int64_t rows) {
    return gradients * s.in[0] * rows;
}

/// Rows first, first + apart, … of `count` sequences.
struct Steps {
    std::int64_t first, count, apart;
};

/// Row `t` of all sequences with more than `t` rows, those that lie equally far apart together; `single`:
/// each by itself (at t = 0 what came before lies in its state).
template <class Real, class Visit>
void each_step(const Call<Real>& call, std::int64_t t, bool single, const Visit& visit) {
    const auto& all = call.space->segments;
    for (std::size_t i = 0; i < all.size();) {
        if (all[i].length <= t) {
            i++;
            continue;
        }
        Steps steps{all[i].first + t, 1, call.rows};
        std::size_t next = i + 1;
        for (; !single && next < all.size() && all[next].length > t; next++) {
            std::int64_t apart = all[next].first - all[next - 1].first;
            if (steps.count > 1 && apart != steps.apart) break;
            steps.apart = apart, steps.count++;
        }
        visit(steps, all[i]);
        i = next;
    }
}

/// gates[c] = input[c] + U h for the channels `c` of one gate. h: rows h_row apart; null: 0.
template <class Real>
void gate_product(const Call<Real>& call, std::int64_t gate, Range c, const Steps& rows, const Real* h,
                  std::int64_t h_row, Real* to) {
    const std::int64_t width = call.width, to_row = rows.apart * kept * width;
    const Real* input = call.in[static_cast<std::size_t>(gate)] + rows.first * width;
    if (!h) {
        for (std::int64_t i = 0; i < rows.count; i++)
            std::copy_n(input + i * rows.apart * width + c.begin, c.size(), to + i * to_row + c.begin);
        return;
    }
    const Tensor& u = call.parameter[0];
    Gemm<Real> g;
    g.m = rows.count, g.n = width, g.k = width;
    g.a = {h, kernel_type<Real>, h_row, 1};
    g.c = to, g.c_row = to_row;
    g.add = input, g.add_row = rows.apart * width;
    g.m_end = g.m, g.n_begin = c.begin, g.n_end = c.end;
    if (info(u.type).block == 1) {
        g.b = {u.row(gate * width), u.type, 1, width};
        return call.kernels->gemv(g);
    }
    unpacked_project<Real>(call, g, u, gate * width, nullptr);
}

/// From what the gates see to c and h, for one row and channels `c`. `row`: gates and c, of which c is made;
/// before: the c before, null: 0.
template <class Real>
void step_row(const Call<Real>& call, Range c, Real* row, const Real* before, Real* h) {
    const std::int64_t width = call.width, n = c.size();
    auto gate = [&](std::int64_t i) { return row + i * width + c.begin; };
    for (std::int64_t i = 0; i < gates; i++)
        call.kernels->activation(i == cell_gate ? Activation::tanh : Activation::sigmoid, n, gate(i),
                                 gate(i));
    Real* now = gate(cell);
    for (std::int64_t i = 0; i < n; i++)
        now[i] = (before ? gate(forget_gate)[i] * before[c.begin + i] : Real(0)) +
                 gate(input_gate)[i] * gate(cell_gate)[i];
    call.kernels->activation(Activation::tanh, n, now, h + c.begin);
    for (std::int64_t i = 0; i < n; i++) h[c.begin + i] *= gate(output_gate)[i];
}

template <class Real>
void forward(Call<Real>& call) {
    const std::int64_t t = call.round, width = call.width, last = call.space->longest();
    Real* rows = call.saved ? call.saved : call.scratch;
    Range c = call.worker.share(width, 16);
    if (t == last) {  // the states are written when no one reads them any more
        for (const Segment& s : call.space->segments) {
            Real* state = s.length > 0 ? carried(call, s) : nullptr;
            const std::int64_t end = s.first + s.length - 1;
            if (!state) continue;
            std::copy_n(call.out + end * width + c.begin, c.size(), state + c.begin);
            std::copy_n(rows + (end * kept + cell) * width + c.begin, c.size(), state + width + c.begin);
        }
        return;
    }
    each_step(call, t, t == 0, [&](const Steps& steps, const Segment& s) {
        const Real* state = t == 0 ? carried(call, s) : nullptr;
        const Real* h = t > 0 ? call.out + (steps.first - 1) * width : state;
        for (std::int64_t gate = 0; gate < gates; gate++)
            gate_product(call, gate, c, steps, h, steps.apart * width,
                         rows + (steps.first * kept + gate) * width);
        for (std::int64_t i = 0; i < steps.count; i++) {
            const std::int64_t at = steps.first + i * steps.apart;
            const Real* before = t > 0   ? rows + ((at - 1) * kept + cell) * width
                                 : state ? state + width
                                         : nullptr;
            step_row(call, c, rows + at * kept * width, before, call.out + at * width);
        }
    });
}

/// The gradients of one row's gates and of its c, from that of its h and of the next row, null: none.
template <class Real>
void row_backward(const Call<Real>& call, Range c, const Real* row, const Real* before, const Real* next_row,
                  const Real* next_gradient, Real* gradient) {
    const std::int64_t width = call.width;
    for (std::int64_t first = c.begin; first < c.end; first += piece) {
        const std::int64_t end = std::min(first + piece, c.end);
        Real tanh_c[piece];
        call.kernels->activation(Activation::tanh, end - first, row + cell * width + first, tanh_c);
        for (std::int64_t k = first; k < end; k++) {
            const Real i = row[input_gate * width + k], f = row[forget_gate * width + k];
            const Real g = row[cell_gate * width + k], o = row[output_gate * width + k];
            const Real dh = gradient[reaches * width + k], tc = tanh_c[k - first];
            Real dc = dh * o * (1 - tc * tc);
            if (next_row) dc += next_gradient[carry * width + k] * next_row[forget_gate * width + k];
            gradient[carry * width + k] = dc;
            gradient[input_gate * width + k] = dc * g * i * (1 - i);
            gradient[forget_gate * width + k] = before ? dc * before[k] * f * (1 - f) : Real(0);
            gradient[cell_gate * width + k] = dc * i * (1 - g * g);
            gradient[output_gate * width + k] = dh * tc * o * (1 - o);
        }
    }
}

/// What reaches the h before the rows `next`: dout, and through U what the gates of those rows get.
template <class Real>
void reach(const Call<Real>& call, Range c, const Steps& next, Real* scratch) {
    const std::int64_t width = call.width, row = next.first - 1, apart = next.apart * gradients * width;
    Gemm<Real> g;
    g.m = next.count, g.n = width, g.k = gates * width;
    g.a = {scratch + next.first * gradients * width, kernel_type<Real>, apart, 1};
    const Tensor& u = call.parameter[0];
    g.b = {u.data, u.type, width, 1};
    g.c = scratch + (row * gradients + reaches) * width, g.c_row = apart;
    g.add = call.dout + row * width, g.add_row = next.apart * width;
    g.m_end = g.m, g.n_begin = c.begin, g.n_end = c.end;
    if (info(u.type).block == 1) return call.kernels->gemm(g, call.workspace);
    unpacked_back(call, panel_product(*call.kernels, ProductKernel::panels), g, u);
}

/// dU = Σ dgates[t] h[t - 1]ᵀ, and what the inputs get.
template <class Real>
void finish_backward(Call<Real>& call) {
    const std::int64_t width = call.width;
    if (call.parameter_grad[0]) {
        Range m = call.worker.share(gates * width, 16);
        for (const Segment& s : call.space->segments) {
            if (s.length < 2) continue;
            Gemm<Real> g;
            g.m = gates * width, g.n = width, g.k = s.length - 1;
            g.a = {call.scratch + (s.first + 1) * gradients * width, kernel_type<Real>, 1, gradients * width};
            g.b = {call.out + s.first * width, kernel_type<Real>, width, 1};
            g.c = call.parameter_grad[0], g.c_row = width;
            g.accumulate = true;
            g.m_begin = m.begin, g.m_end = m.end, g.n_end = g.n;
            if (m.size() > 0) call.kernels->gemm(g, call.workspace);
        }
    }
    Range rows = call.worker.share(call.rows);
    for (std::size_t gate = 0; gate < gates; gate++)
        for (std::int64_t r = rows.begin; call.din[gate] && r < rows.end; r++) {
            Real* to = call.din[gate] + r * width;
            const Real* from = call.scratch + (r * gradients + static_cast<std::int64_t>(gate)) * width;
            for (std::int64_t i = 0; i < width; i++)
                to[i] = accumulated(call.accumulate[gate], to[i], from[i]);
        }
}

template <class Real>
void backward(Call<Real>& call) {
    const std::int64_t t = call.space->longest() - 1 - call.round, width = call.width;
    if (t < 0) return finish_backward(call);
    Range c = call.worker.share(width, 16);
    if (c.size() == 0) return;
    each_step(call, t + 1, false,
              [&](const Steps& next, const Segment&) { reach(call, c, next, call.scratch); });
    for (const Segment& s : call.space->segments) {
        if (s.length <= t) continue;
        const std::int64_t row = s.first + t;
        const bool next = t + 1 < s.length;
        if (!next)
            std::copy_n(call.dout + row * width + c.begin, c.size(),
                        call.scratch + (row * gradients + reaches) * width + c.begin);
        const Real* own = call.saved + row * kept * width;
        Real* gradient = call.scratch + row * gradients * width;
        // The c before is the last of what the row before kept.
        row_backward(call, c, own, t > 0 ? own - width : nullptr, next ? own + kept * width : nullptr,
                     gradient + gradients * width, gradient);
    }
}

}  // namespace

const Op lstm_op = {
    .name = "lstm",
    .inputs = 4,
    .parameters = 1,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .forward_rounds = [](const auto& call) { return call.space->longest() + 1; },
    .backward_rounds = [](const auto& call) { return call.space->longest() + 1; },
    .reads_output = true,
    .saved = saved,
    .scratch = scratch,
    .backward_scratch = backward_scratch,
};

}  // namespace linnet
