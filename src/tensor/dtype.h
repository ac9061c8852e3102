// The element types of tensors: one table, walked by everything that needs to know.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace linnet {

enum class DType : std::uint8_t {
    f32,
    f16,
    bf16,
    f64,
    i8,
    i16,
    i32,
    i64,
    q4_0,
    q4_1,
    q5_0,
    q5_1,
    q8_0,
    q8_1,
    q2_k,
    q3_k,
    q4_k,
    q5_k,
    q6_k,
    q8_k,
    iq1_s,
    iq1_m,
    iq2_xxs,
    iq2_xs,
    iq2_s,
    iq3_xxs,
    iq3_s,
    iq4_nl,
    iq4_xs,
    tq1_0,
    tq2_0,
    mxfp4,
    nvfp4,
    q1_0,
    q2_0,
    unknown  // a number in a file that has no row here: nothing can be said of its blocks
};

/// What there is to know of a type. A block is the smallest piece that can be stored (1 element for plain
/// types).
struct DTypeInfo {
    DType type;
    std::string_view name;  // as printed and as given to --type
    std::int64_t block;     // elements per block; a row is a whole number of blocks
    std::int64_t bytes;     // bytes per block
    std::int32_t gguf_id;   // ggml_type; -1 where GGUF has none
    bool is_weight;         // kernels compute with it: a model whose matrices have this type runs
};

std::span<const DTypeInfo> dtypes();
const DTypeInfo& info(DType type);
std::optional<DType> dtype_from_gguf(std::uint32_t id);
std::optional<DType> dtype_from_name(std::string_view name);

/// Bytes that `count` elements take, a whole number of blocks.
inline std::int64_t stored_bytes(DType type, std::int64_t count) {
    return count / info(type).block * info(type).bytes;
}

}  // namespace linnet
