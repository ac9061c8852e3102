// How the rows of a sequence become one.
#pragma once
#include <cstdint>

namespace linnet {

/// Attribute "kind" of pool_op.
enum class Pooling : std::uint8_t { mean, first, last };

}  // namespace linnet
