// One row for each sequence: the mean of its rows, or its first or last one; and rows that come from outside
// (patches of pictures).   x [R,C], y [S,C]; row i of y is of sequence i of x's space. Attribute "kind".
#include <algorithm>
#include <stdexcept>

#include "ops/chosen_rows.h"
#include "ops/pool.h"
#include "ops/rules.h"

namespace linnet {
namespace {

/// The rows of a sequence that count: [first, first + count).
template <class Real>
Range rows_of(const Call<Real>& call, std::int64_t sequence) {
    const auto& segments = call.in_space[0]->segments;
    if (sequence >= static_cast<std::int64_t>(segments.size())) return {0, 0};
    const Segment& s = segments[static_cast<std::size_t>(sequence)];
    if (s.length == 0) return {0, 0};
    switch (static_cast<Pooling>(call.attributes->integer("kind"))) {
        case Pooling::first:
            return {s.first, s.first + 1};
        case Pooling::last:
            return {s.first + s.length - 1, s.first + s.length};
        case Pooling::mean:
            break;
    }
    return {s.first, s.first + s.length};
}

template <class Real>
void forward(Call<Real>& call) {
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        Range of = rows_of(call, r);
        Real* to = call.out + r * call.width;
        std::fill_n(to, call.width, Real(0));
        for (std::int64_t i = of.begin; i < of.end; i++)
            call.kernels->add(call.width, to, call.in[0] + i * call.width, to);
        if (of.size() > 1) call.kernels->scale(call.width, Real(1) / static_cast<Real>(of.size()), to, to);
    }
}

template <class Real>
void backward(Call<Real>& call) {
    const Range columns = begin_gradient(call);
    for (std::int64_t r = 0; r < call.rows; r++) {
        Range of = rows_of(call, r);
        const Real* from = call.dout + r * call.width;
        const Real share = Real(1) / static_cast<Real>(std::max<std::int64_t>(of.size(), 1));
        for (std::int64_t i = of.begin; i < of.end; i++)
            for (std::int64_t c = columns.begin; c < columns.end; c++)
                call.din[0][i * call.width + c] += share * from[c];
    }
}

std::int64_t stream_width(const NodeShape& s) {
    return s.attributes.integer("width");
}

template <class Real>
void read_vectors(Call<Real>& call) {
    Range part = call.worker.share(call.rows * call.width, 64);
    for (std::int64_t i = part.begin; i < part.end; i++) call.out[i] = static_cast<Real>(call.vectors[i]);
}

}  // namespace

const Op pool_op = {
    .name = "pool",
    .inputs = 1,
    .width = input_width,
    .flops = no_flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
};

/// x = the rows of a stream of vectors, [R, "width"].
const Op vectors_op = {
    .name = "vectors",
    .inputs = 0,
    .width = stream_width,
    .flops = no_flops,
    .forward = [](auto& call) { read_vectors(call); },
    .stream = true,
};

}  // namespace linnet
