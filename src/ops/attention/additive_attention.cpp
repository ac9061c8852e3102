// Attention whose scores a small layer makes (Bahdanau et al. 2015, appendix A.1.2): of each head
//   score(i, j) = w · tanh(q_i + k_j),   out_i = Σ_j softmax_j(score(i, j)) v_j.
// q [R,H·D]; k, v [S,KV·D]; w [H·D]; out [R,H·D]. Masks, states and cross-attention as in attention.cpp. A
// tanh for every pair and element makes it an order slower than products; it is here to be compared with
// them.
#include <cmath>

#include "base/rng.h"
#include "ops/attention/call.h"
#include "ops/rules.h"

namespace linnet {
namespace {

constexpr std::int64_t piece = dropout_draws;       // keys whose tanh is computed at a time
constexpr std::int64_t widest = 256, longest = 32;  // a head; a block of a stored type

std::int64_t width(const NodeShape& s) {
    if (s.parameters[0].count() != s.in[0] || s.attributes.integer("head_width") > widest)
        throw std::logic_error("additive attention: a weight of another width");
    return attention_width(s);
}
/// What a row adds to the gradient of w.
std::int64_t backward_scratch(const NodeShape& s, std::int64_t rows) {
    return s.in[0] * rows;
}

template <class Real>
bool sees(const Attention<Real>& f, std::int64_t i, std::int64_t j) {
    const std::int64_t at = f.cached + i;
    if (f.causal && j > at) return false;
    if (f.chosen && f.chosen[at / choice_block * f.chosen_row + j / choice_block] != 0) return true;
    return f.window == 0 || j < f.globals || (!f.causal && at < f.globals) || std::abs(j - at) < f.window;
}

/// The key or value of position j, of key/value head `head`: where it stands, or unpacked in `room`.
template <class Real>
const Real* row_of(const Call<Real>& call, const Attention<Real>& f, const void* all, std::int64_t head,
                   std::int64_t row, std::int64_t j, Real* room) {
    const std::int64_t block = info(f.stored).block, at = head + j % f.ring * row;
    const auto* from = static_cast<const std::byte*>(all) + at / block * info(f.stored).bytes;
    if (f.stored == kernel_type<Real>) return reinterpret_cast<const Real*>(from);
    call.kernels->load((f.head_width + block - 1) / block * block, f.stored, from, room);
    return room;
}

/// Of one query and a piece of keys: which are seen, tanh(q + k) of those, their scores, and what dropout
/// multiplies their weights with.
template <class Real>
struct Piece {
    std::int64_t count = 0, at[piece];
    Real tanh[piece * widest], score[piece], kept[piece];

    void make(const Call<Real>& call, const Attention<Real>& f, const Real* q, const Real* w,
              std::int64_t head, std::int64_t i, std::int64_t j) {
        const std::int64_t d = f.head_width, kv = head / (f.heads / f.kv_heads);
        Real room[widest + longest];
        count = 0;
        for (std::int64_t key = j; key < std::min(j + piece, f.keys); key++) {
            if (!sees(f, i, key)) continue;
            const Real* k = row_of(call, f, f.k, kv * f.k_head, f.k_row, key, room);
            call.kernels->add(d, q, k, tanh + count * d);
            at[count++] = key;
        }
        call.kernels->activation(Activation::tanh, count * d, tanh, tanh);
        for (std::int64_t n = 0; n < count; n++) score[n] = dot(d, w, tanh + n * d), kept[n] = 1;
        if (f.dropout.limit > 0) drop(f.dropout, ((i * f.heads + head) * weight_row + j) / piece, j);
    }

  private:
    /// By the draws of Philox' block `block`, which serves this piece.
    void drop(const Dropout<Real>& d, std::int64_t block, std::int64_t j) {
        const auto words = philox(d.key, d.stream, d.counter + static_cast<std::uint64_t>(block));
        for (std::int64_t n = 0; n < count; n++) {
            const std::int64_t own = at[n] - j;
            const std::uint32_t draw = words[static_cast<std::size_t>(own / 2)] >> own % 2 * 16 & 0xFFFF;
            kept[n] = draw >= d.limit ? d.factor : Real(0);
        }
    }
};

/// One query: the sums so far shrink when a larger score comes (Milakov & Gimelshein 2018).
template <class Real>
void look(const Call<Real>& call, const Attention<Real>& f, std::int64_t head, std::int64_t i) {
    const std::int64_t d = f.head_width, kv = head / (f.heads / f.kv_heads);
    const Real *q = f.q + i * f.q_row + head * d, *w = call.vector(0) + head * d;
    Real *out = f.out + i * f.out_row + head * d, room[widest + longest], top = 0, total = 0;
    Piece<Real> p;
    std::fill_n(out, d, Real(0));
    for (std::int64_t j = 0; j < f.keys; j += piece) {
        p.make(call, f, q, w, head, i, j);
        if (p.count == 0) continue;
        Real high = *std::max_element(p.score, p.score + p.count);
        if (total > 0) high = std::max(high, top);
        const Real shrink = total > 0 ? std::exp(top - high) : Real(0);
        call.kernels->scale(d, shrink, out, out);
        total *= shrink, top = high;
        for (std::int64_t n = 0; n < p.count; n++) {
            const Real weight = std::exp(p.score[n] - top);
            const Real* v = row_of(call, f, f.v, kv * f.v_head, f.v_row, p.at[n], room);
            for (std::int64_t c = 0; c < d; c++) out[c] += p.kept[n] * weight * v[c];
            total += weight;
        }
    }
    call.kernels->scale(d, 1 / total, out, out);
    if (f.lse) f.lse[head * f.rows + i] = top + std::log(total);
}

template <class Real>
void forward(Call<Real>& call) {
    Attention<Real> f = arguments(call);
    std::int64_t task = 0;
    for (std::size_t s = 0; s < call.space->segments.size(); s++) {
        place(f, call, s);
        for (std::int64_t h = 0; h < f.heads; h++)
            for (std::int64_t i = 0; i < f.rows; i++, task++)
                if (task % call.worker.count == call.worker.index) look(call, f, h, i);
    }
}

/// The gradients of one sequence and head begin.
template <class Real>
struct Gradients {
    Real *q, *k, *v, *w;
    const Real* out;
    std::int64_t q_row, k_row;
};

/// From the gradient of one query's result. With t = tanh(q + k), P from the log-sum-exp, m what dropout
/// multiplies it with and dS_j = P_j (m_j dout · v_j - dout · out):
///   dv_j += P_j m_j dout,  dw += dS_j t,  dq, dk_j += dS_j w ∘ (1 - t²).
template <class Real>
void look_back(const Call<Real>& call, const Attention<Real>& f, const Gradients<Real>& g, std::int64_t head,
               std::int64_t i) {
    const std::int64_t d = f.head_width, kv = head / (f.heads / f.kv_heads);
    const Real *q = f.q + i * f.q_row + head * d, *w = call.vector(0) + head * d, *dout = g.out + i * g.q_row;
    const Real delta = dot(d, dout, f.out + i * f.out_row + head * d), lse = f.lse[head * f.rows + i];
    Real *dq = g.q + i * g.q_row, *dw = g.w + i * g.q_row;
    Piece<Real> p;
    for (std::int64_t j = 0; j < f.keys; j += piece) {
        p.make(call, f, q, w, head, i, j);
        for (std::int64_t n = 0; n < p.count; n++) {
            const Real* v = static_cast<const Real*>(f.v) + kv * f.v_head + p.at[n] * f.v_row;
            const Real* t = p.tanh + n * d;
            const Real weight = std::exp(p.score[n] - lse), kept = p.kept[n];
            const Real ds = weight * (kept * dot(d, dout, v) - delta);
            Real *dk = g.k + p.at[n] * g.k_row, *dv = g.v + p.at[n] * g.k_row;
            for (std::int64_t c = 0; c < d; c++) {
                const Real inner = ds * w[c] * (1 - t[c] * t[c]);
                dq[c] += inner, dk[c] += inner;
                dv[c] += kept * weight * dout[c];
                dw[c] += ds * t[c];
            }
        }
    }
}

/// `rows` rows of D begin at 0 unless they are added to.
template <class Real>
Real* begun(Real* first, bool accumulate, std::int64_t rows, std::int64_t row, std::int64_t d) {
    for (std::int64_t r = 0; !accumulate && r < rows; r++) std::fill_n(first + r * row, d, Real(0));
    return first;
}

/// Round 0: the query heads of a key/value head of one sequence are one task. Round 1: what rows add to dw.
template <class Real>
void backward(Call<Real>& call) {
    Attention<Real> f = arguments(call);
    const std::int64_t d = f.head_width, q_row = f.q_row, k_row = f.k_row, group = f.heads / f.kv_heads;
    if (call.round == 1) {
        const Range c = call.worker.share(call.width, 16);
        if (Real* dw = call.parameter_grad[0])
            for (std::int64_t r = 0; r < call.rows; r++)
                for (std::int64_t i = c.begin; i < c.end; i++) dw[i] += call.scratch[r * call.width + i];
        return;
    }
    std::int64_t task = 0;
    for (std::size_t s = 0; s < call.space->segments.size(); s++) {
        place(f, call, s);
        const std::int64_t first = call.space->segments[s].first, keys = call.in_space[1]->segments[s].first;
        for (std::int64_t kv = 0; kv < f.kv_heads; kv++, task++) {
            if (task % call.worker.count != call.worker.index) continue;
            const std::int64_t at = keys * k_row + kv * d;
            Real* dk = begun(call.din[1] + at, call.accumulate[1], f.keys, k_row, d);
            Real* dv = begun(call.din[2] + at, call.accumulate[2], f.keys, k_row, d);
            for (std::int64_t head = kv * group; head < (kv + 1) * group; head++) {
                const std::int64_t own = first * q_row + head * d;
                Gradients<Real> g{begun(call.din[0] + own, call.accumulate[0], f.rows, q_row, d),
                                  dk,
                                  dv,
                                  begun(call.scratch + own, false, f.rows, q_row, d),
                                  call.dout + own,
                                  q_row,
                                  k_row};
                for (std::int64_t i = 0; i < f.rows; i++) look_back(call, f, g, head, i);
            }
        }
    }
}

}  // namespace

const Op additive_attention_op = {
    .name = "additive_attention",
    .inputs = 3,
    .parameters = 1,
    .width = width,
    .flops = attention_flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .backward_rounds = [](const auto&) -> std::int64_t { return 2; },
    .reads_inputs = 7,
    .from_state = 6,
    .reads_output = true,
    .saved = attention_saved,
    .backward_scratch = backward_scratch,
    .constants = attention_constants,
};

}  // namespace linnet
