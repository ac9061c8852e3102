// Tokenizers made here, not loaded.
#pragma once
#include <string>
#include <string_view>

#include "text/tokenizer.h"
#include "text/train/train.h"

namespace linnet {

/// A token for every character of `text`, in code point order. Error(Exit::input) where it is no UTF-8.
TokenizerPtr char_tokenizer(std::string_view text);

/// 256 tokens.
TokenizerPtr byte_tokenizer();

/// What VocabularyTrainer found, as a tokenizer. `pre`: a name of pre_names(), the splitter that a "bpe"
/// vocabulary was trained with; `lowercase`: whether a "wordpiece" one was.
TokenizerPtr trained_tokenizer(const TrainedVocabulary& trained, std::string_view pre = "gpt-2",
                               bool lowercase = false);

}  // namespace linnet
