// Base64 (base/base64.h) read.
#pragma once
#include <cstddef>
#include <string_view>

namespace linnet {

/// Writes at most 3/4 as many bytes; how many, 0 where it is no base64 of at least one byte.
std::size_t decode_base64(std::string_view text, char* out);

}  // namespace linnet
