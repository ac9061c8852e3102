// GPT-2's printable alphabet for bytes (the "Ġ" of "Ġthe"): every byte is a character of one or two UTF-8
// bytes.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace linnet::byte_alphabet {

std::string_view spell(std::uint8_t byte);
std::string spell(std::string_view bytes);
void spell(std::string_view bytes, std::string& out);  // appends
/// Appends the bytes that a spelling stands for; a character outside the alphabet stands for itself.
void unspell(std::string_view spelling, std::string& out);

}  // namespace linnet::byte_alphabet
