// y = f(x), and the gated y = f(gate) · up (Shazeer 2020, "GLU variants": SwiGLU with silu, GeGLU with gelu).
// All [R,F]; f is attribute "kind", an Activation of kernels.h.
#include <stdexcept>

#include "ops/rules.h"

namespace linnet {
namespace {

std::int64_t gated_width(const NodeShape& s) {
    if (s.in[0] != s.in[1]) throw std::logic_error("gated: gate and up differ in width");
    return s.in[0];
}
double flops(const NodeShape& s, double) {
    return 10.0 * static_cast<double>(s.in[0]);
}

template <class Real>
Activation kind(const Call<Real>& call) {
    return static_cast<Activation>(call.attributes->integer("kind"));
}

/// Calls f(begin, n) for pieces of this part's numbers, at most piece_numbers long.
constexpr std::int64_t piece_numbers = 1024;
template <class Real, class F>
void each_piece(const Call<Real>& call, F f) {
    Range all = call.worker.share(call.rows * call.width, 64);
    for (std::int64_t i = all.begin; i < all.end; i += piece_numbers)
        f(i, std::min(piece_numbers, all.end - i));
}

template <class Real>
void forward(Call<Real>& call) {
    Real room[piece_numbers], made[piece_numbers];
    each_piece(call, [&](std::int64_t i, std::int64_t n) {
        call.kernels->activation(kind(call), n, input_numbers(call, 0, i, n, room),
                                 output_numbers(call, i, made));
        output_made(call, i, n, made);
    });
}

template <class Real>
void backward(Call<Real>& call) {
    Real room[piece_numbers];
    each_piece(call, [&](std::int64_t i, std::int64_t n) {
        call.kernels->activation_backward(kind(call), n, input_numbers(call, 0, i, n, room), call.dout + i,
                                          call.din[0] + i, call.accumulate[0]);
    });
}

template <class Real>
void gated_forward(Call<Real>& call) {
    Real gate[piece_numbers], up[piece_numbers], made[piece_numbers];
    each_piece(call, [&](std::int64_t i, std::int64_t n) {
        call.kernels->gated(kind(call), n, input_numbers(call, 0, i, n, gate),
                            input_numbers(call, 1, i, n, up), output_numbers(call, i, made));
        output_made(call, i, n, made);
    });
}

template <class Real>
void gated_backward(Call<Real>& call) {
    Real gate[piece_numbers], up[piece_numbers];
    each_piece(call, [&](std::int64_t i, std::int64_t n) {
        call.kernels->gated_backward(kind(call), n, input_numbers(call, 0, i, n, gate),
                                     input_numbers(call, 1, i, n, up), call.dout + i, call.din[0] + i,
                                     call.din[1] + i, call.accumulate[0], call.accumulate[1]);
    });
}

}  // namespace

const Op activation_op = {
    .name = "activation",
    .inputs = 1,
    .width = input_width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .stored = [](const NodeShape&, ProductKernel) -> StoredForms {
        return {1, true};
    },
    .reads_inputs = 1,
    .by_row = true,
    .in_place = 1,
};

const Op gated_op = {
    .name = "gated",
    .inputs = 2,
    .width = gated_width,
    .flops = flops,
    .forward = [](auto& call) { gated_forward(call); },
    .backward = [](auto& call) { gated_backward(call); },
    .stored = [](const NodeShape&, ProductKernel) -> StoredForms {
        return {3, true};
    },
    .reads_inputs = 3,
    .by_row = true,
    .in_place = 3,
};

}  // namespace linnet
