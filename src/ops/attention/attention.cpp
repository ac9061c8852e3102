// softmax(q · kᵀ / sqrt(D) + mask) · v over each sequence of the batch (Vaswani et al. 2017, section 3.2),
// multi-head, grouped (Ainslie et al. 2023) or multi-query (Shazeer 2019).   q [R, H·D]; k, v [S, KV·D]; out
// [R, H·D]. Keys may lie in another row space than queries (cross-attention): sequence i of one belongs to
// sequence i of the other. Where the plan has states, keys and values come from the state (append.cpp).
// Attributes that may be there: "window", how many positions are looked back at with the own one (and ahead,
// where not "causal"), and beside it "globals", the first positions, which all see; "softcap" c, scores
// become c · tanh(score / c) (Gemma 2, 2024); "alibi", the exponent of ALiBi's slopes (Press et al. 2022);
// "dropout", the probability with which training drops a weight behind the softmax (kernels.h says which);
// "random", so many blocks of keys that each block of queries sees beside its window (BigBird: Zaheer et al.
// 2020), chosen from "seed" among "blocks". A fourth input is a table of biases by distance (score_bias.cpp),
// or where there are "bias_keys" of biases by places in windows of pictures (window.cpp).
#include "ops/attention/call.h"

#include <cmath>
#include <vector>

#include "base/rng.h"

namespace linnet {
namespace {

constexpr std::uint64_t choice_stream = 0x626c6f636b;  // "block": this purpose's stream of the seed

/// ALiBi's slopes: powers of 2^(-alibi/n), with n the largest power of two that is not above the heads; those
/// of the heads from n on stand between them. [H]
void add_slopes(const NodeShape& s, std::vector<double>& all) {
    double most = s.attributes.number("alibi");
    std::int64_t heads = s.attributes.integer("heads"), n = 1;
    while (2 * n <= heads) n *= 2;
    for (std::int64_t h = 0; h < heads; h++) {
        auto power = static_cast<double>(h < n ? 2 * (h + 1) : 2 * (h - n) + 1);
        all.push_back(std::exp2(-most * power / static_cast<double>(2 * n)));
    }
}

/// Attention::chosen: "random" blocks for each block of queries, of those that neither the window nor the
/// globals show whole; where causal, of those before it.
void add_choice(const NodeShape& s, std::vector<double>& all) {
    const Attributes& a = s.attributes;
    const std::int64_t blocks = a.integer("blocks"), random = a.integer("random"),
                       window = a.integer("window");
    const std::int64_t globals = a.has("globals") ? a.integer("globals") : 0;
    const Rng rng(static_cast<std::uint64_t>(a.integer("seed")), choice_stream);
    std::uint64_t draw = 0;
    for (std::int64_t b = 0; b < blocks; b++) {
        std::vector<std::int64_t> others;
        for (std::int64_t j = 0; j < (a.flag("causal") ? b : blocks); j++)
            if ((std::abs(j - b) + 1) * choice_block > window && (j + 1) * choice_block > globals)
                others.push_back(j);
        const std::size_t row = all.size();
        all.resize(row + static_cast<std::size_t>(blocks), 0);
        for (std::int64_t n = 0; n < random && !others.empty(); n++) {
            const std::uint64_t at = rng.below(others.size(), draw++);
            all[row + static_cast<std::size_t>(others[at])] = 1;
            others[at] = others.back();
            others.pop_back();
        }
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
/// once. Products of numbers in two parts are for reading alone: what training in f32 differentiates must be
/// the product itself.
template <class Real>
void forward(Call<Real>& call) {
    Attention<Real> args = arguments(call);
    bool writing = call.phase == Phase::write,
         in_two = call.phase == Phase::read && call.kernels->narrow.attention_split;
    std::int64_t block = writing ? 1 : call.kernels->attention_block, task = 0;
    auto* kernel = writing          ? call.kernels->attention_decode
                   : in_tiles(call) ? call.kernels->narrow.attention
                   : in_two         ? call.kernels->narrow.attention_split
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
    std::int64_t kv_heads = args.forward.kv_heads, task = 0;
    auto* kernel =
        in_tiles(call) ? call.kernels->narrow.attention_backward : call.kernels->attention_backward;
    std::int64_t one = args.forward.heads / kv_heads * args.forward.bias_row;  // biases of a task
    for (std::size_t s = 0; s < call.space->segments.size(); s++) {
        place(args.forward, call, s);
        if (call.din[3]) args.dbias = call.din[3] + (args.forward.bias - call.in[3]);
        std::int64_t first = call.space->segments[s].first, keys = call.in_space[1]->segments[s].first;
        args.dout = call.dout + first * args.forward.out_row;
        args.dq = call.din[0] + first * args.forward.q_row;
        args.dk = call.din[1] + keys * args.forward.k_row;
        args.dv = call.din[2] + keys * args.forward.v_row;
        for (std::int64_t h = 0; h < kv_heads; h++, task++) {
            if (!mine(call.worker, args.dbias ? h : task)) continue;
            if (args.dbias && s == 0 && !call.accumulate[3]) std::fill_n(call.din[3] + h * one, one, Real(0));
            kernel(args, h, call.workspace);
        }
    }
}

}  // namespace

std::vector<double> attention_constants(const NodeShape& s) {
    std::vector<double> all;
    if (s.attributes.has("alibi")) add_slopes(s, all);
    if (s.attributes.has("random")) add_choice(s, all);
    return all;
}

const Op attention_op = {
    .name = "attention",
    .inputs = 3,
    .width = attention_width,
    .flops = attention_flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .stored = stored,
    .reads_inputs = 7,
    .from_state = 6,
    .reads_output = true,
    .saved = attention_saved,
    .constants = attention_constants,
};

const Op biased_attention_op = [] {
    Op op = attention_op;
    op.name = "biased_attention", op.inputs = 4, op.reads_inputs = 15;
    return op;
}();

}  // namespace linnet
