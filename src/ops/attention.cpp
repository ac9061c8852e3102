// softmax(q · kᵀ / sqrt(D) + mask) · v over each sequence of the batch (Vaswani et al. 2017, section 3.2),
// multi-head, grouped (Ainslie et al. 2023) or multi-query (Shazeer 2019).   q [R, H·D]; k, v [R, KV·D]; out
// [R, H·D].
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

double flops(const NodeShape&) {
    return 0;
}  // depends on the positions: see attention_flops in model/
std::int64_t saved(const NodeShape& s) {
    return s.attributes.integer("heads");
}  // log-sum-exp, [H, T] a sequence

/// The part of the kernel's arguments that is the same for every sequence.
template <class Real>
Attention<Real> arguments(const Call<Real>& call) {
    const Attributes& a = *call.attributes;
    Attention<Real> args;
    args.heads = a.integer("heads"), args.kv_heads = a.integer("kv_heads"),
    args.head_width = a.integer("head_width");
    args.window = a.integer("window"), args.causal = a.flag("causal");
    args.scale = static_cast<Real>(1 / std::sqrt(static_cast<double>(args.head_width)));
    args.q_row = args.out_row = args.heads * args.head_width;
    args.q_head = args.k_head = args.v_head = args.head_width;
    args.k_row = args.v_row = args.kv_heads * args.head_width;
    return args;
}

template <class Real>
void place(Attention<Real>& args, const Call<Real>& call, const Sequence& s) {
    args.rows = s.length, args.cached = s.cached;
    args.q = call.in[0] + s.first_row * args.q_row;
    args.out = call.out ? call.out + s.first_row * args.out_row : nullptr;
    args.lse = call.saved ? call.saved + s.first_row * args.heads : nullptr;
    if (call.cache.k) {
        std::int64_t head = call.cache.context * args.head_width, slot = s.slot * args.kv_heads * head;
        args.k = call.cache.k + slot, args.v = call.cache.v + slot;
        args.k_head = args.v_head = head;
        args.k_row = args.v_row = args.head_width;
    } else {
        args.k = call.in[1] + s.first_row * args.k_row;
        args.v = call.in[2] + s.first_row * args.v_row;
    }
}

/// Puts the new keys and values into the cache; heads are shared out as the products below read them.
template <class Real>
void fill_cache(const Call<Real>& call, std::int64_t kv_heads, std::int64_t d) {
    std::int64_t row = kv_heads * d;
    for (const Sequence& s : call.batch->sequences) {
        Range work = call.worker.share(s.length * kv_heads);
        for (std::int64_t i = work.begin; i < work.end; i++) {
            std::int64_t t = i / kv_heads, h = i % kv_heads, from = (s.first_row + t) * row + h * d;
            std::int64_t to = ((s.slot * kv_heads + h) * call.cache.context + s.cached + t) * d;
            std::copy_n(call.in[1] + from, d, call.cache.k + to);
            std::copy_n(call.in[2] + from, d, call.cache.v + to);
        }
    }
}

/// Whose task it is. Dealt out to and fro (0 1 1 0 0 1 …), because later query blocks see more keys.
bool mine(const Worker& worker, std::int64_t task) {
    std::int64_t round = task / worker.count, place = task % worker.count;
    return worker.index == (round % 2 ? worker.count - 1 - place : place);
}

template <class Real>
void forward(Call<Real>& call) {
    Attention<Real> args = arguments(call);
    if (call.cache.k) {
        fill_cache(call, args.kv_heads, args.head_width);
        call.worker.sync();
    }
    std::int64_t block = call.kernels->attention_block;
    std::int64_t task = 0;
    for (const Sequence& s : call.batch->sequences) {
        place(args, call, s);
        for (std::int64_t h = 0; h < args.heads; h++)
            for (std::int64_t i = 0; i < s.length; i += block, task++)
                if (mine(call.worker, task))
                    call.kernels->attention(args, h, i, std::min(i + block, s.length), call.workspace);
    }
}

template <class Real>
void backward(Call<Real>& call) {
    AttentionBackward<Real> args;
    args.forward = arguments(call);
    args.accumulate_q = call.accumulate[0], args.accumulate_k = call.accumulate[1];
    args.accumulate_v = call.accumulate[2];
    std::int64_t kv_heads = args.forward.kv_heads, task = 0;
    for (const Sequence& s : call.batch->sequences) {
        place(args.forward, call, s);
        args.dout = call.dout + s.first_row * args.forward.out_row;
        args.dq = call.din[0] + s.first_row * args.forward.q_row;
        args.dk = call.din[1] + s.first_row * args.forward.k_row;
        args.dv = call.din[2] + s.first_row * args.forward.v_row;
        for (std::int64_t h = 0; h < kv_heads; h++, task++)
            if (mine(call.worker, task)) call.kernels->attention_backward(args, h, call.workspace);
    }
}

}  // namespace

const Op attention_op = {
    .name = "attention",
    .inputs = 3,
    .parameters = 0,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .reads_inputs = 7,
    .reads_output = true,
    .cached = true,
    .saved = saved,
};

}  // namespace linnet
