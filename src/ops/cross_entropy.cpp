// Cross-entropy fused with the output projection: logits = x · Wᵀ are made, used and overwritten a chunk of
// rows at a time, so that those of a whole batch are never stored.   x [R,C], W [V,C]; out [R,1]: nats per
// row (0 where no target). Backward makes the loss as well: the logits of a training step are computed once,
// not twice. With a bias [V], an attribute "scale" s and one "softcap" c (bound.cpp), logits are
// c · tanh(s (x · Wᵀ + b) / c). "smoothing" e, in training alone: the target has 1 - e, and all classes e / V
// each (Szegedy et al. 2016, section 7). "weight": of the gradient, where several losses are learned.
// "sequences": rows are sequences, whose loss has a scale of its own.
#include <algorithm>

#include "ops/logits.h"

namespace linnet {
namespace {

std::int64_t width(const NodeShape& s) {
    return logits_width(s, "cross_entropy");
}

std::int64_t scratch(const NodeShape& s, std::int64_t rows) {
    std::int64_t copies = s.attributes.has("softcap") ? 2 : 1;  // the logits, as their gradients replace them
    return copies * logits_scratch(s, rows);
}

/// A chunk of rows at a time, in rounds: logits, then losses, then (backward) what follows from their
/// gradients.
constexpr std::int64_t forward_rounds = 2, backward_rounds = 3;

/// What follows the product, of one row of logits; `kept` takes a copy of the result where it is bounded.
template <class Real>
void finish(const Call<Real>& call, std::int64_t v, Real* logits, Real* kept) {
    const Attributes& a = *call.attributes;
    if (a.has("scale")) call.kernels->scale(v, static_cast<Real>(a.number("scale")), logits, logits);
    if (!a.has("softcap")) return;
    softcap(*call.kernels, static_cast<Real>(a.number("softcap")), v, logits, logits);
    std::copy_n(logits, v, kept);
}

/// The gradient of the product's result from that of the finished logits, in place.
template <class Real>
void finish_backward(const Call<Real>& call, std::int64_t v, const Real* kept, Real* gradient) {
    const Attributes& a = *call.attributes;
    if (a.has("softcap")) {
        const Real inverse = 1 / static_cast<Real>(a.number("softcap"));
        for (std::int64_t i = 0; i < v; i++) gradient[i] *= softcap_slope(inverse, kept[i]);
    }
    if (a.has("scale")) call.kernels->scale(v, static_cast<Real>(a.number("scale")), gradient, gradient);
}

/// The target's logit less the mean of all: what a smoothed loss adds, times the smoothing.
template <class Real>
double above_mean(std::int64_t v, std::int32_t target, const Real* logits) {
    double sum = 0;
    for (std::int64_t i = 0; i < v; i++) sum += static_cast<double>(logits[i]);
    return static_cast<double>(logits[target]) - sum / static_cast<double>(v);
}

/// Loss and gradient of one row; the loss in nats.
template <class Real>
double lose(const Call<Real>& call, std::int64_t v, std::int32_t target, bool gradient, Real* logits) {
    const Attributes& a = *call.attributes;
    const double of = a.has("sequences") ? call.batch->sequence_scale : call.batch->loss_scale;
    const auto scale = static_cast<Real>(of * (a.has("weight") ? a.number("weight") : 1));
    if (!a.has("smoothing") || !call.batch->training)
        return call.kernels->cross_entropy(v, target, scale, gradient, logits);
    const double e = a.number("smoothing"), above = above_mean(v, target, logits);
    const double loss = call.kernels->cross_entropy(v, target, scale, gradient, logits) + e * above;
    if (!gradient) return loss;
    const Real each = static_cast<Real>(e / static_cast<double>(v)) * scale;
    for (std::int64_t i = 0; i < v; i++) logits[i] -= each;
    logits[target] += static_cast<Real>(e) * scale;
    return loss;
}

/// Backward's logits, and their gradients, are stored as bf16 where its products round to that: they are
/// written and read four times, and chunks are twice as long. (The sum of a bias' gradient takes Reals.) A
/// row of them, and what the soft cap keeps, is unpacked to the member's workspace.
template <class Real>
DType backward_type(const Call<Real>& call) {
    const std::int64_t v = call.parameter[0].shape.dim[0];
    const bool narrow = call.product == ProductKernel::bf16 && call.kernels->narrow.rounded &&
                        call.in_width[0] <= call.kernels->narrow.rounded_longest && !call.parameter_grad[1] &&
                        info(call.parameter[0].type).block == 1 &&
                        2 * static_cast<std::size_t>(v) * sizeof(Real) <= kernel_workspace(*call.kernels);
    return narrow ? DType::bf16 : kernel_type<Real>;
}

/// The loss of one row, and its gradient in place of the logits; `kept`: see finish.
template <class Real>
Real make_loss(const Call<Real>& call, std::int64_t v, std::int32_t target, bool gradient, Real* logits,
               Real* kept) {
    if (target < 0) {
        if (gradient) std::fill_n(logits, v, Real(0));
        return 0;
    }
    finish(call, v, logits, kept);
    const double loss = lose(call, v, target, gradient, logits);
    if (gradient) finish_backward(call, v, kept, logits);
    return static_cast<Real>(loss);
}

/// Those of a chunk.
template <class Real>
void make_losses(const Call<Real>& call, LogitChunk chunk, bool gradient) {
    const std::int64_t v = call.parameter[0].shape.dim[0], row = logit_row(v, chunk.type);
    const Range rows = call.worker.share(chunk.count);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        const std::int32_t target = call.ids[static_cast<std::size_t>(chunk.first + r)];
        Real& loss = call.out[chunk.first + r];
        if (chunk.type != DType::bf16) {
            Real* copies = call.scratch + chunk_rows(call.rows, v, chunk.type) * v;
            loss = make_loss(call, v, target, gradient, call.scratch + r * row, copies + r * v);
        } else {
            std::uint16_t* stored = reinterpret_cast<std::uint16_t*>(call.scratch) + r * row;
            Real* logits = static_cast<Real*>(call.workspace);
            if (target >= 0) call.kernels->load(v, DType::bf16, stored, logits);
            loss = make_loss(call, v, target, gradient, logits, logits + v);
            call.kernels->store(v, DType::bf16, logits, stored);
        }
    }
}

template <class Real>
void forward(Call<Real>& call) {
    const LogitChunk chunk(call, call.round / forward_rounds);
    if (call.round % forward_rounds == 0) return make_logits(call, chunk);
    make_losses(call, chunk, false);
}

// With dlogits = (softmax - onehot) · loss scale, taken back through the soft cap and the scale:
// dx = dlogits · W,  dW += dlogitsᵀ · x,  db += column sums of dlogits.
template <class Real>
void backward(Call<Real>& call) {
    const LogitChunk chunk(call, call.round / backward_rounds, backward_type(call));
    if (call.round % backward_rounds == 0) return make_logits(call, chunk);
    if (call.round % backward_rounds == 1) return make_losses(call, chunk, true);
    const Tensor& w = call.parameter[0];
    std::int64_t c = call.in_width[0], v = w.shape.dim[0];
    const Operand gradients{call.scratch, chunk.type, logit_row(v, chunk.type), 1};
    if (call.din[0])
        team_project_back(call, gradients, chunk.count, w, call.din[0] + chunk.first * c, call.accumulate[0]);
    if (call.parameter_grad[0])
        team_weight_gradient(call, gradients, {call.in[0] + chunk.first * c, kernel_type<Real>, c, 1},
                             chunk.count, v, call.parameter_grad[0]);
    if (call.parameter_grad[1]) {
        Range columns = call.worker.share(v, 16);
        call.kernels->column_sum(chunk.count, v, columns.begin, columns.end, call.scratch,
                                 call.parameter_grad[1]);
    }
}

}  // namespace

const Op cross_entropy_op = {
    .name = "cross_entropy",
    .inputs = 1,
    .parameters = 2,
    .width = width,
    .flops = logits_flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .forward_rounds = [](const auto& call) { return forward_rounds * logit_chunks(call); },
    .backward_rounds =
        [](const auto& call) { return backward_rounds * logit_chunks(call, backward_type(call)); },
    .reads_inputs = 1,
    .stream = true,
    .product = true,
    .loss = true,
    .scratch = scratch,
};

}  // namespace linnet
