// llama2.c's tokenizer.bin, read and written: SentencePiece's pieces and scores, spaces for its marks.
#pragma once
#include <string>
#include <string_view>

#include "text/encode/pipeline.h"

namespace linnet {

/// A vocabulary of `size` tokens. Error(Exit::input) naming `file`.
TokenizerPtr tokenizer_from_llama2c(std::string_view bytes, const std::string& file, TokenId size);

/// Error(Exit::input) for another kind of vocabulary.
std::string tokenizer_to_llama2c(const Tokenizer& tokenizer);

}  // namespace linnet
