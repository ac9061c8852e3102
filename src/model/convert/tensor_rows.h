// Where the rows of our parameters stand in a Hugging Face folder's tensors, and their values on the way.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/safetensors.h"
#include "graph/graph.h"
#include "model/convert/source.h"
#include "model/huggingface/config.h"

namespace linnet {

/// One parameter's rows (elements of a vector) in a tensor, or in several of the same shape.
struct ParameterRows {
    std::vector<std::string> tensors;  // whole names; several: the rows in turn, each as many
    Shape shape;                       // of each
    std::int64_t rows = 0, columns = 1;
    std::int64_t first = 0, all = 0;  // rows of the parameters before this one, and of all, in the tensor
    std::int64_t groups = 1;          // the tensor's rows are so many groups, each with its share of each
    // > 0: rows of a head, in which the parameter has rows of the first and of the second half in turn, and
    // the tensor one half behind the other (rotary pairs in NeoX order).
    std::int64_t head = 0;
    bool transpose = false;
    std::int64_t stacks = 1;  // transposed: so many matrices one below another, each by itself
    ValueTransform transform = ValueTransform::same;

    struct Place {
        std::size_t tensor;
        std::int64_t row;
    };
    Place at(std::int64_t row) const;
    /// Every row that stands in the tensor, and few others: [first, second).
    std::pair<std::int64_t, std::int64_t> near(std::size_t tensor) const;
    /// Row after row as they stand there.
    bool in_order() const { return groups == 1 && head == 0 && !transpose; }
    /// The bytes of a value as they stand there.
    bool as_is() const { return transform == ValueTransform::same; }
};

/// The rows of every parameter of `graph`; no tensors for one that config.json says (rope_freqs). `prefixed`:
/// names have the family's prefix.
std::vector<ParameterRows> parameter_rows(const HuggingFaceFamily& family, const ModelConfig& config,
                                          const Graph& graph, bool prefixed);

/// Whether the family says of a tensor that it means nothing, or is one that this model could lack.
bool is_spare(const HuggingFaceFamily& family, const std::string& tensor, bool prefixed);

/// A tensor's values to the parameter's, and back.
void undo_transform(ValueTransform transform, std::span<float> values);
void apply_transform(ValueTransform transform, std::span<float> values);

/// The place of the first value that is not finite; their number where there is none.
std::int64_t first_not_finite(std::span<const float> values);

/// Type conversions of whole numbers of elements, `transform` undone; f64 too, and of any address. Returns
/// the place of the first that `to` cannot hold, where it ends; `count` where there is none.
[[nodiscard]] std::int64_t convert_elements(std::int64_t count, DType from, const void* source, DType to,
                                            void* target, ValueTransform transform = ValueTransform::same);

/// out[c · out_row + r] = in[r · in_row + c] for all rows r and columns c, of elements of `size` bytes (2, 4
/// or 8).
void transpose(std::int64_t rows, std::int64_t columns, std::size_t size, const std::byte* in,
               std::int64_t in_row, std::byte* out, std::int64_t out_row);

/// Reads a parameter from the tensors that hold it.
class ParameterReader {
  public:
    /// Error(Exit::input) where one is missing, or of another shape or a type that is no weight's. `file`
    /// outlives it.
    ParameterReader(const Safetensors& file, ParameterRows rows);

    const ParameterRows& rows() const { return rows_; }
    DType type() const { return type_; }  // as stored
    /// The parameter's bytes where they lie, as `type`; empty where they have to be made.
    std::span<const std::byte> in_place(DType type) const;
    /// A window as `type`, row after row. Error(Exit::input) for a weight that it cannot hold.
    void read(const Window& window, DType type, std::byte* out) const;

  private:
    void gather(const Window& window, std::byte* out) const;
    [[noreturn]] void refuse(const Window& window, std::int64_t element, DType type) const;
    const Safetensors& file_;
    ParameterRows rows_;
    std::vector<const SafetensorsTensor*> tensors_;
    DType type_ = DType::f32;
};

}  // namespace linnet
