#include "train/optimize/optimizers.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/split.h"

namespace linnet {
namespace {

void bias_corrected(const OptimizerConfig& c, std::int64_t step, Update<float>& u) {
    u.correction1 = static_cast<float>(1 - std::pow(c.beta1, static_cast<double>(step)));
    u.correction2 = static_cast<float>(1 - std::pow(c.beta2, static_cast<double>(step)));
}

/// Liu et al. 2020, "On the variance of the adaptive learning rate", algorithm 2: until enough squares have
/// been seen, the step is that of momentum alone.
void rectified(const OptimizerConfig& c, std::int64_t step, Update<float>& u) {
    bias_corrected(c, step, u);
    double t = static_cast<double>(step), power = std::pow(c.beta2, t);
    double limit = 2 / (1 - c.beta2) - 1, length = limit - 2 * t * power / (1 - power);
    u.rectified = length <= 4 ? 0
                              : static_cast<float>(std::sqrt((length - 4) * (length - 2) * limit /
                                                             ((limit - 4) * (limit - 2) * length)));
}

constexpr OptimizerKind kinds[] = {
    {"adamw", UpdateRule::adam, 2, false, false, false, bias_corrected},  // with decoupled weight decay
    {"adam", UpdateRule::adam, 2, false, true, false, bias_corrected},
    {"radam", UpdateRule::adam, 2, false, false, false, rectified},
    {"sgd", UpdateRule::momentum, 1, true, true, false, nullptr},
    {"lion", UpdateRule::lion, 1, false, false, false, nullptr},  // the sign of a mean
    {"muon", UpdateRule::momentum, 1, true, false, true,
     nullptr},  // AdamW for what it does not orthogonalise
};

}  // namespace

std::span<const OptimizerKind> optimizer_kinds() {
    return kinds;
}

std::vector<std::string> optimizer_names() {
    return names_of(kinds);
}

const OptimizerKind& optimizer_kind(std::string_view name) {
    for (const OptimizerKind& kind : kinds)
        if (kind.name == name) return kind;
    throw std::logic_error("an optimizer without a row in the table");
}

int moments_of(const OptimizerKind& kind, const OptimizerConfig& c) {
    return kind.has_momentum && c.momentum == 0 ? 0 : kind.moments;
}

namespace {

/// The factor of the first moment at step `step` (from 1): beta1, or momentum as far as it has risen.
double first_factor(const OptimizerKind& kind, const OptimizerConfig& c, std::int64_t step) {
    if (!kind.has_momentum) return c.beta1;
    if (c.momentum_warmup == 0) return c.momentum;
    double done = std::min(1.0, static_cast<double>(step - 1) / static_cast<double>(c.momentum_warmup));
    double start = std::min(c.momentum_start, c.momentum);
    return start + (c.momentum - start) * done;
}

}  // namespace

Update<float> update_of(const OptimizerKind& kind, const OptimizerConfig& c, bool decays, double share,
                        CurrentRate now, std::int64_t step) {
    Update<float> u;
    u.rule = kind.rule;
    u.lr = static_cast<float>(share * now.rate);
    u.beta1 = static_cast<float>(first_factor(kind, c, step));
    u.beta2 = static_cast<float>(c.beta2);
    u.epsilon = static_cast<float>(c.epsilon);
    // Defazio 2025, "Why gradients rapidly increase near the end of training": decay in step with the rate.
    const double decay = c.scaled_decay ? c.weight_decay * now.of_largest : c.weight_decay;
    if (decays) (kind.coupled_decay ? u.l2 : u.weight_decay) = static_cast<float>(decay);
    u.nesterov = kind.has_momentum && c.nesterov;
    u.cautious = c.cautious_decay;
    if (kind.correct) kind.correct(c, step, u);
    return u;
}

}  // namespace linnet
