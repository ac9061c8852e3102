// Mamba's selective scan (Gu & Dao 2023, section 3.2).   x, dt, y [R,C]; b, c [R,N]; a [C·N], skip [C].
// Every channel has a state of N numbers, which kernels/scan.h carries from row to row:
//   h ← exp(Δ a) h + Δ x b,   y = c · h + skip x,   Δ = softplus(dt).
#include "kernels/scan.h"

#include "ops/recurrent.h"
#include "ops/rules.h"

namespace linnet {
namespace {

std::int64_t states_of(const NodeShape& s) {
    return s.in[2];
}
std::int64_t width(const NodeShape& s) {
    std::int64_t c = s.in[0], n = states_of(s);
    if (s.in[1] != c || s.in[3] != n || n < 1 || n > scan_most_states || s.parameters[0].count() != c * n ||
        s.parameters[1].count() != c)
        throw std::logic_error("selective_scan: inputs and parameters do not fit each other");
    return c;
}
double flops(const NodeShape& s, double) {
    return 20.0 * static_cast<double>(s.in[0] * states_of(s));
}
std::int64_t blocks_of(std::int64_t channels) {
    return (channels + scan_channels - 1) / scan_channels;
}
std::int64_t saved(const NodeShape& s) {
    return (s.in[0] * states_of(s) + scan_chunk - 1) / scan_chunk;
}
std::int64_t backward_scratch(const NodeShape& s, std::int64_t rows) {
    return blocks_of(s.in[0]) * rows * 2 * states_of(s);
}

template <class Real>
SelectiveScan<Real> scan_of(const Call<Real>& call, const Segment& s) {
    SelectiveScan<Real> scan;
    scan.rows = s.length, scan.first = s.first;
    scan.channels = call.width, scan.states = call.in_width[2];
    scan.x = call.in[0] + s.first * scan.channels, scan.dt = call.in[1] + s.first * scan.channels;
    scan.b = call.in[2] + s.first * scan.states, scan.c = call.in[3] + s.first * scan.states;
    scan.a = call.vector(0), scan.skip = call.vector(1);
    scan.kept = call.saved;
    return scan;
}

Range channels_of(std::int64_t block, std::int64_t width) {
    return {block * scan_channels, std::min((block + 1) * scan_channels, width)};
}

template <class Real>
void forward(Call<Real>& call) {
    each_head(call, blocks_of(call.width), [&](const Segment& s, std::int64_t block) {
        SelectiveScan<Real> scan = scan_of(call, s);
        scan.state = carried(call, s);
        scan.y = call.out + s.first * call.width;
        Range c = channels_of(block, call.width);
        call.kernels->selective_scan(scan, c.begin, c.end);
    });
}

/// Round 0: all but db and dc, of which each block of channels makes a part. Round 1: the sums of the parts.
template <class Real>
void backward(Call<Real>& call) {
    const std::int64_t blocks = blocks_of(call.width), states = call.in_width[2],
                       part = call.rows * 2 * states;
    if (call.round == 0) {
        Range work = call.worker.share(blocks);
        for (std::int64_t i = work.begin; i < work.end; i++)
            for (const Segment& s : call.space->segments) {
                if (s.length == 0) continue;
                SelectiveScanBackward<Real> b{.forward = scan_of(call, s)};
                const std::int64_t at = s.first * call.width;
                b.dy = call.dout + at;
                if (call.din[0]) b.dx = call.din[0] + at;
                if (call.din[1]) b.ddt = call.din[1] + at;
                b.accumulate_x = call.accumulate[0], b.accumulate_dt = call.accumulate[1];
                b.dbc = call.scratch + i * part + s.first * 2 * states;
                b.da = call.parameter_grad[0], b.dskip = call.parameter_grad[1];
                Range c = channels_of(i, call.width);
                call.kernels->selective_scan_backward(b, c.begin, c.end);
            }
        return;
    }
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++)
        for (std::size_t which = 0; which < 2; which++)
            for (std::int64_t n = 0; call.din[2 + which] && n < states; n++) {
                Real sum = 0;
                for (std::int64_t i = 0; i < blocks; i++)
                    sum += call.scratch[i * part + (2 * r + static_cast<std::int64_t>(which)) * states + n];
                Real& to = call.din[2 + which][r * states + n];
                to = accumulated(call.accumulate[2 + which], to, sum);
            }
}

}  // namespace

const Op selective_scan_op = {
    .name = "selective_scan",
    .inputs = 4,
    .parameters = 2,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .backward_rounds = [](const auto&) -> std::int64_t { return 2; },
    .reads_inputs = 15,
    .saved = saved,
    .backward_scratch = backward_scratch,
};

}  // namespace linnet
