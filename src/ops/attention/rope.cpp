// Rotary positions (Su et al. 2021, "RoFormer", section 3.2.2): pair i of a head at position t turns by
// t · theta^(-2i/D). The backward turns by the opposite angle.   x, y [R, H·D]. With "rotary_width" D' only
// the first D' elements of a head turn (the formula then has D'), and the others stay. Longer contexts than
// the model was first trained for: "factor" divides all angles (Chen et al. 2023), parameters [D'/2] divide
// each pair's, "extrapolation" is YaRN.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "ops/rules.h"

namespace linnet {
namespace {

double number_or(const Attributes& a, std::string_view name, double otherwise) {
    return a.has(name) ? a.number(name) : otherwise;
}

/// Elements of a head that turn.
std::int64_t rotary_width(const Attributes& a) {
    return a.integer(a.has("rotary_width") ? "rotary_width" : "head_width");
}

std::int64_t width(const NodeShape& s) {
    std::int64_t head = s.attributes.integer("head_width"), turned = rotary_width(s.attributes);
    if (turned % 2 || turned > head || s.in[0] % head)
        throw std::logic_error("rope: head width must divide the width, and an even part of it turn");
    for (const Shape& factors : s.parameters)
        if (factors.count() != turned / 2) throw std::logic_error("rope: one factor for each pair");
    return s.in[0];
}

double flops(const NodeShape& s, double) {
    return 3.0 * static_cast<double>(s.in[0]);
}

/// By what pair i's angle is divided, from the parameters: one table, or one for contexts of at most
/// "original" positions and one for longer ones.
std::vector<double> factors_of(const NodeShape& s, std::int64_t context) {
    std::vector<double> factors(static_cast<std::size_t>(rotary_width(s.attributes) / 2), 1.0);
    if (s.values.empty()) return factors;
    bool second = s.values.size() > 1 && context > s.attributes.integer("original");
    const Tensor& table = s.values[second ? 1 : 0];
    for (std::size_t i = 0; i < factors.size(); i++)
        factors[i] =
            table.type == DType::f64 ? table.as<double>()[i] : static_cast<double>(table.as<float>()[i]);
    return factors;
}

/// YaRN's share of pair i that is extrapolated, which is turned as if the context were the original one (Peng
/// et al. 2023, section 3.2).
struct Yarn {
    double extrapolation = 0, low = 0, high = 0;

    Yarn(const Attributes& a, std::int64_t turned, double theta)
        : extrapolation(number_or(a, "extrapolation", 0)) {
        if (extrapolation == 0) return;
        auto width = static_cast<double>(turned), original = a.number("original");
        // The pair that makes `turns` turns in the original context.
        auto pair = [&](double turns) {
            return width * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta));
        };
        low = std::max(0.0, std::floor(pair(a.number("beta_fast"))));
        high = std::min(width - 1, std::ceil(pair(a.number("beta_slow"))));
    }
    double share(std::int64_t i) const {
        double ramp = (static_cast<double>(i) - low) / std::max(0.001, high - low);
        return extrapolation * (1 - std::clamp(ramp, 0.0, 1.0));
    }
};

/// [positions, turned/2, 2]: cosine and sine, times the scale of turned values. In double: at position 10⁵ a
/// float angle would be off by 0.004.
std::vector<double> angles(const NodeShape& s, std::int64_t context, Range positions) {
    const Attributes& a = s.attributes;
    std::int64_t turned = rotary_width(a);
    double theta = a.number("theta"), factor = number_or(a, "factor", 1), scale = number_or(a, "scale", 1);
    std::vector<double> factors = factors_of(s, context);
    Yarn yarn(a, turned, theta);
    if (yarn.extrapolation != 0) scale *= 1 + 0.1 * std::log(std::max(1.0, factor));  // its section 3.4
    std::vector<double> table(static_cast<std::size_t>(positions.size() * turned));
    for (std::int64_t i = 0; i < turned / 2; i++) {
        double rate = std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(turned)) /
                      factors[static_cast<std::size_t>(i)];
        rate *= yarn.share(i) + (1 - yarn.share(i)) / factor;
        for (std::int64_t t = 0; t < positions.size(); t++) {
            double angle = static_cast<double>(positions.begin + t) * rate;
            table[static_cast<std::size_t>(t * turned + 2 * i)] = scale * std::cos(angle);
            table[static_cast<std::size_t>(t * turned + 2 * i + 1)] = scale * std::sin(angle);
        }
    }
    return table;
}

template <class Real>
void rotate(const Call<Real>& call, const Real* from, Real* to, Real sign, bool accumulate) {
    std::int64_t head = call.attributes->integer("head_width");
    std::int64_t turned = rotary_width(*call.attributes);
    bool halves = call.attributes->flag("halves");
    Range rows = call.worker.share(call.rows);
    for (std::int64_t r = rows.begin; r < rows.end; r++) {
        const Real* table = call.constants + call.space->positions[static_cast<std::size_t>(r)] * turned;
        for (std::int64_t c = r * call.width; c < (r + 1) * call.width; c += head) {
            call.kernels->rope(turned, halves, table, sign, from + c, to + c, accumulate);
            for (std::int64_t i = c + turned; i < c + head; i++)
                to[i] = accumulated(accumulate, to[i], from[i]);
        }
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
    .parameters = 2,
    .width = width,
    .flops = flops,
    .forward = [](auto& call) { forward(call); },
    .backward = [](auto& call) { backward(call); },
    .position_table = angles,
};

}  // namespace linnet
