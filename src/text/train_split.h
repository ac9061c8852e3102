// How the trainer cuts text into words, one rule a kind.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

/// GPT-2's words: 's 't 're 've 'm 'll 'd | ?letters | ?digits | ?others | blanks (the last one left to what
/// follows).
void split_words_gpt2(std::string_view text, std::vector<std::uint32_t>& ends);

/// One character of UTF-8 from text[at]; U+FFFD and length 1 for a byte that is no part of one.
struct Character {
    std::uint32_t code;
    std::uint32_t length;
};
Character character_at(std::string_view text, std::size_t at);
void append_utf8(std::uint32_t code, std::string& out);

enum class CharacterClass : std::uint8_t { letter, digit, blank, other };
/// \p{L}, \p{N}, White_Space, and the rest.
CharacterClass character_class(std::uint32_t code);

}  // namespace linnet
