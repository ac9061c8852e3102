// Keys and values of new positions, put behind those that a state holds.   k, v [R, KV·D]; no output.
// A slot is [2, KV, positions, D]: attention reads the keys of one head as rows that lie together. They are
// rounded here to the state's type, so that every query sees the same ones, in whichever run it comes.
#include <algorithm>
#include <stdexcept>

#include "ops/rules.h"

namespace linnet {
namespace {

std::int64_t width(const NodeShape& s) {
    if (s.in[0] != s.in[1]) throw std::logic_error("append: keys and values differ in width");
    return 0;
}

/// One row as the state stores it, the last block filled up with zeros.
template <class Real>
void put(const KernelTable<Real>& kernels, DType type, std::int64_t n, const Real* from, std::byte* to) {
    constexpr std::int64_t largest = 256;
    const DTypeInfo& is = info(type);
    if (is.block == 1) return kernels.store(n, type, from, to);
    const std::int64_t whole = n / is.block * is.block;
    kernels.quantize(whole, type, from, nullptr, to);
    if (whole == n) return;
    Real last[largest] = {};
    std::copy(from + whole, from + n, last);
    kernels.quantize(is.block, type, last, nullptr, to + stored_bytes(type, whole));
}

template <class Real>
void forward(Call<Real>& call) {
    const StateView& state = call.writes;
    std::int64_t heads = call.attributes->integer("kv_heads"), row = call.in_width[0], d = row / heads;
    for (const Segment& s : call.space->segments) {
        std::byte *keys = state.slot<std::byte>(s.slot),
                  *values = keys + heads * state.positions * state.row_bytes;
        Range work = call.worker.share(s.length * heads);
        for (std::int64_t i = work.begin; i < work.end; i++) {
            std::int64_t t = i / heads, h = i % heads, from = (s.first + t) * row + h * d;
            std::int64_t to = (h * state.positions + (s.position + t) % state.positions) * state.row_bytes;
            put(*call.kernels, state.type, d, call.in[0] + from, keys + to);
            put(*call.kernels, state.type, d, call.in[1] + from, values + to);
        }
    }
}

}  // namespace

const Op append_op = {
    .name = "append",
    .inputs = 2,
    .width = width,
    .flops = no_flops,
    .forward = [](auto& call) { forward(call); },
};

}  // namespace linnet
