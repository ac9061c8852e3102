// The model built into the program.
#pragma once
#include <cstddef>
#include <span>

namespace linnet {

/// The bytes of models/shakespeare.gguf, inside the executable.
std::span<const std::byte> builtin_model();

}  // namespace linnet
