// A trie of tokens, its edges in one flat hash table.
#pragma once
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/encode/packed_pairs.h"
#include "text/encode/vocabulary.h"
#include "text/tokenizer.h"

namespace linnet {

class Trie {
  public:
    void reserve(std::size_t bytes) { edges_.reserve(bytes); }
    void add(std::string_view key, TokenId id) {
        refuse_long(key);
        TokenId node = 0;
        for (char c : key) {
            TokenId next = step(node, c);
            if (next < 0) {
                next = static_cast<TokenId>(id_of_.size());
                if (static_cast<std::uint32_t>(next) >= edges_.none)
                    fail_input("tokenizer", "vocabulary", "fewer than 2^24 different beginnings of tokens",
                               "more");
                edges_.add(static_cast<std::uint32_t>(node), static_cast<std::uint8_t>(c),
                           static_cast<std::uint32_t>(next));
                id_of_.push_back(-1);
            }
            node = next;
        }
        if (id_of_[static_cast<std::size_t>(node)] < 0) id_of_[static_cast<std::size_t>(node)] = id;
    }
    TokenId step(TokenId node, char c) const {
        const std::uint32_t next =
            edges_.find(static_cast<std::uint32_t>(node), static_cast<std::uint8_t>(c));
        return next == edges_.none ? -1 : static_cast<TokenId>(next);
    }
    TokenId token(TokenId node) const { return id_of_[static_cast<std::size_t>(node)]; }
    /// f(length, id) for every key that the text begins with, shortest first.
    template <class F>
    void prefixes(std::string_view text, F&& f) const {
        TokenId node = 0;
        for (std::size_t i = 0; i < text.size(); i++) {
            node = step(node, text[i]);
            if (node < 0) return;
            if (TokenId id = token(node); id >= 0) f(i + 1, id);
        }
    }

  private:
    PackedPairs<32, 8> edges_;  // (node, byte) -> node
    std::vector<TokenId> id_of_ = {-1};
};

}  // namespace linnet
