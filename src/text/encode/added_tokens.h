// Tokens that are matched in the text before anything else: special ones (only where asked for) and
// user-defined.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace linnet {

struct AddedToken {
    TokenId id = 0;
    std::string content;
    bool special = false;      // matched only with EncodeOptions::parse_special
    bool single_word = false;  // not inside a word
    bool lstrip = false;       // takes the white space before it along
    bool rstrip = false;       // and those behind it
    bool normalized = false;   // matched in the normalized text
    /// It is part of the text around it, which keeps its spaces at the token and gets none behind it
    /// (SentencePiece's user-defined tokens); else what stands between two added tokens is a text by itself.
    bool joins = false;
};

/// A trie over all added tokens; the leftmost, then longest match wins, in one pass over the text.
class AddedTokens {
  public:
    AddedTokens() = default;
    explicit AddedTokens(const std::vector<AddedToken>& tokens);

    struct Match {
        std::size_t begin = 0, end = 0;
        TokenId id = -1;  // -1: no match
        bool joins = false;
    };
    /// The next match at or behind `from`; normalized: among those matched after normalization. `plain`:
    /// stretches that no special token may touch.
    Match next(std::string_view text, std::size_t from, bool parse_special, bool normalized,
               const PlainStretches* plain = nullptr) const;
    /// Whether next() could ever answer with these arguments.
    bool any(bool parse_special, bool normalized) const { return any_[parse_special][normalized]; }

  private:
    struct Node {
        std::vector<std::pair<std::uint8_t, std::uint32_t>> children;  // sorted by byte
        std::int32_t token = -1;                                       // index into tokens_
    };
    std::uint32_t child(std::uint32_t node, std::uint8_t byte) const;
    std::vector<AddedToken> tokens_;
    std::vector<Node> nodes_;
    std::vector<std::uint8_t> first_ = std::vector<std::uint8_t>(256);  // bytes that a token begins with
    int only_first_ = -1;                                               // that byte, where there is but one
    bool any_[2][2] = {};
};

}  // namespace linnet
