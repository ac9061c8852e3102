// The kinds without words: a token per character, a token per byte, the longest token at each place.
#pragma once
#include "text/encode/model.h"
#include "text/encode/trie.h"
#include "text/encode/vocabulary.h"

namespace linnet {

class CharModel final : public WordModel {
  public:
    explicit CharModel(const Vocabulary& vocabulary, TokenId unknown = -1);
    void encode(std::string_view word, IdSink& out, ModelScratch&) const override;

  private:
    std::vector<TokenId> id_of_;  // by code point, up to the largest in the vocabulary
    TokenId unknown_;
};

class ByteModel final : public WordModel {
  public:
    explicit ByteModel(const Vocabulary& vocabulary);
    void encode(std::string_view word, IdSink& out, ModelScratch&) const override;

  private:
    TokenId id_of_[256];
};

/// RWKV's: at each place the longest token that the text goes on with, whatever bytes it has.
class LongestModel final : public WordModel {
  public:
    explicit LongestModel(const Vocabulary& vocabulary, TokenId unknown = -1);
    void encode(std::string_view word, IdSink& out, ModelScratch&) const override;

  private:
    Trie tokens_;
    TokenId unknown_;
};

}  // namespace linnet
