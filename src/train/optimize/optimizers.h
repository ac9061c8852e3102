// Optimizers as a table: what each keeps for a parameter, and what a step of it is.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernels.h"
#include "train/optimize/settings.h"

namespace linnet {

struct OptimizerKind {
    std::string_view name;
    UpdateRule rule;
    int moments;          // numbers kept for each element
    bool has_momentum;    // train.optimizer.momentum is its first moment's factor, not beta1
    bool coupled_decay;   // weight decay is added to the gradient (L2), not to the update
    bool orthogonalises;  // matrices of blocks; all other parameters are AdamW's
    /// Of an Adam: correction1, correction2 and rectified at step `step` (from 1). Null: as they are.
    void (*correct)(const OptimizerConfig&, std::int64_t step, Update<float>&);
};

std::span<const OptimizerKind> optimizer_kinds();
std::vector<std::string> optimizer_names();
/// `name` must be one of the table's.
const OptimizerKind& optimizer_kind(std::string_view name);

/// Numbers that this config's optimizer keeps for each element of a parameter (sgd without momentum: none).
int moments_of(const OptimizerKind& kind, const OptimizerConfig& config);

/// A schedule's learning rate at a step.
struct CurrentRate {
    double rate, of_largest;  // of_largest: as a share of the largest that the schedule comes to
};

/// A step of this optimizer on a parameter that decays (or does not), at its `share` of the schedule's
/// learning rate. Clipping is left to the caller.
Update<float> update_of(const OptimizerKind& kind, const OptimizerConfig& config, bool decays, double share,
                        CurrentRate now, std::int64_t step);

}  // namespace linnet
