// Which type a model's tensors take when it is quantized: the types and mixes that people know from
// llama.cpp, by its rules, so that a file made here has the size and the quality that its name promises.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/gguf.h"

namespace linnet {

/// What --type names.
struct QuantizeMix {
    std::string_view name;    // "q4_k_m"
    DType base;               // of the matrices that no rule names
    std::uint32_t file_type;  // general.file_type: llama.cpp's enum llama_ftype
};
std::span<const QuantizeMix> quantize_mixes();
/// Null where there is none of that name.
const QuantizeMix* quantize_mix(std::string_view name);

/// What the rules ask of a model.
struct QuantizeModel {
    std::int64_t layers = 0;
    std::int64_t heads_per_key = 1;  // query heads per key/value head
    bool has_output = false;         // an output matrix of its own: else the embedding is one
};
QuantizeModel quantize_model(const Gguf& file);

/// A matrix of a product or an embedding: it takes a quantized type. Norms, biases, routers and position
/// tables do not.
bool is_quantized_tensor(const GgufTensor& tensor);

/// The type of such a tensor. A mix's own base for all with `pure`. Where rows are not whole blocks of the
/// type, the fallback type that llama.cpp takes.
DType quantized_type(const QuantizeMix& mix, const QuantizeModel& model, const GgufTensor& tensor, bool pure,
                     bool importance);

}  // namespace linnet
