// The rows of each sequence from its last to its first.   x, y [R,C]
#include "ops/op.h"
#include "ops/rules.h"

namespace linnet {
namespace {

/// Calls visit(row, the one in its place) for this member's share of the rows.
template <class Real, class Visit>
void each_pair(const Call<Real>& call, const Visit& visit) {
    const Range mine = call.worker.share(call.rows);
    for (const Segment& s : call.space->segments) {
        const std::int64_t end = std::min(s.first + s.length, mine.end);
        for (std::int64_t r = std::max(s.first, mine.begin); r < end; r++)
            visit(r * call.width, (2 * s.first + s.length - 1 - r) * call.width);
    }
}

template <class Real>
void forward(Call<Real>& call) {
    each_pair(call, [&](std::int64_t to, std::int64_t from) {
        std::copy_n(call.in[0] + from, call.width, call.out + to);
    });
}

template <class Real>
void backward(Call<Real>& call) {
    each_pair(call, [&](std::int64_t to, std::int64_t from) {
        put_row(call, call.accumulate[0], call.width, call.dout + from, call.din[0] + to);
    });
}

}  // namespace

const Op reverse_op = {
    .name = "reverse",
    .inputs = 1,
    .width = input_width,
    .flops = no_flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
};

}  // namespace linnet
