// What files beside a tokenizer say of it: those of a Hugging Face folder.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/encode/pipeline.h"

namespace linnet {

struct TokenizerHints {
    TokenId size = 0;  // of the embedding: unused tokens fill a smaller vocabulary, a larger one is refused
    std::optional<std::string> bos, eos, padding, unknown;  // spellings
    std::vector<TokenId> ends;                              // the first ends a text, others a turn
    std::string ends_file;                                  // which says so
    std::optional<bool> add_bos, add_eos;
    std::vector<AddedToken> added;  // tokens behind those of the tokenizer's own file

    /// Before the model is made of the vocabulary. Error(Exit::input) naming `file`.
    void fill(Vocabulary& vocabulary, const std::string& file) const;
    /// Once roles are known by the tokenizer's own file. Error(Exit::input) naming `ends_file`.
    void apply(Parts& parts) const;
};

}  // namespace linnet
