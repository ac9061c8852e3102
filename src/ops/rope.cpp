// Rotary positions (Su et al. 2021, "RoFormer", section 3.2.2): pair i of a head at position t turns by
// t · theta^(-2i/D). The backward turns by the opposite angle.   x, y [R, H·D].
#include <cmath>
#include <stdexcept>

#include "ops/op.h"

namespace linnet {
namespace {

std::int64_t width(const NodeShape& s) {
    std::int64_t head = s.attributes.integer("head_width");
    if (head % 2 || s.in[0] % head)
        throw std::logic_error("rope: head width must be even and divide the width");
    return s.in[0];
}

double flops(const NodeShape& s, double) {
    return 3.0 * static_cast<double>(s.in[0]);
}

/// [positions, D/2, 2]: cosine and sine. In double: at position 10⁵ a float angle would be off by 0.004.
std::vector<double> angles(const NodeShape& s, std::int64_t positions) {
    std::int64_t head = s.attributes.integer("head_width");
    double theta = s.attributes.number("theta");
    std::vector<double> table(static_cast<std::size_t>(positions * head));
    for (std::int64_t i = 0; i < head / 2; i++) {
        double rate = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(head));
        for (std::int64_t t = 0; t < positions; t++) {
            double angle = static_cast<double>(t) * rate;
            table[static_cast<std::size_t>(t * head + 2 * i)] = std::cos(angle);
            table[static_cast<std::size_t>(t * head + 2 * i + 1)] = std::sin(angle);
        }
    }
    return table;
}

template <class Real>
void rotate(const Call<Real>& call, const Real* from, Real* to, Real sign, bool accumulate) {
    std::int64_t head = call.attributes->integer("head_width");
    bool halves = call.attributes->flag("halves");
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        const Real* table = call.constants + call.space->positions[static_cast<std::size_t>(r)] * head;
        for (std::int64_t c = r * call.width; c < (r + 1) * call.width; c += head)
            call.kernels->rope(head, halves, table, sign, from + c, to + c, accumulate);
    }
}

template <class Real>
void forward(Call<Real>& call) {
    rotate(call, call.in[0], call.out, Real(1), false);
}
template <class Real>
void backward(Call<Real>& call) {
    rotate(call, call.dout, call.din[0], Real(-1), call.accumulate[0]);
}

}  // namespace

const Op rope_op = {
    .name = "rope",
    .inputs = 1,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .constants = angles,
};

}  // namespace linnet
