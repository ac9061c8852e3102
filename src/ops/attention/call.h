// What the ops that are attention have in common: how a call becomes the arguments of a kernel.
#pragma once
#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "ops/rules.h"

namespace linnet {

inline std::int64_t attention_width(const NodeShape& s) {
    std::int64_t d = s.attributes.integer("head_width");
    if (s.in[0] != s.attributes.integer("heads") * d || s.in[1] != s.attributes.integer("kv_heads") * d ||
        s.in[2] != s.in[1] || s.attributes.integer("heads") % s.attributes.integer("kv_heads"))
        throw std::logic_error("attention: heads do not fit their inputs");
    return s.in[0];
}

/// Two products of each query with the keys that it sees: half of the sequence on average where it is causal.
inline double attention_flops(const NodeShape& s, double length) {
    if (s.attributes.has("sequence")) length = s.attributes.number("sequence");
    if (s.attributes.has("projected")) length = std::min(length, s.attributes.number("projected"));
    double seen = s.attributes.flag("causal") ? length / 2 : length;
    auto window = static_cast<double>(s.attributes.integer("window"));
    if (window > 0 && !s.attributes.flag("causal")) window = 2 * window - 1;
    if (window > 0 && s.attributes.has("random")) window += s.attributes.number("random") * choice_block;
    return 4 * (window > 0 ? std::min(seen, window) : seen) * static_cast<double>(s.in[0]);
}

/// The log-sum-exp, [H, T] per sequence.
inline std::int64_t attention_saved(const NodeShape& s) {
    return s.attributes.integer("heads");
}

/// ALiBi's slopes, then the blocks that are chosen, as far as there are such: what arguments() points to.
std::vector<double> attention_constants(const NodeShape& s);

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
    if (a.has("random"))
        args.chosen = call.constants + (args.slopes ? args.heads : 0), args.chosen_row = a.integer("blocks");
    if (call.in[3]) args.bias = call.in[3], args.bias_row = call.in_width[3];
    if (call.in[3] && a.has("bias_keys")) args.bias_keys = a.integer("bias_keys");
    if (call.in[3] && !args.bias_keys) args.bias_zero = a.integer("bias_zero");
    if (a.has("dropout")) args.dropout = dropout_of(call, a.number("dropout"));
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

/// Of the biases of a picture's window, sequence i: which of the tables is its own
/// (ops/attention/window.cpp).
inline std::int64_t table_of(const Attributes& a, std::int64_t i) {
    if (!a.flag("shift")) return 0;
    const std::int64_t columns = a.integer("columns"), lines = a.integer("lines");
    const std::int64_t window = i % (columns * lines);
    return 2 * (window / columns == lines - 1) + (window % columns == columns - 1);
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
    args.dropout.counter = static_cast<std::uint64_t>(s.first * args.heads * (weight_row / dropout_draws));
    if (args.bias_keys > 0)
        args.bias = call.in[3] + table_of(*call.attributes, static_cast<std::int64_t>(i)) *
                                     call.attributes->integer("sequence") * args.bias_keys;
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

}  // namespace linnet
