// softmax(q · kᵀ / sqrt(D) + mask) · v over each sequence of the batch (Vaswani et al. 2017, section 3.2),
// multi-head, grouped (Ainslie et al. 2023) or multi-query (Shazeer 2019).   q [R, H·D]; k, v [S, KV·D]; out
// [R, H·D]. Keys may lie in another row space than queries (cross-attention): sequence i of one belongs to
// sequence i of the other. Where the plan has states, keys and values come from the state (ops/append.cpp).
// Attributes that may be there: "window", how many positions are looked back at with the own one (and ahead,
// where not "causal"), and beside it "globals", the first positions, which all see; "softcap" c, scores
// become c · tanh(score / c) (Gemma 2, 2024); "alibi", the largest bias of ALiBi (Press et al. 2022). A
// fourth input is a table of biases by distance (score_bias.cpp).
#include <cmath>
#include <stdexcept>

#include "ops/op.h"

namespace linnet {
namespace {

std::int64_t width(const NodeShape& s) {
    std::int64_t d = s.attributes.integer("head_width");
    if (s.in[0] != s.attributes.integer("heads") * d || s.in[1] != s.attributes.integer("kv_heads") * d ||
        s.in[2] != s.in[1] || s.attributes.integer("heads") % s.attributes.integer("kv_heads"))
        throw std::logic_error("attention: heads do not fit their inputs");
    return s.in[0];
}

/// Two products of each query with the keys that it sees: half of the sequence on average where it is causal.
double flops(const NodeShape& s, double length) {
    double seen = s.attributes.flag("causal") ? length / 2 : length;
    auto window = static_cast<double>(s.attributes.integer("window"));
    if (window > 0 && !s.attributes.flag("causal")) window = 2 * window - 1;
    return 4 * (window > 0 ? std::min(seen, window) : seen) * static_cast<double>(s.in[0]);
}

/// The log-sum-exp, [H, T] per sequence.
std::int64_t saved(const NodeShape& s) {
    return s.attributes.integer("heads");
}

/// ALiBi's slopes: powers of 2^(-alibi/n), with n the largest power of two that is not above the heads; those
/// of the heads from n on stand between them. [H]
std::vector<double> slopes(const NodeShape& s, std::int64_t) {
    std::vector<double> all;
    if (!s.attributes.has("alibi")) return all;
    double most = s.attributes.number("alibi");
    std::int64_t heads = s.attributes.integer("heads"), n = 1;
    while (2 * n <= heads) n *= 2;
    for (std::int64_t h = 0; h < heads; h++) {
        auto power = static_cast<double>(h < n ? 2 * (h + 1) : 2 * (h - n) + 1);
        all.push_back(std::exp2(-most * power / static_cast<double>(2 * n)));
    }
    return all;
}

/// The part of the kernel's arguments that is the same for every sequence.
template <class Real>
Attention<Real> arguments(const Call<Real>& call) {
    const Attributes& a = *call.attributes;
    Attention<Real> args;
    args.heads = a.integer("heads"), args.kv_heads = a.integer("kv_heads"),
    args.head_width = a.integer("head_width");
    args.window = a.integer("window"), args.causal = a.flag("causal");
    if (a.has("globals")) args.globals = a.integer("globals");
    if (a.has("softcap")) args.softcap = static_cast<Real>(a.number("softcap"));
    if (a.has("alibi")) args.slopes = call.constants;
    if (call.in[3]) args.bias = call.in[3], args.bias_row = call.in_width[3];
    if (call.in[3]) args.bias_zero = a.integer("bias_zero");
    args.scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(args.head_width)));
    args.q_row = args.out_row = args.heads * args.head_width;
    args.q_head = args.k_head = args.v_head = args.head_width;
    args.k_row = args.v_row = args.kv_heads * args.head_width;
    return args;
}

/// Element i of what may be stored in another type, as the kernels take its address.
template <class Real>
Real* row_at(Real* base, DType type, std::int64_t i) {
    if (type == kernel_type<std::remove_const_t<Real>>) return base + i;
    return reinterpret_cast<Real*>(reinterpret_cast<std::uintptr_t>(base) +
                                   static_cast<std::uintptr_t>(i * info(type).bytes));
}

/// Queries of sequence i and the keys that belong to them.
template <class Real>
void place(Attention<Real>& args, const Call<Real>& call, std::size_t i) {
    const Segment &s = call.space->segments[i], &keys = call.in_space[1]->segments[i];
    bool self = call.in_space[1] == call.space;
    args.rows = s.length, args.cached = call.reads && self ? s.position : 0;
    args.keys = keys.length + (call.reads ? keys.position : 0);
    args.q = row_at(call.in[0], call.in_type[0], s.first * args.q_row);
    args.out = call.out ? row_at(call.out, call.out_type, s.first * args.out_row) : nullptr;
    args.lse = call.saved ? call.saved + s.first * args.heads : nullptr;
    if (call.reads) {
        const StateView& state = call.reads;
        const auto* slot = state.slot<std::byte>(keys.slot);
        args.stored = state.type;
        args.k = slot, args.v = slot + args.kv_heads * state.positions * state.row_bytes;
        args.k_row = args.v_row = state.row_bytes / info(state.type).bytes * info(state.type).block;
        args.k_head = args.v_head = state.positions * args.k_row;
        args.ring = state.positions;
    } else {
        args.stored = call.in_type[1];
        args.k = row_at(call.in[1], args.stored, keys.first * args.k_row);
        args.v = row_at(call.in[2], args.stored, keys.first * args.v_row);
    }
}

/// Whether the task is this member's. They take turns back and forth (0 1 1 0 0 1 …), because later query
/// blocks see more keys.
bool mine(const Worker& worker, std::int64_t task) {
    std::int64_t round = task / worker.count, place = task % worker.count;
    return worker.index == (round % 2 ? worker.count - 1 - place : place);
}

/// The plan asks for products in bf16, and the kernels have them.
template <class Real>
bool in_tiles(const Call<Real>& call) {
    return call.product == ProductKernel::bf16 && call.kernels->narrow.attention && !call.reads;
}

StoredForms stored(const NodeShape&, ProductKernel product) {
    if (product != ProductKernel::bf16 || !kernels().narrow.attention) return {};
    return {7, true, true};
}

/// Reading and training take blocks of queries; writing takes every query by itself, over keys that are read
/// once.
template <class Real>
void forward(Call<Real>& call) {
    Attention<Real> args = arguments(call);
    bool writing = call.phase == Phase::write;
    std::int64_t block = writing ? 1 : call.kernels->attention_block, task = 0;
    auto* kernel = writing          ? call.kernels->attention_decode
                   : in_tiles(call) ? call.kernels->narrow.attention
                                    : call.kernels->attention;
    for (std::size_t s = 0; s < call.space->segments.size(); s++) {
        place(args, call, s);
        for (std::int64_t h = 0; h < args.heads; h++)
            for (std::int64_t i = 0; i < args.rows; i += block, task++)
                if (mine(call.worker, task))
                    kernel(args, h, i, std::min(i + block, args.rows), call.workspace);
    }
}

/// A bias' gradient is summed over the sequences in their order, so a head of all of them is one task.
template <class Real>
void backward(Call<Real>& call) {
    AttentionBackward<Real> args;
    args.forward = arguments(call);
    args.accumulate_q = call.accumulate[0], args.accumulate_k = call.accumulate[1];
    args.accumulate_v = call.accumulate[2];
    args.dbias = call.din[3];
    std::int64_t kv_heads = args.forward.kv_heads, task = 0;
    auto* kernel =
        in_tiles(call) ? call.kernels->narrow.attention_backward : call.kernels->attention_backward;
    std::int64_t one = args.forward.heads / kv_heads * args.forward.bias_row;  // biases of a task
    for (std::size_t s = 0; s < call.space->segments.size(); s++) {
        place(args.forward, call, s);
        std::int64_t first = call.space->segments[s].first, keys = call.in_space[1]->segments[s].first;
        args.dout = call.dout + first * args.forward.out_row;
        args.dq = call.din[0] + first * args.forward.q_row;
        args.dk = call.din[1] + keys * args.forward.k_row;
        args.dv = call.din[2] + keys * args.forward.v_row;
        for (std::int64_t h = 0; h < kv_heads; h++, task++) {
            if (!mine(call.worker, args.dbias ? h : task)) continue;
            if (args.dbias && s == 0 && !call.accumulate[3]) std::fill_n(args.dbias + h * one, one, Real(0));
            kernel(args, h, call.workspace);
        }
    }
}

}  // namespace

const Op attention_op = {
    .name = "attention",
    .inputs = 3,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .stored = stored,
    .reads_inputs = 7,
    .from_state = 6,
    .reads_output = true,
    .saved = saved,
    .constants = slopes,
};

const Op biased_attention_op = [] {
    Op op = attention_op;
    op.name = "biased_attention", op.inputs = 4, op.reads_inputs = 15;
    return op;
}();

}  // namespace linnet
