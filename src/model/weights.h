// A model's parameters and the tensors of a file: bound one way, written the other.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "formats/gguf.h"
#include "graph/graph.h"
#include "model/architectures.h"
#include "text/tokenizer.h"

namespace linnet {

/// A tensor of a file and the parameters whose rows it holds, one after another.
struct StoredTensor {
    std::string name;
    std::vector<std::size_t> parts;  // indices of parameters
    Shape shape;                     // of the whole
};

/// "[2, 3]".
std::string shape_text(const Shape& shape);

/// Vectors, and position tables, which runtimes add to activations as they are: they stay in f32.
bool always_f32(const Parameter& parameter);

/// Every tensor of a model as `file` has them (null: one to be written), in the order of its first parameter;
/// adapters' parameters are none of them. Linear in their number.
std::vector<StoredTensor> stored_tensors(const Graph& graph, const Architecture& architecture,
                                         const Gguf* file);

/// Where the rows of a parameter stand in a file.
struct ParameterPlace {
    const GgufTensor* tensor = nullptr;  // null: a bias that the file lacks, of zeros
    std::int64_t row = 0;                // the first; of a vector, each element counts as one
};

/// The place of every parameter of `graph` but adapters'. Looks at the tensors' shapes and types, not at
/// their bytes. Error(Exit::input) for a tensor that is missing, has another shape, or is not known.
std::vector<ParameterPlace> find_parameters(const Graph& graph, const Gguf& file,
                                            const Architecture& architecture);

/// One of them as it stands there; a vector as float, in `converted` where the file has another type.
Tensor bind_parameter(const Parameter& parameter, const ParameterPlace& place,
                      std::vector<std::vector<float>>& converted);

/// Every parameter of `graph` but adapters' as it stands in the file: matrices in place, whatever their type;
/// vectors as float, converted into `converted` where the file has another type. Errors as find_parameters'.
std::vector<Tensor> bind_parameters(const Graph& graph, const Gguf& file, const Architecture& architecture,
                                    std::vector<std::vector<float>>& converted);

/// Hands `tensor`'s rows, stored as `type`, to the sink; rows that have that type already go as they are.
/// Error(Exit::input), naming `file` and `name` where given, for a weight that the type cannot hold.
void emit_tensor(const Tensor& tensor, DType type, const GgufWriter::Sink& sink, const std::string& file = {},
                 const std::string& name = {});

/// What a model file says of its origin, under "linnet.": key (without the prefix) to text.
using Provenance = std::map<std::string, std::string>;

/// Writes a model as GGUF: matrices in `type` (f32, f16, bf16), vectors and position tables in f32. A link
/// of that name is replaced, not followed. Returns the sha256 of the file.
std::string save_model(const std::string& path, const ModelConfig& config, const Graph& graph,
                       const std::vector<Tensor>& parameters, const Tokenizer& tokenizer, DType type,
                       const std::string& name, const Provenance& provenance);

}  // namespace linnet
