// How the rows of a sequence become one.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace linnet {

/// Attribute "kind" of pool_op.
enum class Pooling : std::uint8_t { mean, first, last };
inline constexpr std::array<std::string_view, 3> pooling_names{"mean", "first", "last"};

/// `name` must be one of these.
constexpr Pooling pooling_from_name(std::string_view name) {
    std::uint8_t i = 0;
    while (pooling_names[i] != name) i++;
    return static_cast<Pooling>(i);
}

}  // namespace linnet
