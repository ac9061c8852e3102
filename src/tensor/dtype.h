// The element types of tensors: one table, walked by everything that needs to know.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace linnet {

enum class DType : std::uint8_t { f32, f16, bf16, f64, i32 };

/// What there is to know of a type. A block is the smallest piece that can be stored (1 element for plain
/// types).
struct DTypeInfo {
    DType type;
    std::string_view name;  // as printed and as given to --type
    std::int64_t block;     // elements a block
    std::int64_t bytes;     // bytes a block
    std::int32_t gguf_id;   // ggml_type; -1 where GGUF has none that we read
    bool is_weight;         // may hold the weights of a matrix
};

std::span<const DTypeInfo> dtypes();
const DTypeInfo& info(DType type);
std::optional<DType> dtype_from_gguf(std::uint32_t id);
std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace linnet
