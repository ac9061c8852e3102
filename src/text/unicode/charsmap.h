// SentencePiece's precompiled character map: a double-array trie of character sequences and their
// replacements (google/sentencepiece, src/normalizer.cc; the array is Darts-clone's).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace linnet {

class CharsMap {
  public:
    /// `blob`: a 32-bit little-endian size of the array, the array, and the replacements, each ended by NUL.
    /// Error(Exit::input) naming `file` and `where` if it does not hold together.
    CharsMap(std::string_view blob, std::string_view file, std::string_view where);

    /// Replaces the longest known sequence at each place; a byte that is no UTF-8 becomes U+FFFD. Stops with
    /// false as soon as the text is longer than `most` bytes.
    bool apply(std::string& text, std::size_t most = SIZE_MAX) const;

  private:
    /// The length of the longest sequence at the head of `text` and where its replacement begins; 0: none.
    std::size_t longest(std::string_view text, std::size_t& replacement) const;
    std::vector<std::uint32_t> units_;
    std::string replacements_;
};

}  // namespace linnet
