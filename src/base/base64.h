// Bytes as text (RFC 4648, section 4).
#pragma once
#include <string>
#include <string_view>

namespace linnet {

inline constexpr char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
std::string base64(std::string_view bytes);

}  // namespace linnet
