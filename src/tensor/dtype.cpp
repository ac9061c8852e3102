#include "tensor/dtype.h"

namespace linnet {
namespace {

// In the order of DType: a type's row is found by its number (a test walks the table). The blocks are ggml's
// (ggml-common.h, the structs block_*; ids: ggml.h, enum ggml_type).
constexpr DTypeInfo table[] = {
    //              name     block bytes gguf_id is_weight
    {DType::f32, "f32", 1, 4, 0, true},
    {DType::f16, "f16", 1, 2, 1, true},
    {DType::bf16, "bf16", 1, 2, 30, true},
    {DType::f64, "f64", 1, 8, 28, false},
    {DType::i8, "i8", 1, 1, 24, false},
    {DType::i16, "i16", 1, 2, 25, false},
    {DType::i32, "i32", 1, 4, 26, false},
    {DType::i64, "i64", 1, 8, 27, false},
    {DType::q4_0, "q4_0", 32, 18, 2, true},
    {DType::q4_1, "q4_1", 32, 20, 3, true},
    {DType::q5_0, "q5_0", 32, 22, 6, true},
    {DType::q5_1, "q5_1", 32, 24, 7, true},
    {DType::q8_0, "q8_0", 32, 34, 8, true},
    {DType::q8_1, "q8_1", 32, 36, 9, false},
    {DType::q2_k, "q2_k", 256, 84, 10, true},
    {DType::q3_k, "q3_k", 256, 110, 11, true},
    {DType::q4_k, "q4_k", 256, 144, 12, true},
    {DType::q5_k, "q5_k", 256, 176, 13, true},
    {DType::q6_k, "q6_k", 256, 210, 14, true},
    {DType::q8_k, "q8_k", 256, 292, 15, false},
    {DType::iq1_s, "iq1_s", 256, 50, 19, false},
    {DType::iq1_m, "iq1_m", 256, 56, 29, false},
    {DType::iq2_xxs, "iq2_xxs", 256, 66, 16, false},
    {DType::iq2_xs, "iq2_xs", 256, 74, 17, false},
    {DType::iq2_s, "iq2_s", 256, 82, 22, false},
    {DType::iq3_xxs, "iq3_xxs", 256, 98, 18, false},
    {DType::iq3_s, "iq3_s", 256, 110, 21, false},
    {DType::iq4_nl, "iq4_nl", 32, 18, 20, true},
    {DType::iq4_xs, "iq4_xs", 256, 136, 23, true},
    {DType::tq1_0, "tq1_0", 256, 54, 34, false},
    {DType::tq2_0, "tq2_0", 256, 66, 35, true},
    {DType::mxfp4, "mxfp4", 32, 17, 39, true},
    {DType::nvfp4, "nvfp4", 64, 36, 40, false},
    {DType::q1_0, "q1_0", 128, 18, 41, false},
    {DType::q2_0, "q2_0", 64, 18, 42, false},
    {DType::unknown, "unknown", 1, 0, -1, false},
};

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
        if (row.name == name && row.type != DType::unknown) return row.type;
    return std::nullopt;
}

}  // namespace linnet
