// Replaced tokens (Clark et al. 2020, "ELECTRA", section 2): a token drawn for each masked one, whether it
// differs from what stood there, and both put among the rest. All of it integers, through which no gradient
// goes.
#include "ops/sample.h"

#include "ops/logits.h"
#include "ops/rules.h"

namespace linnet {
namespace {

/// Streams of random numbers are integers below 2^31.
constexpr double draw_step = 0x1p-31;

// A token from softmax(x · Wᵀ + b) of each row, by the row's number of the stream: the same one for any
// number of threads, and in any batch.   x [M,C], W [V,C], b [V]; out [M,1].
std::int64_t sample_width(const NodeShape& s) {
    return logits_width(s, "sample");
}

/// The first class at which the running sum of the probabilities exceeds u. They replace the logits.
template <class Real>
std::int32_t drawn(const Call<Real>& call, std::int64_t v, double u, Real* logits) {
    call.kernels->cross_entropy(v, 0, Real(1), true, logits);  // softmax, less 1 at class 0
    logits[0] += 1;
    double below = 0;
    std::int64_t last = 0;  // where rounding leaves the whole sum below u
    for (std::int64_t i = 0; i < v; i++) {
        below += static_cast<double>(logits[i]);
        if (below > u) return static_cast<std::int32_t>(i);
        if (logits[i] > 0) last = i;
    }
    return static_cast<std::int32_t>(last);
}

/// A chunk of rows at a time, in rounds: logits, then tokens.
constexpr std::int64_t sample_rounds = 2;

template <class Real>
void sample(Call<Real>& call) {
    const LogitChunk chunk(call, call.round / sample_rounds);
    if (call.round % sample_rounds == 0) return make_logits(call, chunk);
    const std::int64_t v = call.parameter[0].shape.dim[0];
    const Range rows = call.worker.share(chunk.count);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        const double u = draw_step * static_cast<double>(call.ids[static_cast<std::size_t>(chunk.first + r)]);
        call.out_integers()[chunk.first + r] = drawn(call, v, u, call.scratch + r * v);
    }
}

// 1 where an integer is not that of the stream, else 0.
template <class Real>
void differ(Call<Real>& call) {
    const Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++)
        call.out_integers()[r] = call.integers(0)[r] != call.ids[static_cast<std::size_t>(r)];
}

// The stream's integer, or where that is -1 - k the k-th of the input.
template <class Real>
void insert(Call<Real>& call) {
    const Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        const std::int32_t given = call.ids[static_cast<std::size_t>(r)];
        call.out_integers()[r] = given >= 0 ? given : call.integers(0)[-1 - given];
    }
}

}  // namespace

const Op sample_op = {
    .name = "sample",
    .inputs = 1,
    .parameters = 2,
    .width = sample_width,
    .flops = logits_flops,
    .forward = [](auto& call) { sample(call); },
    .forward_rounds = [](const auto& call) { return sample_rounds * logit_chunks(call); },
    .undifferentiated = 1,
    .integers = true,
    .stream = true,
    .product = true,
    .scratch = logits_scratch,
};

const Op differ_op = {
    .name = "differ",
    .inputs = 1,
    .width = one_wide,
    .flops = no_flops,
    .forward = [](auto& call) { differ(call); },
    .undifferentiated = 1,
    .integers = true,
    .stream = true,
};

const Op insert_op = {
    .name = "insert",
    .inputs = 1,
    .width = one_wide,
    .flops = no_flops,
    .forward = [](auto& call) { insert(call); },
    .undifferentiated = 1,
    .integers = true,
    .stream = true,
};

}  // namespace linnet
