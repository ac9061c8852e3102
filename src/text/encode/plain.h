// The two smallest kinds: a token a character, and a token a byte.
#pragma once
#include "text/encode/model.h"
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

}  // namespace linnet
