// WordPiece: a word is cut greedily into the longest known pieces (Wu et al., "Google's neural machine
// translation system", 2016, section 4.1; matching as in BERT's tokenization.py).
#pragma once
#include <string>

#include "text/encode/model.h"
#include "text/encode/trie.h"
#include "text/encode/vocabulary.h"

namespace linnet {

struct WordPieceOptions {
    TokenId unknown = -1;
    bool word_mark = false;  // first pieces are spelled with U+2581, others bare (GGUF); else as below
    std::string continuing_prefix = "##";  // before pieces that do not begin a word
    std::size_t max_characters = 0;        // longer words are unknown; 0: no limit
};

class WordPieceModel final : public WordModel {
  public:
    WordPieceModel(const Vocabulary& vocabulary, WordPieceOptions options);
    std::unique_ptr<ModelScratch> scratch() const override;
    void encode(std::string_view word, IdSink& out, ModelScratch& scratch) const override;
    const WordPieceOptions& options() const { return options_; }

  private:
    struct Scratch;
    bool pieces(std::string_view word, std::vector<TokenId>& ids) const;
    WordPieceOptions options_;
    Trie first_, rest_;
};

}  // namespace linnet
