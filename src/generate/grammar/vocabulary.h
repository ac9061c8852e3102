// A vocabulary as a grammar sees it: the bytes that tokens add to a text.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "generate/grammar/char_set.h"
#include "text/tokenizer.h"

namespace linnet {

struct ByteRange {
    std::uint8_t first, last;  // inclusive
    bool operator==(const ByteRange&) const = default;
    friend bool operator<(const ByteRange& a, const ByteRange& b) {
        return a.first != b.first ? a.first < b.first : a.last < b.last;
    }
};

/// Tokens that add bytes to a text (no control tokens, no end tokens), sorted by them, as a tree of prefixes
/// in preorder. Tokens longer than `longest_short` are in a tree of their own.
class TokenTree {
  public:
    struct Node {
        std::uint8_t byte = 0;
        std::uint16_t depth = 0;  // bytes so far, from 1
        std::uint32_t skip = 0;   // the first node behind those that begin with this one
        std::uint32_t token = 0;  // where its own tokens begin in tokens(); those of nodes[i] end where
                                  // those of nodes[i + 1] begin
    };
    /// `spellings`: ids with the bytes they add, not empty.
    explicit TokenTree(std::vector<std::pair<std::string, TokenId>> spellings);
    const std::vector<Node>& nodes() const { return nodes_; }  // one more, at the end, that holds nothing
    const std::vector<TokenId>& tokens() const { return tokens_; }
    std::string_view spelling(std::size_t token) const {
        return std::string_view(bytes_).substr(begins_[token], begins_[token + 1] - begins_[token]);
    }

  private:
    std::vector<Node> nodes_;
    std::vector<TokenId> tokens_;
    std::vector<std::size_t> begins_;
    std::string bytes_;
};

class GrammarVocabulary {
  public:
    static constexpr std::size_t longest_short = 24;

    explicit GrammarVocabulary(const Tokenizer& tokenizer);
    TokenId size() const { return size_; }
    /// The tokens of at most longest_short bytes, and the others.
    const TokenTree& tokens() const { return tokens_; }
    const TokenTree& long_tokens() const { return long_tokens_; }
    const std::vector<TokenId>& ends() const { return ends_; }  // end tokens

    /// Characters that some tokens spell without the help of what stands beside them.
    const CharSet& spellable() const { return spellable_; }
    /// Whether tokens spell some bytes out of these ranges (continuation bytes of a character, at most 3).
    bool spells(std::span<const ByteRange> continuation) const;

  private:
    void find_spellable(const std::vector<std::pair<std::string, TokenId>>& spellings);

    TokenId size_;
    std::vector<TokenId> ends_;
    TokenTree tokens_{{}}, long_tokens_{{}};
    CharSet spellable_;
    /// continuation_[n - 1]: which of the 64^n rows of n continuation bytes tokens spell.
    std::array<std::vector<bool>, 3> continuation_;
};

}  // namespace linnet
