// What errors in a model's weights weigh: how large the values are that they are multiplied by, on a text.
#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "model/model.h"
#include "model/quantize/quantize.h"

namespace linnet {

/// The model reads `ids` in disjoint windows of `window` tokens; the rest is left out. For each tensor that
/// is a matrix of products, the mean square of their input, by column (GPTQ and llama.cpp's imatrix take the
/// same diagonal of the Hessian: Frantar et al. 2022). The same for any number of threads. `progress` is told
/// of the windows done and of all.
Importance measure_importance(const Model& model, std::span<const TokenId> ids, std::int64_t window,
                              int threads, const std::function<void(double done, double all)>& progress);

}  // namespace linnet
