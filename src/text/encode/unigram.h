// The unigram language model: of all ways to spell a text with tokens, the one of highest summed
// log-probability (Kudo, "Subword regularization", ACL 2018, section 3.1), found by Viterbi in time linear in
// the text.
#pragma once
#include <vector>

#include "text/encode/model.h"
#include "text/encode/trie.h"
#include "text/encode/vocabulary.h"

namespace linnet {

struct UnigramOptions {
    TokenId unknown = -1;
    bool byte_fallback = false;  // an unknown character becomes its bytes' tokens where all of them exist
};

class UnigramModel final : public WordModel {
  public:
    UnigramModel(const Vocabulary& vocabulary, UnigramOptions options);
    std::unique_ptr<ModelScratch> scratch() const override;
    void encode(std::string_view word, IdSink& out, ModelScratch& scratch) const override;
    bool cuts_before_marks() const override { return cuts_before_marks_; }
    const UnigramOptions& options() const { return options_; }

  private:
    struct Scratch;
    void encode_piece(std::string_view piece, IdSink& out, Scratch& scratch) const;
    void viterbi(std::string_view piece, Scratch& scratch) const;

    const Vocabulary& vocabulary_;
    UnigramOptions options_;
    Trie trie_;
    TokenId byte_id_[256];
    double unknown_score_ = 0;
    bool cuts_before_marks_ = true;
};

}  // namespace linnet
