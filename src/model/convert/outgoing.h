// A model on its way out: what it is as GGUF, and the values of its parameters, read a few MiB at a time
// where they lie or as they are made.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/gguf.h"
#include "graph/graph.h"
#include "model/architectures.h"
#include "model/convert/source.h"
#include "model/convert/tensor_rows.h"

namespace linnet {

/// One parameter's values.
struct ParameterValues {
    DType type = DType::f32;
    Shape shape;
    const std::byte* in_place = nullptr;  // the first of them; null: they are made
    const MadeRows* made = nullptr;
    std::string file, tensor;  // where they come from, for refusals
    std::int64_t row = 0;      // of the tensor: the first one

    std::int64_t columns() const { return shape.rank > 1 ? shape.dim[1] : 1; }  // of a vector 1
    std::int64_t rows() const { return shape.count() / columns(); }
};

/// Reads windows of parameters as one type. Keeps its memory from one to the next.
class WindowReader {
  public:
    /// What becomes of a finite weight that the type cannot hold: Error(Exit::input), or infinite.
    enum class TooLarge { refused, infinite };
    explicit WindowReader(DType type, TooLarge too_large = TooLarge::refused)
        : type_(type), too_large_(too_large) {}
    /// The window's elements, row after row, until the next call. Of a quantized type, it begins and ends
    /// with blocks.
    const std::byte* read(const ParameterValues& from, const Window& window,
                          ValueTransform transform = ValueTransform::same);

  private:
    const std::byte* stored(const ParameterValues& from, const Window& window);
    DType type_;
    TooLarge too_large_;
    std::vector<std::byte> stored_, out_;
    std::vector<float> values_;
};

/// Hands a parameter's values on as `type`, a few MiB at a time. Asks for stop signals (Stopped).
void write_values(const ParameterValues& values, DType type,
                  const std::function<void(const void*, std::size_t)>& sink);

/// A GGUF file, or a model of another format of which only what must be is made, and each part when it is
/// asked for. What it is made from outlives it.
class OutgoingModel {
  public:
    OutgoingModel(const Gguf& file) : file_(&file) {}  // NOLINT(google-explicit-constructor): it is the same
    explicit OutgoingModel(const ModelSource& source);
    OutgoingModel(const OutgoingModel&) = delete;

    /// Metadata, names, types and shapes. Of a model of another format, tensors may lack bytes.
    const Gguf& file() const { return *file_; }
    /// The values of every parameter of `graph`, matrices read from this object; vectors as float, in
    /// `converted` where the model has another type. Errors as find_parameters'.
    std::vector<ParameterValues> parameters(const Graph& graph, const Architecture& architecture,
                                            std::vector<std::vector<float>>& converted) const;

  private:
    std::optional<Gguf> outline_;
    const Gguf* file_;
    std::map<std::string_view, const SourceTensor*> made_;
};

}  // namespace linnet
