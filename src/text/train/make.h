// Tokenizers made here, not loaded.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"
#include "text/train/train.h"

namespace linnet {

/// A token for every character of `text`, in code point order, and control tokens behind them.
/// Error(Exit::input) where it is no UTF-8.
TokenizerPtr char_tokenizer(std::string_view text, const std::vector<std::string>& special = {});

/// 256 tokens.
TokenizerPtr byte_tokenizer();

/// A vocabulary of this kind ("bpe", "wordpiece", "spm", "char", "byte") made of a text. `special`: control
/// tokens in the place of the kind's own, the first of which ends texts; of "char" they stand behind the
/// characters, "byte" has none (a model of bytes has nothing to end an answer with, or to mask).
TokenizerPtr made_tokenizer(std::string_view kind, std::string_view text, TokenId vocab_size, bool lowercase,
                            const std::vector<std::string>& special, int threads);

/// What VocabularyTrainer found, as a tokenizer. `pre`: a name of pre_names(), the splitter that a "bpe"
/// vocabulary was trained with; `lowercase`: whether a "wordpiece" one was.
TokenizerPtr trained_tokenizer(const TrainedVocabulary& trained, std::string_view pre = "gpt-2",
                               bool lowercase = false);

}  // namespace linnet
