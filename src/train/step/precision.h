// In which numbers a run computes (`train.precision`) and what it keeps for backward (`train.recompute`).
// Parameters, their gradients, moments and all sums are f32.
//   f32        products of f32 (in evaluation, attention's may be those of f32-split: attention_split)
//   bf16       operands of the products are rounded to bf16 (on matrix units or AVX512-BF16 where there are
//              such), and so is what is kept for backward
//   f32-split  each f32 as two bf16 and each product as three on matrix units (error about 5e-6)
#pragma once
#include <optional>
#include <string>

#include "ops/op.h"
#include "train/task/config.h"

namespace linnet {

/// The same, as a plan asks for it.
struct LearnerNumbers {
    ProductKernel products = ProductKernel::panels;
    std::optional<DType> activation;  // as Lowering says
    bool recompute = false;
};
/// Of a config that says its precision: what "auto" stands for is found once (fastest_precision), as two
/// measurements may differ.
LearnerNumbers numbers_of(const RunConfig& config);

/// "bf16" where it makes the products of one feed-forward layer of this model at least 1.25 times as fast,
/// else "f32" (always up to width 64). Measures for some tens of milliseconds.
std::string fastest_precision(const RunConfig& config, int threads);

}  // namespace linnet
