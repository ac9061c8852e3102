// A model file written again with its matrices in another type, a few rows in memory at a time.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "formats/gguf.h"
#include "model/quantize/quantize_types.h"

namespace linnet {

/// For each tensor the weight of an error in each of its columns, [C]: the mean square of what that column is
/// multiplied by.
using Importance = std::map<std::string, std::vector<float>, std::less<>>;

struct QuantizeOptions {
    const QuantizeMix* mix = nullptr;
    bool pure = false;        // every matrix in the mix's base type
    bool requantize = false;  // from tensors that are quantized already, too
    std::vector<std::pair<std::string, DType>>
        tensors;                 // pattern (* is any text) and type: the last that fits
    bool by_importance = false;  // rules for weighed errors hold; what weighs may be measured after the plan
    Importance importance;
    int threads = 0;  // 0: physical cores
    Existing existing = Existing::replace;
};

/// What became of one tensor.
struct QuantizedTensor {
    std::string name;
    DType from, to;
    Shape shape;
    std::int64_t bytes = 0;  // as written
    double error = 0;  // rms of the difference over the rms of the source; 0 where the bytes are the same
};

/// Decides every tensor's type. Error(Exit::input) where a source is quantized and is not to be made again,
/// Error(Exit::usage) for a pattern that fits no matrix or a type whose blocks do not divide its rows.
std::vector<QuantizedTensor> plan_quantization(const Gguf& file, const QuantizeOptions& options);

/// Writes `path` by the plan and fills in the errors; `progress` is told of the weights done and of all.
/// Error(Exit::input) for weights that are not finite, or too large for their type. Anonymous memory: under
/// 64 MiB beside the header, more only for rows of millions of weights.
void write_quantized(const Gguf& file, const QuantizeOptions& options, std::vector<QuantizedTensor>& plan,
                     const std::string& path, const std::function<void(double done, double all)>& progress);

}  // namespace linnet
