#include "tensor/dtype.h"

#include <array>

namespace linnet {
namespace {

// In the order of DType: a type's row is found by its number (a test walks the table).
constexpr std::array<DTypeInfo, 5> table{{
    //            name   block bytes gguf_id is_weight
    {DType::f32, "f32", 1, 4, 0, true},
    {DType::f16, "f16", 1, 2, 1, true},
    {DType::bf16, "bf16", 1, 2, 30, true},
    {DType::f64, "f64", 1, 8, 28, false},
    {DType::i32, "i32", 1, 4, 26, false},
}};

}  // namespace

std::span<const DTypeInfo> dtypes() {
    return table;
}

const DTypeInfo& info(DType type) {
    return table[static_cast<std::size_t>(type)];
}

std::optional<DType> dtype_from_gguf(std::uint32_t id) {
    for (const DTypeInfo& row : table)
        if (row.gguf_id >= 0 && static_cast<std::uint32_t>(row.gguf_id) == id) return row.type;
    return std::nullopt;
}

std::optional<DType> dtype_from_name(std::string_view name) {
    for (const DTypeInfo& row : table)
        if (row.name == name) return row.type;
    return std::nullopt;
}

}  // namespace linnet
