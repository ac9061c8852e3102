// Weights stored in a smaller type: a finite one that the type cannot hold is refused, never written as
// infinite.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace linnet {

/// Stores values as `type` (f32, f16 or bf16). Returns the place of the first that is finite and too large
/// for it; `count` where there is none. What is not finite stays so.
[[nodiscard]] std::int64_t store_narrowed(std::int64_t count, DType type, const float* values, void* target);
/// The same of doubles as f32.
[[nodiscard]] std::int64_t narrow(std::int64_t count, const double* values, float* target);

/// Error(Exit::input) of a tensor's row; an empty name is left out.
[[noreturn]] void refuse_row(std::string_view file, std::string_view tensor, std::int64_t row,
                             const std::string& expected, const std::string& got);
/// The same where it has a weight that `type` cannot hold.
[[noreturn]] void refuse_narrowed(std::string_view file, std::string_view tensor, std::int64_t row,
                                  DType type);

}  // namespace linnet
