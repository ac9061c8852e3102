// Keys and values of new positions, put behind those that a state holds.   k, v [R, KV·D]; no output.
// A slot is [2, KV, positions, D]: attention reads the keys of one head as rows that lie together.
#include <algorithm>
#include <stdexcept>

#include "ops/op.h"

namespace linnet {
namespace {

std::int64_t width(const NodeShape& s) {
    if (s.in[0] != s.in[1]) throw std::logic_error("append: keys and values differ in width");
    return 0;
}
double flops(const NodeShape&, double) {
    return 0;
}

template <class Real>
void forward(Call<Real>& call) {
    const StateView& state = call.writes;
    std::int64_t heads = call.attributes->integer("kv_heads"), row = call.in_width[0], d = row / heads;
    for (const Segment& s : call.space->segments) {
        Real *keys = state.slot<Real>(s.slot), *values = keys + heads * state.positions * d;
        Range work = call.worker.share(s.length * heads);
        for (std::int64_t i = work.begin; i < work.end; i++) {
            std::int64_t t = i / heads, h = i % heads, from = (s.first + t) * row + h * d;
            std::int64_t to = (h * state.positions + s.position + t) * d;
            std::copy_n(call.in[0] + from, d, keys + to);
            std::copy_n(call.in[1] + from, d, values + to);
        }
    }
}

}  // namespace

const Op append_op = {
    .name = "append",
    .inputs = 2,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
};

}  // namespace linnet
